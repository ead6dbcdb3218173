"""No leak: memory is flat once the replay is full, with checkpoints, in both loops."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import momentum_rl

SCRIPT = """
import resource, sys
from momentum_rl.runs.config import Config
from momentum_rl.training.train import Watcher
from momentum_rl.training.train import train

class Memory(Watcher):
    seen = []
    def row(self, row):
        with open("/proc/self/statm") as file:
            self.seen.append(int(file.read().split()[1]) * resource.getpagesize())

memory = Memory()
train(Config("dqn", sys.argv[2], steps=int(sys.argv[1]), iteration_steps=2_000,
             replay_capacity=2_000, learning_starts=100, update_period=4, hidden=(16,),
             final_episodes=0, checkpoint_every=500), sys.argv[3], watcher=memory)
print(memory.seen[4], memory.seen[-1])  # from the first look at the networks on
"""


@pytest.mark.parametrize(
    ("steps", "env"),
    [
        (16_000, "CartPole-v1"),
        pytest.param(210_000, "CartPole-v1", marks=pytest.mark.slow),
        pytest.param(210_000, "gymnax/CartPole-v1", marks=pytest.mark.slow),
    ],
)
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads Linux's /proc")
def test_memory_is_flat_after_the_replay_is_full(steps, env, tmp_path):
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(steps), env, str(tmp_path / "run")],
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
        env={**os.environ, "PYTHONPATH": str(Path(momentum_rl.__file__).parents[1])},
    )
    early, late = map(int, result.stdout.split())
    assert late - early < 8 * 2**20
