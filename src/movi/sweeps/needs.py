"""What the runs of a sweep take, found out in a process of its own.

Environments and networks have to be made to know it, and JAX to be started: that would stay in the
driver for the whole sweep, with its threads, and on a GPU with most of the memory.
"""

import json
import math
import os
import subprocess
import sys
from dataclasses import asdict, dataclass

from movi.errors import UserError
from movi.spaces import Spaces
from movi.sweeps.files import from_json, to_json
from movi.sweeps.matrix import Cell, Sweep


@dataclass(frozen=True)
class Needs:
    """What one run of a cell takes."""

    replay: int
    """Bytes of memory for its replay."""
    disk: int
    """Bytes of its run directory, while a checkpoint replaces the one before."""
    fused: bool
    """Whether the environment is compiled with the agent, so that seeds can train together."""


def needs_of(sweep: Sweep) -> tuple[Needs, ...]:
    """What a run of each cell takes; an environment that cannot be made is the user's mistake."""
    done = subprocess.run(
        [sys.executable, "-m", "movi.sweeps.needs"],
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


def main() -> None:
    """Answers for the sweep on the standard input."""
    sys.stdin.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    sweep = from_json(sys.stdin.read()).sweep
    try:
        answer: dict[str, object] = {"needs": [asdict(need) for need in computed(sweep)]}
    except UserError as error:
        answer = {"error": str(error)}
    print(json.dumps(answer))


def computed(sweep: Sweep) -> list[Needs]:
    """What a run of each cell takes, computed in this process."""
    from movi.agents.algorithms import deep_algorithm
    from movi.envs.make import make_environment

    spaces: dict[str, Spaces] = {}
    for cell in sweep.cells:
        deep_algorithm(cell.config.algorithm, cell.config.sign)
        if cell.env not in spaces:
            environment = make_environment(cell.env, 1)
            spaces[cell.env] = environment.spaces
            environment.close()
    return [_needs(cell, spaces[cell.env]) for cell in sweep.cells]


def _needs(cell: Cell, spaces: Spaces) -> Needs:
    import jax
    import numpy as np

    from movi.agents.algorithms import deep_algorithm
    from movi.agents.networks import make_network
    from movi.envs.atari import is_atari
    from movi.envs.gymnax_env import is_gymnax
    from movi.replay import device, frames, uniform
    from movi.training.train import network_spec

    config, space = cell.config, spaces.observation
    fused = is_gymnax(cell.env)
    if is_atari(cell.env):
        replay = frames.bytes_of(config.replay_capacity, space)
    else:
        room = device if fused else uniform
        replay = config.replay_capacity * room.bytes_per_transition(space)
    network = make_network(network_spec(config, spaces), spaces)
    seen = jax.ShapeDtypeStruct(space.shape, np.dtype(space.dtype))
    shapes = jax.eval_shape(network.init, jax.random.key(0), seen)
    parameters = 4 * sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(shapes))
    networks = len(deep_algorithm(config.algorithm, config.sign).targets)
    # Online, two lagged copies and two moments of the optimiser at most; beside them the agent.
    state = 5 * networks * parameters
    return Needs(replay, networks * parameters + 2 * (state + replay), fused)


if __name__ == "__main__":
    main()
