"""SIGKILL at random instants: the run that went on equals the one that was never stopped."""

import json
import os
import random
import signal
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

import momentum_rl
from momentum_rl.runs.config import Config
from tests.training.runs import ATARI, TINY, assert_equal_runs

SEEDS = [3, 4]
KINDS = {
    "host": (Config("momentum-dqn", "CartPole-v1", **TINY), None),
    "host, three environments": (
        Config("deep-sql", "CartPole-v1", num_envs=3, n_step=3, **TINY),
        None,
    ),
    "fused": (Config("momentum-dqn", "gymnax/CartPole-v1", **TINY), None),
    "fused, two seeds": (Config("dqn", "gymnax/CartPole-v1", num_envs=2, n_step=3, **TINY), SEEDS),
    "atari": (Config("momentum-dqn", "ALE/Breakout-v5", **ATARI), None),
    "host, sac": (Config("momentum-sac", "Pendulum-v1", num_envs=2, **TINY), None),
    "fused, sac": (Config("sac", "gymnax/Pendulum-v1", **TINY), None),
}


class Zygote:
    """Runs jobs in processes that can be killed; see zygote.py."""

    def __init__(self, directory):
        environment = {
            **os.environ,
            "PYTHONPATH": str(Path(momentum_rl.__file__).parents[1]),
            "JAX_COMPILATION_CACHE_DIR": str(directory / "compiled"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
            "PYTHONWARNINGS": "ignore",
        }
        self.errors = (directory / "errors").open("w+")
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("zygote.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            env=environment,
        )

    def run(self, config, out, seeds, **kill):
        """The exit status of a run, and its seconds."""
        fields = {**asdict(config), "hidden": list(config.hidden)}
        job = {"config": fields, "out": str(out), "seeds": seeds, **kill}
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        self.begun = answer["begun"]
        return os.waitstatus_to_exitcode(answer["status"]), answer["seconds"]

    def said(self):
        self.errors.seek(0)
        return self.errors.read()

    def close(self):
        self.process.stdin.close()
        self.process.wait(60)
        self.errors.close()


@pytest.fixture(scope="module")
def zygote(tmp_path_factory):
    process = Zygote(tmp_path_factory.mktemp("zygote"))
    yield process
    process.close()


def directories(out, seeds):
    return [out] if seeds is None else [out / f"seed-{seed}" for seed in seeds]


def kill_and_compare(zygote, tmp_path, kind, kills, seed=0):
    config, seeds = KINDS[kind]
    rng = random.Random(f"{kind} {seed}")
    assert zygote.run(config, tmp_path / "whole", seeds)[0] == 0, zygote.said()
    whole = zygote.run(config, tmp_path / "again", seeds)[1]  # with everything compiled
    uncut = directories(tmp_path / "whole", seeds)
    killed = ends = late = 0
    out = tmp_path / "killed-0"
    while killed < kills:
        # A fused run's first checkpoint comes after a long compilation, which most kills would hit.
        after = "fused" in kind and rng.random() < 0.8
        if rng.random() < 0.5:
            how = {"sync": rng.randint(1, 120)}
        else:
            how = {"delay": rng.uniform(0, 0.7 * whole if after else whole)}
        status, _ = zygote.run(config, out, seeds, after=after, **how)
        assert status in (0, -signal.SIGKILL), zygote.said()
        killed += status != 0
        late += status != 0 and after and zygote.begun
        if status == 0:
            ends += 1
            for ours, theirs in zip(
                directories(out, seeds), directories(tmp_path / "whole", seeds)
            ):
                assert_equal_runs(ours, theirs)
            out = tmp_path / f"killed-{ends}"
    assert zygote.run(config, out, seeds)[0] == 0, zygote.said()
    for ours, theirs in zip(directories(out, seeds), uncut):
        assert_equal_runs(ours, theirs)
    if "fused" in kind:
        assert late > killed / 2, f"{late} of {killed} kills after a checkpoint"
    return killed


@pytest.mark.parametrize(
    ("kind", "kills"),
    [
        ("host", 5),
        ("host, three environments", 3),
        ("fused", 3),
        ("fused, two seeds", 3),
        ("host, sac", 1),
        ("fused, sac", 1),
    ],
)
def test_a_run_killed_again_and_again_equals_the_one_that_was_not(zygote, tmp_path, kind, kills):
    """A dozen kills and more, half of them aimed at what puts files on the disk."""
    assert kill_and_compare(zygote, tmp_path, kind, kills) == kills


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "kills"),
    [
        ("host", 25),
        ("host, three environments", 15),
        ("fused", 30),
        ("fused, two seeds", 30),
        ("atari", 10),
        ("host, sac", 50),
        ("fused, sac", 50),
    ],
)
def test_more_than_a_hundred_kills(zygote, tmp_path, kind, kills):
    assert kill_and_compare(zygote, tmp_path, kind, kills, seed=1) == kills
