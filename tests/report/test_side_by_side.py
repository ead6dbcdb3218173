"""`movi compare`: the scores of runs side by side."""

import itertools

import numpy as np
import pytest

from momentum_rl.cli import main
from momentum_rl.runs.config import Config
from tests.report.synthetic_runs import write_run

STEPS = {"steps": 20_000, "iteration_steps": 5_000}


@pytest.fixture
def runs(tmp_path):
    """Three runs of DQN, one of Momentum-DQN, and half of one on another environment."""
    for seed, level in enumerate([1.0, 2.0, 6.0]):
        config = Config("dqn", "CartPole-v1", seed=seed, evaluate_every=10_000, **STEPS)
        scores = level + np.array([0.0, 1.0, 2.0, 3.0])
        greedy = [10 * level, 20 * level]
        path = tmp_path / "many" / f"dqn-{seed}"
        write_run(path, config, scores, evaluation=100 * level, greedy=greedy)
    write_run(tmp_path / "one", Config("momentum-dqn", "CartPole-v1", **STEPS), [4, 4, 4, 8])
    half = Config("dqn", "Acrobot-v1", **STEPS)
    write_run(tmp_path / "half", half, [1, 2], status="running")
    return tmp_path


def table(out, name):
    """The lines below an environment's, by their first word."""
    lines = out.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(name))
    rows = itertools.takewhile(bool, lines[start + 1 :])
    return {row.split("  ")[0]: " ".join(row.split()[1:]) for row in rows}


def test_means_and_intervals_over_seeds_are_the_ones_by_hand(runs, capsys):
    assert main(["compare", str(runs / "many"), str(runs / "one")]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    rows = table(out, "CartPole-v1")
    # Levels 1, 2, 6: a bootstrap mean of three lies between that of (1, 1, 1) and (6, 6, 6), each
    # drawn with probability 1/27 > 2.5 %. Areas: level + 1.5, and 15 × level.
    assert rows["DQN"] == "3 20,000 300 [100, 600] 4.5 [2.5, 7.5] 45 [15, 90]"
    assert rows["Momentum-DQN"] == "1 20,000 – 5 –"  # one run has no interval


def test_runs_that_have_not_ended_are_counted_and_not_averaged(runs, capsys):
    assert main(["compare", str(runs)]) == 0
    out, _ = capsys.readouterr()
    assert table(out, "Acrobot-v1")["DQN"] == "1 (1 unfinished) 20,000 – – –"
    assert "CartPole-v1" in out


def test_environments_of_one_name_are_told_apart(runs, capsys):
    other = Config("dqn", "gymnax/CartPole-v1", **STEPS)
    write_run(runs / "other", other, [1, 1, 1, 5])
    assert main(["compare", str(runs / "one"), str(runs / "other")]) == 0
    out, _ = capsys.readouterr()
    assert table(out, "CartPole-v1 (Gymnasium)")["Momentum-DQN"] == "1 20,000 – 5 –"
    assert table(out, "CartPole-v1 (gymnax)")["DQN"] == "1 20,000 – 2 –"


def test_a_run_that_is_named_twice_counts_once(runs, capsys):
    assert main(["compare", str(runs / "one"), str(runs / "one")]) == 0
    assert table(capsys.readouterr().out, "CartPole-v1")["Momentum-DQN"].startswith("1 ")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "runs"),
        (["nowhere"], "nowhere: no such directory"),
        (["."], ".: no runs, expected run directories or a sweep"),
    ],
)
def test_a_mistake_is_one_line(words, says, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["compare", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert says in err
