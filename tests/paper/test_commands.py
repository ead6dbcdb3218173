"""The paper's command line: the same way of refusing a mistake, and figures with verdicts."""

import subprocess
import sys
from pathlib import Path

import pytest

from paper.__main__ import COMMANDS, main

ROOT = Path(__file__).parents[2]
EXPERIMENTS = [name for name in COMMANDS if name != "report"]
HUGE = 99999999999999999999


@pytest.fixture
def refused(tmp_path, monkeypatch, capsys):
    """Calls a command that must be refused: one line, status 2, nothing written; gives the line."""
    monkeypatch.chdir(tmp_path)

    def call(*words):
        assert main([str(word) for word in words]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.count("\n") == 1
        assert list(tmp_path.iterdir()) == []
        return err.removeprefix("movi: ").strip()

    return call


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("compare --mdps 0", "count: 0"),
        ("compare --schemes foo", "scheme: 'foo'"),
        ("compare --iterations 0", "iterations: 0"),
        ("assumption --restarts 0", "restarts: 0"),
        ("assumption --lengths -1", "lengths: (-1,)"),
        ("assumption --iterations 1 b --seed 3", "--iterations: '1 b', expected an integer"),
        ("bounds --delta 2", "delta: 2.0"),
        ("bounds --constant-betas 1", "beta: 1.0"),
        *((f"{name} --seed -1", "seed: -1, expected an integer") for name in EXPERIMENTS),
        ("compare --mdps 10000000 --states 1000", "of memory are available"),
        ("compare --mdps 1 --iterations 2147483647", "of memory are available"),
        ("compare --mdps 1 --samples 1000000000", "1,000,000,000 samples"),
        ("bounds --mdps 1 --iterations 1000000000", "of memory are available"),
        ("assumption --mdps 1 --lengths 1000000000", "l up to 1,000,000,000"),
        ("assumption --mdps 1 --restarts 1000000000", "of memory are available"),
        (f"compare --mdps {HUGE}", f"count: {HUGE}"),
        (f"compare --mdps 1 --iterations {HUGE}", f"iterations: {HUGE}"),
        (f"assumption --mdps 1 --restarts {HUGE}", f"restarts: {HUGE}"),
    ],
)
def test_a_mistake_is_one_line_and_writes_nothing(words, says, refused):
    assert says in refused(*words.split(), "--out", "new")


def test_a_directory_that_cannot_be_written_is_refused_before_the_work(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["compare", "--out", str(tmp_path / "file" / "in")]) == 2
    assert "is a file, expected a directory" in capsys.readouterr().err


def test_the_largest_seed_is_one(tmp_path):
    words = ["--mdps", "1", "--restarts", "2", "--lengths", "0", "--seed", str(2**63 - 1)]
    assert main(["assumption", *words, "--out", str(tmp_path / "new")]) == 0


def test_help_lists_every_command():
    words = [sys.executable, "-m", "paper", "--help"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert all(f"python -m paper {name}" in done.stdout for name in COMMANDS)


def test_a_small_comparison_ends_in_figures_and_verdicts(tmp_path, capsys):
    out = tmp_path / "results"
    assert main(["compare", "--mdps", "4", "--iterations", "120", "--out", str(out)]) == 0
    assert "Confirmed: " in capsys.readouterr().out
    for form in ("pdf", "png", "svg"):
        assert (out / "figures" / f"schemes_mean.{form}").stat().st_size > 1000


def test_without_the_extra_report_figures_are_left_out_and_that_is_said_first(
    tmp_path, monkeypatch, capsys
):
    from momentum_rl.report import figure

    monkeypatch.setattr(figure, "find_spec", lambda name: None)
    words = ["--mdps", "1", "--states", "5", "--iterations", "3", "--out", str(tmp_path)]
    assert main(["bounds", *words]) == 0
    first, *_, last = capsys.readouterr().out.splitlines()
    assert first.startswith("figures      left out: report needs the extra `report`: pip install")
    assert last == f"written      {tmp_path / 'bounds.csv'}"
    assert not (tmp_path / "figures").exists()
