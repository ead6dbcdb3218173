"""The command line: what it prints, what it writes, and how it says no."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest

import momentum_rl
from momentum_rl.cli import COMMANDS, command, main
from momentum_rl.mdp.solve.solution import rounding_floor


@pytest.fixture
def call(tmp_path, monkeypatch, capfd):
    """Calls ``movi`` in this process; what a process of its own would have ended with."""
    monkeypatch.setenv("COLUMNS", "200")

    def done(*words: object) -> subprocess.CompletedProcess[str]:
        arguments = [str(word) for word in words]
        try:
            status = main(arguments)
        except SystemExit as end:
            status = end.code
        return subprocess.CompletedProcess(arguments, status, *capfd.readouterr())

    return done


def process(*words: object) -> subprocess.CompletedProcess[str]:
    """``python -m momentum_rl`` in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "momentum_rl", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "COLUMNS": "200"},
    )


@pytest.fixture
def garnet_file(tmp_path):
    path = tmp_path / "garnet.npz"
    momentum_rl.save_mdp(momentum_rl.garnet(20, 3, 2, seed=5), path)
    return path


@pytest.mark.parametrize("scheme", ["avi", "movi", "dpp"])
def test_solve_writes_q_policy_and_a_bound_that_holds(call, garnet_file, tmp_path, scheme):
    out = tmp_path / "solution.npz"
    done = call("solve", garnet_file, "--scheme", scheme, "--out", out)
    assert done.returncode == 0, done.stderr
    with np.load(out) as solution:
        assert set(solution.files) == {"q", "policy", "bound", "tau"}
        assert solution["q"].shape == (20, 3)
        assert solution["policy"].shape == (20,)
        best = momentum_rl.optimum(momentum_rl.load_mdp(garnet_file)).q
        assert np.abs(solution["q"] - best).max() <= solution["bound"] <= 1e-6
        assert (best.max(1) - best[np.arange(20), solution["policy"]] < 1e-5).all()
    assert f"{scheme} (exact)" in done.stdout
    assert "tolerance 1e-06 reached" in done.stdout


def test_a_sampled_solve_is_reproducible_and_says_how_it_was_made(call, garnet_file):
    words = ("solve", garnet_file, "--scheme", "movi", "--sampled", "--iterations", 200)
    first, again = process(*words, "--seed", 3), call(*words, "--seed", 3)
    other = call(*words, "--seed", 4)
    assert first.stdout == again.stdout != other.stdout
    assert "sampled, m = 1, seed 3" in first.stdout
    assert "200 iterations" in first.stdout


def test_a_tolerance_that_is_not_reached_is_exit_status_3_and_what_was_found_is_written(
    garnet_file, tmp_path
):
    out = tmp_path / "solution.npz"
    done = process("solve", garnet_file, "--scheme", "sql", "--iterations", 50, "--out", out)
    assert done.returncode == 3
    assert "(tolerance 1e-06 NOT reached)" in done.stdout
    said = "tolerance: 1e-06, not reached in 50 iterations; --scheme avi needs the fewest"
    assert done.stderr == f"movi: {said}\n"
    with np.load(out) as solution:
        best = momentum_rl.optimum(momentum_rl.load_mdp(garnet_file)).q
        assert 1e-6 < np.abs(solution["q"] - best).max() <= solution["bound"]


def test_a_tolerance_that_float64_cannot_prove_is_said_and_soon(call, tmp_path):
    mdp, path = momentum_rl.garnet(20, 3, 2, seed=5), tmp_path / "large.npz"
    rewards = np.full((20, 3), -1e9)
    large = momentum_rl.FiniteMDP(mdp.successors, mdp.probabilities, rewards, 0.99)
    momentum_rl.save_mdp(large, path)
    done = call("solve", path)
    assert done.returncode == 3
    (line,) = done.stderr.splitlines()
    least = 4 * rounding_floor(large)
    # What was reached may be less than float64 is sure to prove: it is no contradiction.
    assert line.startswith("movi: tolerance: 1e-06, reached 0.")
    assert line.endswith("with rewards and values of this size float64 proves hardly less")
    assert float(re.search(r"reached ([\d.]+)", line)[1]) < least
    iterations = int(re.search(r"([\d,]+) iterations", done.stdout)[1].replace(",", ""))
    assert iterations < 3_000
    again = call("solve", path, "--tolerance", least)
    assert again.returncode == 0, again.stderr


def test_probabilities_in_float32_are_said_to_limit_the_certificate(tmp_path, capsys):
    mdp = momentum_rl.garnet(20, 3, 3, discount=0.99, seed=5)
    narrow = mdp.probabilities.astype(np.float32)
    path = tmp_path / "narrow.npz"
    fields = {"successors": mdp.successors, "rewards": mdp.rewards, "discount": mdp.discount}
    np.savez(path, probabilities=narrow, **fields)
    missed = np.abs(narrow.astype(float).sum(-1) - 1).max()
    assert main(["solve", str(path)]) == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(
        f"with probabilities that miss 1 by {missed:.1e} float64 proves hardly less"
    )


def test_garnet_writes_the_mdp_of_its_seed(call, tmp_path):
    out = tmp_path / "g.npz"
    assert call("mdp", "garnet", "--states", 9, "--seed", 2, "--out", out).returncode == 0
    read, made = momentum_rl.load_mdp(out), momentum_rl.garnet(9, seed=2)
    assert (read.successors == made.successors).all()
    assert (read.probabilities == made.probabilities).all()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["bogus"], "command: 'bogus'"),
        ([], "command: 'nothing'"),
        (["solve"], "FILE"),
        (["solve", "missing.npz"], "missing.npz: No such file"),
        (["solve", "x", "--scheme", "foo"], "'foo'"),
        (["solve", "x", "--iteratons", "3"], "did you mean --iterations?"),
        (["solve", "x", "--iterations", "many"], "--iterations"),
        (["mdp", "garnet", "--states", "0", "--out", "g.npz"], "states: 0, expected at least 1"),
        (["mdp", "garnet", "--branching", "9", "--states", "3", "--out", "g.npz"], "branching: 9"),
        (["mdp", "garnet", "--discount", "1", "--out", "g.npz"], "discount: 1.0"),
        (["mdp", "garnet", "--seed", "-1", "--out", "g.npz"], "seed: -1"),
        (["report", "nowhere"], "nowhere"),
    ],
)
def test_a_mistake_is_one_line_exit_status_2_and_writes_nothing(
    call, words, says, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    done = call(*words)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("movi: ")
    assert done.stderr.count("\n") == 1
    assert says in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_mistake_ends_a_process_of_its_own_in_the_same_way(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = process("solve", "missing.npz")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "movi: missing.npz: No such file or directory\n"
    assert list(tmp_path.iterdir()) == []


def test_help_lists_every_command_with_its_purpose():
    done = process("--help")
    assert done.returncode == 0
    text = done.stdout
    for words in COMMANDS:
        assert f"movi {words} " in text
        assert command(words).__doc__.splitlines()[0] in text


@pytest.mark.parametrize("words", COMMANDS)
def test_help_documents_every_option(call, words):
    done = call(*words.split(), "--help")
    assert done.returncode == 0
    text = done.stdout
    fields = set(command(words).__dataclass_fields__)
    positional = {"file", "directory", "algorithm", "run", "runs", "name", "source", "target"}
    for name in fields - positional - {"solution", "options"}:
        assert f"--{name.replace('_', '-')}" in text
    assert "(default" in text or "(required)" in text or not fields


def test_the_version_is_the_packages():
    assert process("--version").stdout == f"movi {momentum_rl.__version__}\n"
