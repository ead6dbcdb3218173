"""Agent steps per second of this package while it learns: host|fused|c51|dqn WARM STEPS."""

import os
import sys
import time

import jax

from momentum_rl.envs.gym_vector import make_gymnasium
from momentum_rl.envs.gymnax_env import make_gymnax
from momentum_rl.replay.uniform import UniformReplay
from momentum_rl.runs.config import Config
from momentum_rl.runs.presets import preset_fields
from momentum_rl.spaces import is_gymnax
from momentum_rl.training.build import configured_learner
from momentum_rl.training.fused_loop import FusedLoop
from momentum_rl.training.host_loop import HostLoop

task, warm, steps = sys.argv[1], *map(int, sys.argv[2:4])
if task in ("host", "fused"):
    env = "Pendulum-v1" if task == "host" else "gymnax/Pendulum-v1"
    fields = {**preset_fields("sac"), "learning_rate": 1e-3, "replay_capacity": 20_000}
    config = Config("sac", env, **{**fields, "steps": warm + steps})
else:
    fields = {**preset_fields("minatar"), "learning_starts": 1_000, "evaluate_every": 50_000}
    fields |= {"optimiser": "adam", "optimiser_epsilon": 1e-8, "loss": "squared"}
    fields |= {"epsilon_warmup": 0, "epsilon_decay": 1_000_000}
    config = Config(task, "MinAtar/Breakout", **{**fields, "steps": warm + steps})
if is_gymnax(config.env):
    os.environ["NPROC"] = "1"  # as `movi train` has it
    environment = make_gymnax(config.env)
    learner = configured_learner(config, environment.spaces).learner
    loop = FusedLoop(config, environment, learner)
else:
    environment = make_gymnasium(config.env)
    spaces = environment.spaces
    loop = HostLoop(
        config,
        environment,
        configured_learner(config, spaces).learner,
        lambda slack: UniformReplay(
            config.replay_capacity, spaces.observation, action=spaces.action
        ),
    )
    loop.begin()


def settle():
    """Waits for what was only dispatched."""
    jax.block_until_ready(loop.state if isinstance(loop, FusedLoop) else loop.learner.state)


loop.advance(warm)
settle()
start = time.perf_counter()
loop.advance(warm + steps)
settle()
print(steps / (time.perf_counter() - start))
assert loop.updates == (warm + steps) // config.update_period - (
    config.learning_starts // config.update_period
)
