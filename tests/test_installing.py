"""How it is installed: what our pages and messages tell people to type, and under which name."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import movi

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORDS = r"pip install ((?:-\S+ |\S+\.txt )*)('[^']*'|[^\s`),;]+)"


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
            name, wanted = re.fullmatch(r"'?([\w.-]+)(?:\[(.*)\])?'?", target).groups()
            assert name in (".", PROJECT["name"]), f"{file}: pip install {target}"
            asked = set((wanted or "").split(",")) - {""}
            assert asked <= extras | {"{extra}"}, f"{file}: pip install {target}"
            found.append(target)
        assert "'movi[" not in text, f"{file}: an extra of the other package"
    assert "'.[atari]'" in found
    assert "'momentum-rl[{extra}]'" in found


def test_a_hint_names_what_works_from_a_clone_and_from_an_index():
    from movi.errors import MissingExtra

    line = str(MissingExtra("record", "video"))
    assert "pip install 'momentum-rl[video]'" in line
    assert "'.[video]'" in line


def test_the_distribution_has_a_name_of_its_own_and_the_command_starts_outside_the_package():
    assert PROJECT["name"] == "momentum-rl" == movi.DISTRIBUTION
    assert PROJECT["scripts"] == {"movi": "momentum_rl:main"}


def command(first, tmp_path):
    paths = [str(path) for path in (first, Path(movi.__file__).parents[1])]
    return subprocess.run(
        [sys.executable, "-P", "-m", "momentum_rl", "--version"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_the_command_says_in_one_line_that_it_found_the_other_package(tmp_path):
    done = command(tmp_path / "nothing", tmp_path)
    assert (done.returncode, done.stdout) == (0, f"movi {movi.__version__}\n")
    (tmp_path / "movi").mkdir()
    theirs = b"# -*- coding: latin-1 -*- \xe9\nraise SystemExit('theirs runs')\n"
    (tmp_path / "movi" / "__init__.py").write_bytes(theirs)
    done = command(tmp_path, tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"movi: {tmp_path / 'movi' / '__init__.py'} is not of momentum-rl but of another package "
        "with the same name; "
        "pip uninstall movi, then install momentum-rl again\n"
    )
