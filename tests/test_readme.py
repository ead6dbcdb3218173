"""The README's tour does what it shows."""

import doctest
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

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


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("tour")


def test_the_commands_of_the_tour_print_what_it_shows(directory):
    assert len(STEPS) >= 4
    for command, expected in STEPS:
        words = shlex.split(command)
        assert words[0] == "movi"
        done = subprocess.run(
            [sys.executable, "-m", "movi", *words[1:]],
            cwd=directory,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        pattern = ".*".join(map(re.escape, expected.strip().split("…")))
        assert re.fullmatch(pattern, done.stdout.strip(), re.DOTALL), (command, done.stdout)
