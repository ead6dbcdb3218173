"""Runs on JAX-native environments as users meet them: directories, seeds, ends, commands."""

import errno
import json
import os
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from momentum_rl import cli
from momentum_rl.agents.agent import load
from momentum_rl.errors import UserError
from momentum_rl.runs.config import Config
from momentum_rl.runs.files import read_config, read_metrics, read_status
from momentum_rl.runs.presets import preset_fields
from momentum_rl.training.train import Watcher, train, train_seeds
from tests.training.diagnostics import OneState, vector
from tests.training.jax_diagnostics import CONSTANT, episodic, one_state, zero

TINY = {
    "steps": 120,
    "iteration_steps": 50,
    "learning_starts": 20,
    "replay_capacity": 100,
    "batch_size": 4,
    "update_period": 1,
    "sync_period": 9,
    "hidden": (8,),
    "final_episodes": 2,
}
FILES = {
    "agent.safetensors",
    "checkpoint",
    "config.json",
    "evaluation.json",
    "metrics.jsonl",
    "replay",
    "status.json",
    "timing.jsonl",
    "versions.json",
}


class Counting(Watcher):
    def __init__(self):
        self.chunks = []

    def progress(self, loop):
        self.chunks.append(loop.step)


@pytest.mark.parametrize("directory", [False, True])
def test_without_checkpoints_a_chunk_has_a_thousand_steps(directory, tmp_path):
    fields = {**TINY, "steps": 2_500, "iteration_steps": 2_500, "update_period": 100}
    config = Config("dqn", "gymnax/CartPole-v1", **fields, checkpoint_every=0)
    watcher = Counting()
    train(config, tmp_path / "run" if directory else None, watcher=watcher)
    assert watcher.chunks == [1_000, 2_000, 2_500]


def words(**fields):
    return [
        word
        for name, value in fields.items()
        for word in (
            f"--{name.replace('_', '-')}",
            *(map(str, value) if isinstance(value, tuple) else [str(value)]),
        )
    ]


def test_the_command_trains_all_seeds_each_in_a_run_directory_of_its_own(tmp_path, capsys):
    out = tmp_path / "runs"
    arguments = ["train", "momentum-dqn", "--env", "gymnax/CartPole-v1", "--seeds", "2"]
    assert cli.main([*arguments, "--seed", "5", *words(out=out, **TINY)]) == 0
    assert sorted(path.name for path in out.iterdir()) == ["seed-5", "seed-6"]
    for seed in (5, 6):
        run = out / f"seed-{seed}"
        files = {p.name for p in run.iterdir() if not p.name.startswith("events")}
        assert files == FILES
        assert read_config(run).seed == seed
        assert [row["step"] for row in read_metrics(run)] == [50, 100, 120]
        assert json.loads((run / "status.json").read_text())["status"] == "finished"
        assert load(run).about["seed"] == seed
    assert capsys.readouterr().out.count("finished 120 steps") == 2
    assert cli.main(["evaluate", str(out / "seed-5"), "--episodes", "2"]) == 0
    assert "mean" in capsys.readouterr().out
    # The same again finds its results there; another run is refused before anything is trained.
    assert cli.main([*arguments, "--seed", "5", *words(out=out, **TINY)]) == 0
    assert capsys.readouterr().out.count("had already finished its 120 steps") == 2
    other = words(out=out, **{**TINY, "batch_size": 5})
    assert cli.main([*arguments, "--seed", "5", *other]) == 2
    assert "holds another run: batch_size is 4 there and 5 here" in capsys.readouterr().err


def test_the_same_seed_twice_gives_equal_bytes(tmp_path):
    config = Config("dqn", "gymnax/CartPole-v1", **TINY)
    for name in "ab":
        train(config, tmp_path / name)
    for file in ("metrics.jsonl", "agent.safetensors", "config.json", "evaluation.json"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_a_run_that_diverges_ends_as_a_result_and_the_other_seeds_go_on(tmp_path):
    # Rewards of 1e30 overflow squares at once; the other environment is harmless.
    explosive = episodic(zero, lambda x, t, a: 1e30)
    config = Config("dqn", "explosive", **{**TINY, "loss": "squared"})
    result = train(config, tmp_path / "run", environment=explosive)
    assert (result.status, result.step) == ("diverged", 21)
    status = read_status(tmp_path / "run")
    assert (status.status, status.step, status.message) == ("diverged", 21, "diverged at step 21")
    assert [row["step"] for row in result.metrics] == [50]
    assert result.metrics[0]["loss_q"] is None
    for leaf in (result.agent.params["q"]["Dense_0"]["kernel"],):
        assert np.isfinite(leaf).all()


def test_only_the_seeds_that_diverge_end_early():
    # Some episodes start at 1e30, which a seed meets in 120 steps or does not.
    wild = episodic(
        lambda key: jnp.where(jax.random.bernoulli(key, 0.005), 1e30, 0.0), lambda x, t, a: x
    )
    config = Config("dqn", "wild", **{**TINY, "loss": "squared", "final_episodes": 0})
    seeds = list(range(4))
    together = train_seeds(config, seeds, environment=wild)
    alone = [train_seeds(config, [seed], environment=wild)[0] for seed in seeds]
    assert [r.status for r in together] == [r.status for r in alone]
    assert [r.step for r in together] == [r.step for r in alone]
    assert {r.status for r in together} == {"diverged", "finished"}
    for one, other in zip(together, alone):
        assert [row["step"] for row in one.metrics] == [row["step"] for row in other.metrics]


def test_seeds_must_differ():
    with pytest.raises(UserError, match=r"seeds: .*expected at least one, all different"):
        train_seeds(Config("dqn", "x", **TINY), [1, 1], environment=CONSTANT)


@pytest.mark.parametrize("env", ["MinAtar/Pong", "gymnax/Nope"])
def test_an_unknown_environment_is_one_line_and_nothing_is_written(env, tmp_path, capsys):
    out = tmp_path / "run"
    assert cli.main(["train", "dqn", "--env", env, "--out", str(out), "--seeds", "2"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert env in error
    assert not out.exists()


def test_a_replay_that_cannot_fit_is_said_before_anything_is_written(tmp_path):
    long = {"steps": 2**31 - 1, "replay_capacity": 2**31 - 1}
    config = Config("dqn", "gymnax/CartPole-v1", **{**TINY, **long})
    with pytest.raises(UserError, match="replay of 2,147,483,647 transitions: needs"):
        train_seeds(config, range(4), [tmp_path / str(i) for i in range(4)])
    assert list(tmp_path.iterdir()) == []


def test_the_minatar_preset_is_as_stated():
    fields = preset_fields("minatar")
    config = Config("momentum-dqn", "MinAtar/Breakout", **{**fields, "steps": 1_000_000})
    stated = {
        "network": "minatar",
        "replay_capacity": 100_000,
        "batch_size": 32,
        "learning_starts": 5_000,
        "sync_period": 1_000,
        "epsilon_decay": 100_000,
        "epsilon_final": 0.1,
        "update_period": 4,
        "optimiser": "rmsprop",
        "learning_rate": 2.5e-4,
        "optimiser_epsilon": 1e-5,
        "loss": "huber",
    }
    assert config.options.kappa is None
    assert {name: getattr(config, name) for name in stated} == stated
    assert [config.beta_of(50_000 * n) for n in range(3)] == [0, 1 / 2, 2 / 3]  # κ = steps / 20


def test_what_a_compiled_loop_has_no_use_for_is_refused():
    def hosted(n):
        return vector([lambda: OneState(3, truncate=True)] * n)

    config = Config("dqn", "mine", **TINY)
    with pytest.raises(UserError, match="not with a JaxEnvironment"):
        train(config, environment=one_state(3, truncate=True), make_environment=hosted)


def open_files():
    return len(list(Path("/dev/fd").iterdir()))


def test_the_files_of_a_seed_are_closed_before_the_next_begins(tmp_path):
    config = Config("dqn", "gymnax/CartPole-v1", **TINY).replace(
        checkpoint_every=100, evaluate_every=100, periodic_episodes=1
    )
    counted = {}

    class Count(Watcher):
        def progress(self, loop):
            counted[loop.config.seed] = open_files()

    before = open_files()
    seeds = range(3)
    train_seeds(config, seeds, [tmp_path / str(seed) for seed in seeds], watcher=Count())
    # The lock, rows of three kinds and TensorBoard's; and of every result's loop its replay.
    assert all(counted[seed] - before <= 7 + 2 * seed for seed in seeds)


def test_what_stops_a_run_at_its_beginning_is_said_and_not_what_it_left(tmp_path, monkeypatch):
    """Too many open files, for example, of which the replay's cannot be removed either."""

    def begin(self):
        self._directory.mkdir()
        (self._directory / "of others").touch()
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr("momentum_rl.training.fused_loop.FusedLoop.begin", begin)
    monkeypatch.setattr("shutil.rmtree", lambda *_, **__: None)
    with pytest.raises(OSError, match="Too many open files"):
        train(
            Config("dqn", "gymnax/CartPole-v1", **TINY).replace(checkpoint_every=100),
            tmp_path / "run",
        )
