"""The public names, and the names of files that are written."""

import subprocess
import sys
from pathlib import Path

import pytest

import momentum_rl
from momentum_rl.cli import main


def python(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300
    ).stdout


def test_modules_of_the_package_can_be_had_by_their_names_and_nothing_else():
    said = python(
        "import momentum_rl, sys; assert 'jax' not in sys.modules\n"
        "print(momentum_rl.total_reward.__name__)\n"
        "print(hasattr(momentum_rl, 'nothing'), hasattr(momentum_rl.mdp, '_nothing'))\n"
        "print(momentum_rl.planning.__name__)"
    )
    assert said == "total_reward\nFalse False\nmomentum_rl.planning\n"


def test_the_public_names_are_listed():
    assert dir(momentum_rl) == sorted(momentum_rl.__all__)
    assert {"solve", "garnet", "train", "UserError"} < set(dir(momentum_rl))
    assert all(getattr(momentum_rl, name) is not None for name in dir(momentum_rl))


@pytest.mark.parametrize("words", ["solve g.npz", "mdp garnet", "mdp maze"])
def test_a_name_that_says_another_format_is_not_written_to(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    momentum_rl.save_mdp(momentum_rl.garnet(5, 2, 2), "g.npz")
    assert main([*words.split(), "--out", "x.csv"]) == 2
    assert capsys.readouterr().err == "movi: out: x.csv, expected a name that ends in .npz\n"
    assert not Path("x.csv").exists()
    assert main([*words.split(), "--out", "x"]) == 0
