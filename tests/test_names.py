"""The public names, and the names of files that are written."""

import subprocess
import sys
from pathlib import Path

import pytest

import movi
from movi.cli import main


def python(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300
    ).stdout


def test_modules_of_the_package_can_be_had_by_their_names_and_nothing_else():
    said = python(
        "import movi, sys; assert 'jax' not in sys.modules\n"
        "print(movi.mdp.total_reward.__name__, movi.mdp.families.Maze.__name__)\n"
        "print(hasattr(movi, 'nothing'), hasattr(movi.mdp, '_nothing'), movi.planning.__name__)"
    )
    assert said == "total_reward Maze\nFalse False movi.planning\n"


def test_the_public_names_are_listed():
    assert dir(movi) == sorted(movi.__all__)
    assert {"solve", "garnet", "train", "UserError"} < set(dir(movi))
    assert dir(movi.mdp) == sorted(movi.mdp.__all__)
    assert all(getattr(movi, name) is not None for name in dir(movi))


@pytest.mark.parametrize("words", ["solve g.npz", "garnet", "mdp maze"])
def test_a_name_that_says_another_format_is_not_written_to(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    movi.save_mdp(movi.garnet(5, 2, 2), "g.npz")
    assert main([*words.split(), "--out", "x.csv"]) == 2
    assert capsys.readouterr().err == "movi: out: x.csv, expected a name that ends in .npz\n"
    assert not Path("x.csv").exists()
    assert main([*words.split(), "--out", "x"]) == 0
