"""What the runs of a sweep take, found out in a process of its own.

Environments and networks have to be made to know it, and JAX to be started: that would stay in the
driver for the whole sweep, with its threads, and on a GPU with most of the memory.
"""

import json
import math
import os
import subprocess
import sys
from collections.abc import Collection
from dataclasses import asdict, dataclass, replace
from typing import Any

from movi.errors import UserError
from movi.spaces import Spaces
from movi.sweeps.files import from_json, to_json
from movi.sweeps.matrix import Cell, Sweep


@dataclass(frozen=True)
class Needs:
    """What one run of a cell takes."""

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


def needs_of(sweep: Sweep, trust: Collection[str] = ()) -> tuple[Needs, ...]:
    """What a run of each cell takes; an environment that cannot be made is the user's mistake.

    ``trust`` are the modules that ids of environments and algorithms may name.
    """
    done = subprocess.run(
        [sys.executable, "-P", "-m", "movi.sweeps.needs", *trust],
        input=to_json(sweep, ""),
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
    )
    if done.returncode:
        raise RuntimeError(f"movi.sweeps.needs failed:\n{done.stderr}")
    answer = json.loads(done.stdout.splitlines()[-1])
    if "error" in answer:
        raise UserError(answer["error"])
    return tuple(Needs(**need) for need in answer["needs"])


def main(trust: Collection[str]) -> None:
    """Answers for the sweep on the standard input."""
    sweep = from_json(sys.stdin.buffer.read().decode("utf-8")).sweep
    try:
        answer: dict[str, object] = {"needs": [asdict(need) for need in computed(sweep, trust)]}
    except UserError as error:
        answer = {"error": str(error)}
    print(json.dumps(answer))


def computed(sweep: Sweep, trust: Collection[str] = ()) -> list[Needs]:
    """What a run of each cell takes, computed in this process."""
    from movi.envs.make import make_environment
    from movi.training.train import known_config

    spaces: dict[str, Spaces] = {}
    cells = [replace(own, config=known_config(own.config, None, trust)) for own in sweep.cells]
    for cell in cells:
        if cell.env not in spaces:
            environment = make_environment(cell.env, 1, trust=trust)
            spaces[cell.env] = environment.spaces
            environment.close()
    return [_needs(cell, spaces[cell.env]) for cell in cells]


def _needs(cell: Cell, spaces: Spaces) -> Needs:
    import jax

    from movi.envs.atari import is_atari
    from movi.envs.gymnax_env import is_gymnax
    from movi.replay import device, frames, uniform
    from movi.replay.interface import slack_of
    from movi.training.train import default_learner

    config, space, fused = cell.config, spaces.observation, is_gymnax(cell.env)
    slack = slack_of(config.replay_capacity, config.checkpoint_every)
    kept = config.checkpoint_every > 0
    room = frames if is_atari(cell.env) else uniform
    row = device.packed_space(space) if fused else space
    n = 1 if fused else config.n_step  # compiled loops keep nothing more for n steps
    files = room.bytes_of(config.replay_capacity, row, slack, mapped=True, n_step=n) if kept else 0
    if fused:
        replay = config.replay_capacity * device.bytes_per_transition(space)
    else:
        replay = files or room.bytes_of(config.replay_capacity, space, n_step=n)
    state = jax.eval_shape(default_learner(config, spaces).init, jax.random.key(0))
    agent = _bytes(state.online)
    # Two checkpoints and one that is being written.
    disk = files + agent + 3 * _bytes(state) if kept else agent
    return Needs(replay, 0 if kept and not fused else replay, disk, agent, fused)


def _bytes(tree: Any) -> int:
    import jax

    return sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))


if __name__ == "__main__":
    main(sys.argv[1:])
