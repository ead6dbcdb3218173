"""The best agent of a run that is evaluated on its way: which it is, and that it survives."""

from dataclasses import replace

import jax
import numpy as np
import pytest

import momentum_rl
from momentum_rl import cli
from momentum_rl.errors import UserError
from momentum_rl.runs.config import Config
from momentum_rl.runs.files import read_evaluations, read_metrics
from momentum_rl.training.evaluation import Evaluation
from momentum_rl.training.run_directory import Checkpoints, Saved, encoded
from momentum_rl.training.train import Watcher, train, train_seeds
from tests.training.runs import TINY, assert_equal_runs

SCORES = {50: 3.0, 100: 7.0, 150: 7.0, 200: 5.0, 250: 8.0, 300: 1.0}
"""What the evaluations say, by agent step; the first of two equal ones counts."""
SHORT = {**TINY, "steps": 300, "iteration_steps": 50, "evaluate_every": 50, "checkpoint_every": 45}
HOST = Config("dqn", "CartPole-v1", **SHORT)
LOOPS = {"host": HOST, "fused": replace(HOST, env="gymnax/CartPole-v1")}


@pytest.fixture
def scored(monkeypatch):
    """Evaluations on the way that have these scores; a dictionary that a test may change."""
    scores = dict(SCORES)

    def evaluated(agent, environment, episodes, *, at, **rest):
        return Evaluation([scores.get(at, 0.0), scores.get(at, 0.0) + 2.0], [1, 1])

    monkeypatch.setattr("momentum_rl.training.train.evaluate", evaluated)
    return scores


class StopAt(Watcher):
    """Something that goes wrong at a step, after having looked at a file."""

    def __init__(self, step, file=None):
        self.step, self.file, self.first = step, file, None

    def progress(self, loop):
        if self.first is None and self.file is not None:
            self.first = momentum_rl.load(self.file).about["step"] if self.file.exists() else 0
        if loop.step >= self.step:
            raise InterruptedError


def assert_equal_parameters(ours, theirs):
    for a, b in zip(jax.tree.leaves(ours.params), jax.tree.leaves(theirs.params), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("loop", LOOPS)
def test_it_is_the_agent_of_the_step_with_the_highest_evaluation(loop, scored, tmp_path):
    """And has the parameters of a run that ended there."""
    result = train(LOOPS[loop], tmp_path / "run")
    shorter = train(replace(LOOPS[loop], steps=250), tmp_path / "shorter")
    best = momentum_rl.load(tmp_path / "run", best=True)
    assert best.about["step"] == 250
    assert best.about["evaluation"] == {"episodes": 2, "mean": 9.0, "std": 1.0}
    assert "step 250, evaluated at 9" in repr(best)
    assert_equal_parameters(best, shorter.agent)
    assert_equal_parameters(best, result.best)
    assert_equal_parameters(momentum_rl.load(tmp_path / "run" / "best.safetensors"), best)
    assert momentum_rl.load(tmp_path / "run").about["step"] == 300
    # Of two that are equal it is the first; and a run that has ended is read from its files.
    scored[250] = 7.0
    result = train(LOOPS[loop], tmp_path / "equal")
    assert result.best.about["step"] == 100
    assert train(LOOPS[loop], tmp_path / "equal").best.about["step"] == 100


@pytest.mark.parametrize("loop", LOOPS)
def test_a_run_that_was_broken_off_has_the_same_one(loop, scored, tmp_path):
    config = LOOPS[loop]
    train(config, tmp_path / "whole")
    file = tmp_path / "broken" / "best.safetensors"
    resumed_at = []
    for step in (60, 130, 205, 260):
        watcher = StopAt(step, file)
        with pytest.raises(InterruptedError):
            train(config, tmp_path / "broken", watcher=watcher)
        resumed_at.append(watcher.first)
    # The checkpoints were of the steps 45, 90, 180: the agents of 50, 100 were found again.
    assert resumed_at == [0, 0, 50, 100] if loop == "host" else resumed_at[0] == 0
    train(config, tmp_path / "broken")
    assert_equal_runs(tmp_path / "broken", tmp_path / "whole")
    assert file.read_bytes() == (tmp_path / "whole" / "best.safetensors").read_bytes()


def test_what_was_found_after_the_checkpoint_is_forgotten_with_it(scored, tmp_path):
    """The agent of step 250 is written, and the run killed; the second time it is worse."""
    with pytest.raises(InterruptedError):
        train(HOST, tmp_path, watcher=StopAt(255))
    assert momentum_rl.load(tmp_path, best=True).about["step"] == 250
    assert Checkpoints(tmp_path).steps()[-1] == 225
    scored[250] = 0.0
    assert train(HOST, tmp_path).best.about["step"] == 100
    assert momentum_rl.load(tmp_path, best=True).about["step"] == 100


def test_a_longer_run_forgets_the_evaluation_that_was_due_only_at_the_shorter_ones_end(
    scored, tmp_path
):
    config = replace(HOST, iteration_steps=40)  # 120, 160, 200, 240, 280, 300 in a run of 300
    scored.update({300: 9.0, 320: 2.0})
    assert train(config, tmp_path).best.about["step"] == 300
    longer = train(replace(config, steps=330), tmp_path)
    rows = read_evaluations(tmp_path)
    assert 300 not in [row["step"] for row in rows]
    best = max(rows, key=lambda row: row["mean"])
    assert longer.best.about["step"] == best["step"]


def test_a_run_of_a_version_that_kept_none_has_one_when_it_is_beaten(scored, tmp_path):
    """Checkpoints without it, and rows of evaluations that were higher than what comes."""

    def forget(run):
        for step in Checkpoints(run).steps():
            saved = Checkpoints(run).read(step)
            arrays = {name: a for name, a in saved.arrays.items() if name != "best"}
            Checkpoints(run).file(step).write_bytes(encoded(Saved(arrays, saved.state)))
        (run / "best.safetensors").unlink()

    for run, step in ((tmp_path / "beaten", 210), (tmp_path / "kept", 280)):
        with pytest.raises(InterruptedError):
            train(HOST, run, watcher=StopAt(step))
        forget(run)
    assert train(HOST, tmp_path / "beaten").best.about["step"] == 250
    assert train(HOST, tmp_path / "kept").best is None
    assert not (tmp_path / "kept" / "best.safetensors").exists()


def test_seeds_keep_each_their_own(tmp_path):
    outs = [tmp_path / "3", tmp_path / "4"]
    results = train_seeds(LOOPS["fused"], [3, 4], outs)
    for out, result in zip(outs, results):
        rows = read_evaluations(out)
        best = max(rows, key=lambda row: row["mean"])  # max takes the first
        kept = momentum_rl.load(out, best=True)
        assert (kept.about["step"], kept.about["seed"]) == (best["step"], int(out.name))
        assert kept.about["evaluation"]["mean"] == best["mean"]
        assert_equal_parameters(kept, result.best)


def test_training_does_not_notice_it_and_without_evaluations_there_is_none(scored, tmp_path):
    train(HOST, tmp_path / "with")
    result = train(replace(HOST, evaluate_every=0), tmp_path / "without")
    ours, theirs = (tmp_path / run / "agent.safetensors" for run in ("with", "without"))
    assert ours.read_bytes() == theirs.read_bytes()
    rows = [{**row, "bias": None} for row in read_metrics(tmp_path / "with")]
    assert rows == [{**row, "bias": None} for row in read_metrics(tmp_path / "without")]
    assert result.best is None
    with pytest.raises(UserError, match=r"no best.safetensors, expected .*--evaluate-every"):
        momentum_rl.load(tmp_path / "without", best=True)
    with pytest.raises(UserError, match=r"best: .*agent.safetensors is an agent's file"):
        momentum_rl.load(tmp_path / "with" / "agent.safetensors", best=True)
    with pytest.raises(UserError, match="no such file"):
        momentum_rl.load(tmp_path / "nowhere", best=True)


def test_the_commands_take_it_by_one_word(tmp_path, capsys):
    """The last agent and the best one are evaluated and exported as what they are."""
    run = tmp_path / "run"
    words = ["--iteration-steps", "50", "--evaluate-every", "50", "--periodic-episodes", "3"]
    small = ["--steps", "200", "--learning-starts", "20", "--hidden", "8", "--seed", "1"]
    assert (
        cli.main(["train", "dqn", "--env", "CartPole-v1", "--out", str(run), *words, *small]) == 0
    )
    rows = read_evaluations(run)
    best = max(rows, key=lambda row: row["mean"])
    line = f"best: {run / 'best.safetensors'}, of step {best['step']}, mean {best['mean']:.1f}"
    assert f"{line} over 3 episodes\n" in capsys.readouterr().out

    def printed(*options):
        assert cli.main(["evaluate", str(run), "--episodes", "3", *options]) == 0
        return capsys.readouterr().out

    by_file = cli.main(["evaluate", str(run / "best.safetensors"), "--episodes", "3"])
    assert (by_file, capsys.readouterr().out) == (0, printed("--best"))
    for options, name in (((), "agent"), (("--best",), "best")):
        file = tmp_path / f"{name}.safetensors"
        assert cli.main(["export", str(run), str(file), *options]) == 0
        assert file.read_bytes() == (run / f"{name}.safetensors").read_bytes()


def test_a_best_agent_that_another_file_stands_for_is_one_line(tmp_path, capsys):
    """The last agent's file says nothing of an evaluation on the way."""
    run = tmp_path / "run"
    train(HOST, run)
    (run / "best.safetensors").write_bytes((run / "agent.safetensors").read_bytes())
    capsys.readouterr()
    assert cli.main(["resume", str(run)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "best.safetensors: no evaluation, expected" in error
    assert "evaluated at" not in repr(momentum_rl.load(run, best=True))
