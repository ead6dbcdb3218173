"""How it is installed: what our pages and messages tell people to type, and under which name."""

import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import momentum_rl
from momentum_rl.errors import AGENTS

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORDS = r"pip install ((?:-\S+ |\S+\.txt |\$(?:\(\w+\)|<) )*)('[^']*'|[^\s`),;]+)"


def texts():
    for pattern in ("*.md", "Makefile", "*.toml", "docs/**/*.md", "src/**/*.py", "examples/**/*"):
        for file in sorted(ROOT.glob(pattern)):
            if file.is_file():
                yield file, file.read_text()


def test_every_pip_install_that_we_tell_people_means_this_distribution_and_an_extra_it_has():
    extras = set(PROJECT["optional-dependencies"])
    found = []
    for file, text in texts():
        for _, target in re.findall(WORDS, text):
            if target.startswith("-"):
                continue
            named = target.replace("{DISTRIBUTION}", PROJECT["name"])
            name, wanted = re.fullmatch(r"'?([\w.-]+)(?:\[(.*)\])?'?", named).groups()
            assert name in (".", PROJECT["name"]), f"{file}: pip install {target}"
            asked = set((wanted or "").split(",")) - {""}
            assert asked <= extras | {"{extra}", "{together}"}, f"{file}: pip install {target}"
            found.append(named)
        assert "'movi[" not in text, f"{file}: an extra of the other package"
    assert "'.[atari]'" in found
    assert "'momentum-rl[{together}]'" in found


def ranges():
    """Every requirement of users, by the name of the distribution."""
    ours = ("dev", "docs")
    extras = {k: v for k, v in PROJECT["optional-dependencies"].items() if k not in ours}
    lines = [*PROJECT["dependencies"], *(line for some in extras.values() for line in some)]
    every = [Requirement(line) for line in lines]
    return [one for one in every if one.name != PROJECT["name"]]


def test_the_supported_range_has_two_ends_and_holds_what_was_tested():
    pins = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines())
    tested = {canonicalize_name(name): version for name, version in pins.items()}
    for requirement in ranges():
        signs = {specifier.operator for specifier in requirement.specifier}
        assert signs == {">=", "<"}, requirement
        assert tested[canonicalize_name(requirement.name)] in requirement.specifier, requirement
        assert version(requirement.name) in requirement.specifier, requirement


def test_the_classifiers_name_the_pythons_from_the_oldest_to_the_one_of_test_newest():
    ends = [c.split(" :: ")[-1] for c in PROJECT["classifiers"] if "Language :: Python" in c]
    named = [end for end in ends if end != "Only"]
    oldest = PROJECT["requires-python"].removeprefix(">=")
    newest = re.search(r"^NEWEST \?= python(.*)$", (ROOT / "Makefile").read_text(), re.M)[1]
    first, last = (int(text.removeprefix("3.")) for text in (oldest, newest))
    assert named == [f"3.{minor}" for minor in range(first, last + 1)]


def test_the_page_of_licences_is_what_the_metadata_of_the_tested_versions_say():
    pins = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines())
    script = ROOT / "docs" / "making" / "licences.py"
    spec = importlib.util.spec_from_file_location("licences", script)
    licences = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(licences)
    rows = licences.rows()
    assert {"jax", "flax", "ale-py"} <= set(rows)
    assert rows["jax"] == ("every installation", "Apache-2.0")
    assert rows["flax"][0] == "agents"
    tested = {canonicalize_name(name): version for name, version in pins.items()}
    other = [name for name in rows if version(name) != tested.get(name)]
    if other:
        pytest.skip(f"not the versions of constraints.txt: {', '.join(other)}")
    assert licences.PAGE.read_text() == licences.page()


def test_every_extra_that_trains_includes_the_agents():
    extras = PROJECT["optional-dependencies"]
    including = {name for name, lines in extras.items() if "momentum-rl[agents]" in lines}
    assert including == {"atari", "gymnax", "mujoco", "onnx", "ray", "video"}
    roots = {Requirement(line).name for line in extras["agents"]}
    assert roots == AGENTS  # distributions and modules have the same names


def test_a_hint_names_what_works_from_a_clone_and_from_an_index():
    from momentum_rl.errors import MissingExtra

    line = str(MissingExtra("record", "video"))
    assert "pip install 'momentum-rl[video]'" in line
    assert "'.[video]'" in line


def test_the_distribution_has_a_name_of_its_own():
    assert PROJECT["name"] == "momentum-rl"
    assert PROJECT["scripts"] == {"movi": "momentum_rl.__main__:main"}


@pytest.mark.parametrize(
    ("redirected", "status", "told", "said"),
    [
        ("--version 2>&- <&-", 0, f"movi {momentum_rl.__version__}\n", ""),
        ("nothing 2>&- >&-", 2, "", ""),
        ("--version >/dev/full", 2, "", "movi: No space left on device\n"),
    ],
)
def test_streams_may_be_closed_or_full(redirected, status, told, said):
    words = f"{sys.executable} -P -m momentum_rl {redirected}"
    path = {"PYTHONPATH": str(Path(momentum_rl.__file__).parents[1])}
    done = subprocess.run(
        ["sh", "-c", words], env={**os.environ, **path}, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (status, told, said)


def test_a_character_that_the_terminal_does_not_have_is_spelled_out(tmp_path):
    path = {"PYTHONPATH": str(Path(momentum_rl.__file__).parents[1]), "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        [sys.executable, "-P", "-m", "momentum_rl", "--help"],
        env={**os.environ, **path},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "usage: movi COMMAND \\u2026" in done.stdout
