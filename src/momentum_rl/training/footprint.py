"""How much memory and disk a run takes."""

import math
from dataclasses import dataclass
from typing import Any

from momentum_rl.runs.config import Config
from momentum_rl.spaces import Spaces


@dataclass(frozen=True)
class Footprint:
    """What one run takes."""

    replay: int
    """Bytes of its replay, all of which it wants in memory."""
    memory: int
    """Bytes of its replay that must be in memory; the rest is mapped from files."""
    disk: int
    """Bytes of its run directory while it is under way."""
    results: int
    """Bytes of its run directory in the end, but for the metrics."""
    fused: bool
    """Whether the environment is compiled with the agent, so that seeds can train together."""


def footprint(config: Config, spaces: Spaces) -> Footprint:
    """What a run of a config takes, on an environment of these spaces."""
    import jax

    from momentum_rl.envs.atari import is_atari
    from momentum_rl.envs.gymnax_env import is_gymnax
    from momentum_rl.replay import device, frames, uniform
    from momentum_rl.training.build import check_learns, configured_learner
    from momentum_rl.training.replays import slack_for

    check_learns(config)
    space, fused, capacity = spaces.observation, is_gymnax(config.env), config.replay_capacity
    in_files = config.checkpoint_every > 0
    slack = slack_for(config, in_files)
    storage = frames if is_atari(config.env) else uniform
    row = device.packed_space(space) if fused else space
    n = 1 if fused else config.n_step  # compiled loops store nothing more for n steps
    own: dict[str, Any] = {"n_step": n, "action": spaces.action}
    files = storage.bytes_of(capacity, row, slack, mapped=True, **own) if in_files else 0
    if fused:
        replay = config.replay_size * device.bytes_per_transition(space, spaces.action)
    else:
        replay = files or storage.bytes_of(capacity, space, slack, **own)
    state = jax.eval_shape(configured_learner(config, spaces).learner.init, jax.random.key(0))
    agent = _bytes(state.online)
    best = agent if config.evaluate_every else 0  # in a file, and in each checkpoint
    # Two checkpoints and one that is being written.
    disk = files + agent + best + (3 * (_bytes(state) + best) if in_files else 0)
    return Footprint(replay, 0 if in_files and not fused else replay, disk, agent + best, fused)


def _bytes(tree: Any) -> int:
    import jax

    return sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))
