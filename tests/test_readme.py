"""The README's tour does what it shows."""

import doctest
import re
import shlex
from pathlib import Path

from movi.cli import main

README = Path(__file__).parents[1] / "README.md"
CONSOLE = re.findall(r"```console\n(.*?)```", README.read_text(), re.DOTALL)
STEPS = [
    (command, expected)
    for block in CONSOLE
    for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
]


def test_the_python_of_the_tour_gives_what_it_shows():
    result = doctest.testfile(
        str(README), module_relative=False, optionflags=doctest.IGNORE_EXCEPTION_DETAIL
    )
    assert result.attempted > 10
    assert result.failed == 0


def test_the_commands_of_the_tour_print_what_it_shows(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    assert len(STEPS) >= 4
    for command, expected in STEPS:
        words = shlex.split(command)
        assert words[0] == "movi"
        status = main(words[1:])
        said = capfd.readouterr()
        assert status == 0, said.err
        pattern = ".*".join(map(re.escape, expected.strip().split("…")))
        assert re.fullmatch(pattern, said.out.strip(), re.DOTALL), (command, said.out)
