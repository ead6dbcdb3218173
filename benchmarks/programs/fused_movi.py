"""Agent steps per second of the fused loop while it learns: TASK WARM STEPS."""

import os
import sys
import time

import jax

from momentum_rl.envs.gymnax_env import make_gymnax
from momentum_rl.runs.config import Config
from momentum_rl.runs.presets import preset_fields
from momentum_rl.training.build import configured_learner
from momentum_rl.training.fused_loop import FusedLoop

COMMON = {"learning_starts": 1_000, "epsilon_warmup": 0, "epsilon_decay": 1}
CONFIGS = {
    "minatar": Config(
        "dqn", "MinAtar/Breakout", **{**preset_fields("minatar"), **COMMON, "epsilon_final": 0.1}
    ),
    "cartpole": Config(
        "dqn",
        "gymnax/CartPole-v1",
        hidden=(64, 64),
        batch_size=64,
        update_period=1,
        sync_period=500,
        learning_rate=1e-4,
        steps=5_000_000,
        **COMMON,
    ),
}

task, warm, steps = sys.argv[1], *map(int, sys.argv[2:4])
config = CONFIGS[task]
os.environ["NPROC"] = "1"  # as `movi train` has it
environment = make_gymnax(config.env)
learner = configured_learner(config, environment.spaces).learner
loop = FusedLoop(config, environment, learner)
loop.advance(warm)
jax.block_until_ready(loop.state)
start = time.perf_counter()
loop.advance(warm + steps)
jax.block_until_ready(loop.state)
print(steps / (time.perf_counter() - start))
assert loop.updates == (warm + steps - 1_000) // config.update_period
