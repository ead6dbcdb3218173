"""A run takes what it needs: it learns something, its replay is no larger than what it stores."""

from dataclasses import replace

import jax
import numpy as np
import optax
import pytest

from momentum_rl import cli
from momentum_rl.agents.networks import MLP, ActionValues
from momentum_rl.envs.atari import make_atari
from momentum_rl.errors import UserError
from momentum_rl.replay.uniform import slack_of
from momentum_rl.runs.config import Config
from momentum_rl.runs.sweep import Matrix
from momentum_rl.spaces import ObservationSpace
from momentum_rl.sweeps.drive import require_trainable
from momentum_rl.training.build import bytes_on_host
from momentum_rl.training.run_directory import Checkpoints
from momentum_rl.training.train import train
from tests.training.runs import ATARI, FUSED, HOST, StopAt, assert_equal_runs

BOTH = pytest.mark.parametrize("config", [HOST, FUSED], ids=["host", "fused"])
SCREEN = ObservationSpace((4, 84, 84), "uint8")


@BOTH
@pytest.mark.parametrize("more", [{}, {"n_step": 3, "num_envs": 2, "update_period": 7}])
def test_a_run_that_would_end_before_its_first_update_is_refused(config, more, tmp_path):
    config = config.replace(replay_capacity=1_000, **more)
    first = next(
        step
        for step in range(1, 999)
        if step % config.update_period == 0 and step > config.learns_after
    )
    with pytest.raises(UserError, match=rf"^steps: {first - 1}, expected at least {first}: with"):
        train(replace(config, steps=first - 1), tmp_path / "run")
    assert not (tmp_path / "run").exists()
    assert train(replace(config, steps=first), tmp_path / "run").metrics[-1]["updates"] == 1


def test_pong_for_as_many_steps_as_nothing_is_learned_in_is_one_line(tmp_path, capsys):
    words = ["dqn", "--env", "ALE/Pong-v5", "--steps", "20000"]
    assert cli.main(["train", *words, "--out", str(tmp_path / "run")]) == 2
    error = capsys.readouterr().err
    expected = "expected at least 20004: with learning_starts 20000 nothing would be learned"
    assert error == f"movi: steps: 20000, {expected}\n"
    assert not list(tmp_path.iterdir())
    matrix = Matrix(["ALE/Pong-v5"], ["dqn"], 1, "x", config={"steps": 20_000})
    with pytest.raises(UserError, match="expected at least 20004"):
        require_trainable(matrix.sweep())


def size_of(run):
    return sum(file.stat().st_size for file in (run / "replay").iterdir())


def parts(config):
    """A game whose episodes are cut, and a network that learns quickly."""
    if not config.env.startswith("ALE"):
        return {}
    network = ActionValues(SCREEN, MLP((8,)), 4)
    return {"environment": make_atari(config.env, 1, episode_steps=40), "network": network}


PONG = Config("dqn", "ALE/Breakout-v5", **{**ATARI, "steps": 120})
KINDS = {
    "host": HOST.replace(kappa=40),
    "fused": FUSED.replace(kappa=40),
    "host, n steps": HOST.replace(kappa=40, n_step=3, num_envs=2),
    "fused, n steps": FUSED.replace(kappa=40, n_step=3, num_envs=2),
    "fused, cut": FUSED.replace(kappa=40, num_envs=7),
    "atari": PONG,
}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("every", [0, 45])
def test_a_replay_larger_than_the_run_is_as_large_as_the_run(name, every, tmp_path):
    """And the results are those of the replay that was asked for."""
    config = KINDS[name].replace(checkpoint_every=every, evaluate_every=0, final_episodes=0)
    large = config.replace(replay_capacity=10**9)
    watcher = StopAt(10**9)
    ours = train(large, tmp_path / "large", watcher=watcher, **parts(config))
    held = -(-config.steps // config.num_envs) * config.num_envs
    assert any(line.startswith(f"replay of {held} transitions: ") for line in watcher.lines)
    same = config.replace(replay_capacity=held)
    theirs = train(same, tmp_path / "same", **parts(config))
    assert ours.metrics == theirs.metrics
    for a, b in zip(jax.tree.leaves(ours.agent.params), jax.tree.leaves(theirs.agent.params)):
        np.testing.assert_array_equal(a, b)
    if every and name != "atari":  # which has room for frames of more episodes
        assert size_of(tmp_path / "large") <= size_of(tmp_path / "same")
        steps = [Checkpoints(tmp_path / run).steps() for run in ("large", "same")]
        assert steps[0] == steps[1]


def test_the_replay_of_a_short_run_of_pong_takes_little():
    spaces = make_atari("ALE/Pong-v5", 1).spaces
    configs = Config("dqn", "ALE/Pong-v5", steps=30_000), Config("dqn", "ALE/Pong-v5")
    short, whole = (bytes_on_host(config, spaces, True, True) for config in configs)
    assert 30_000 * 7_056 < short < 45_000 * 7_200 < 0.05 * whole


def test_a_ring_that_is_never_filled_has_no_slack():
    assert slack_of(1_000, 50, 400) == -600
    assert slack_of(1_000, 50, 1_050) == 50
    assert slack_of(1_000, 50, 9_000) == 100


@pytest.mark.parametrize("name", [name for name in KINDS if name != "fused, cut"])
def test_a_longer_run_has_a_larger_replay_and_is_the_one_that_was_longer_at_once(name, tmp_path):
    """The replay holds a first run, and goes round in the second."""
    config = KINDS[name].replace(checkpoint_every=30, evaluate_every=0, final_episodes=0)
    first = config.replace(steps=config.steps // 2, replay_capacity=config.steps * 2 // 3)
    longer, whole = tmp_path / "longer", tmp_path / "whole"
    train(first, longer, **parts(config))
    before = size_of(longer)
    second = first.replace(steps=config.steps)
    train(second, longer, **parts(config))
    train(second, whole, **parts(config))
    assert before < size_of(longer)
    assert_equal_runs(longer, whole)


def test_a_run_of_which_the_files_grew_goes_on_at_its_own_length(tmp_path):
    """As after a kill in an extension, or of a version that took all of the capacity at once."""
    config = HOST.replace(replay_capacity=5_000)
    train(config, tmp_path / "whole")
    run = tmp_path / "run"
    with pytest.raises(BaseException):  # noqa: B017
        train(config, run, watcher=StopAt(200))
    for file in (run / "replay").iterdir():
        with file.open("ab") as opened:
            opened.write(bytes(10_000))
    train(config, run)
    assert_equal_runs(run, tmp_path / "whole")


@BOTH
def test_a_replay_that_nothing_can_use_is_removed_at_the_end(config, tmp_path):
    train(config, tmp_path / "longer")
    assert size_of(tmp_path / "longer") > 0  # the run can be made longer
    diverging = config.replace(steps=3_000)
    assert train(diverging, tmp_path / "over", optimiser=optax.sgd(1e12)).status == "diverged"
    assert not (tmp_path / "over" / "replay").exists()
    again = train(diverging, tmp_path / "over", optimiser=optax.sgd(1e12))
    assert (again.status, again.loop) == ("diverged", None)


def test_a_run_whose_last_step_was_cut_before_any_checkpoint_keeps_no_replay(tmp_path):
    train(FUSED.replace(num_envs=7, checkpoint_every=1_000), tmp_path)
    assert not Checkpoints(tmp_path).steps()
    assert not (tmp_path / "replay").exists()


@BOTH
def test_the_first_line_of_a_run_is_kappa_where_it_follows_the_steps(config, tmp_path):
    watcher, given, without = StopAt(10**9), StopAt(10**9), StopAt(10**9)
    train(config, tmp_path / "follows", watcher=watcher)
    assert watcher.lines[0] == "kappa: 15, a twentieth of the 300 steps"
    train(config.replace(kappa=15), tmp_path / "own", watcher=given)
    train(config.replace(beta_schedule="mean"), tmp_path / "mean", watcher=without)
    assert not [line for line in given.lines + without.lines if "kappa" in line]
