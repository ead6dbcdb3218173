"""The README and the page "Five minutes": what they show is what one gets."""

import doctest
import importlib.util
import re
import shlex
import tomllib
from pathlib import Path

import pytest

import momentum_rl
from momentum_rl.cli import main
from paper.__main__ import main as paper

ROOT = Path(__file__).parents[1]
README, START = ROOT / "README.md", ROOT / "docs" / "start.md"
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e-?\d+)?")


def steps(page):
    """The commands of a page, each with what is shown beneath it."""
    spec = importlib.util.spec_from_file_location("outputs", ROOT / "docs/making/outputs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.steps(page.read_text())


@pytest.mark.parametrize(("page", "least"), [(README, 6), (START, 17)])
def test_the_python_of_the_page_gives_what_it_shows(page, least):
    result = doctest.testfile(
        str(page), module_relative=False, optionflags=doctest.IGNORE_EXCEPTION_DETAIL
    )
    assert result.attempted >= least
    assert result.failed == 0


def test_the_badges_are_true():
    """They are what the package says of itself to whoever installs it."""
    line = next(own for own in README.read_text().splitlines() if own.startswith("`version"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    kinds = [kind.rpartition(" :: ")[2] for kind in project["classifiers"]]
    pythons = [kind for kind in kinds if kind.startswith("3.")]
    said = [f"version {momentum_rl.__version__}", f"Python {' | '.join(pythons)}", "Linux"]
    assert line.strip("`").split("` `") == [*said, project["license"], "typed"]
    assert {"Linux", "Typed"} <= set(kinds)
    assert (ROOT / "src" / "momentum_rl" / "py.typed").exists()


def test_the_readme_is_short():
    assert len(README.read_text().splitlines()) < 120


@pytest.mark.parametrize(("page", "least"), [(README, 3), (START, 10)])
def test_the_commands_of_the_page_print_what_it_shows(page, least, tmp_path, monkeypatch, capfd):
    """The README leaves out what varies (…); the other page has the numbers of one run."""
    monkeypatch.chdir(tmp_path)
    assert len(steps(page)) >= least
    for command, expected in steps(page):
        words = shlex.split(command)
        if words[0] == "movi":
            status = main(words[1:])
        else:
            assert words[:3] == ["python", "-m", "paper"]
            status = paper(words[3:])
        said = capfd.readouterr()
        assert status == 0, said.err
        printed = said.out.strip()
        if page == START:
            assert NUMBER.sub("#", printed) == NUMBER.sub("#", expected.strip()), command
        else:
            pattern = ".*".join(map(re.escape, expected.strip().split("…")))
            assert re.fullmatch(pattern, printed, re.DOTALL), (command, printed)
