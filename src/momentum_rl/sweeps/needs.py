"""What the runs of a sweep take, found out in a process of its own.

Environments and networks have to be made to know it, and JAX to be started: that would stay in the
driver for the whole sweep, with its threads, and on a GPU with most of the memory.
"""

import json
import os
import subprocess
import sys
from collections.abc import Collection
from dataclasses import asdict, replace

from momentum_rl.errors import UserError, needing_agents
from momentum_rl.plumbing.reading import as_json
from momentum_rl.runs.sweep import Sweep, from_json, to_json
from momentum_rl.spaces import Spaces
from momentum_rl.training.footprint import Footprint, footprint


def needs_of(sweep: Sweep, trust: Collection[str] = ()) -> tuple[Footprint, ...]:
    """What a run of each cell takes; an environment that cannot be made is the user's mistake.

    ``trust`` are the modules that ids of environments and algorithms may name.
    """
    done = subprocess.run(
        [sys.executable, "-P", "-m", "momentum_rl.sweeps.needs", *trust],
        input=to_json(sweep),
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
    )
    if done.returncode:
        raise RuntimeError(f"momentum_rl.sweeps.needs failed:\n{done.stderr}")
    answer = json.loads(done.stdout.splitlines()[-1])
    if "error" in answer:
        raise UserError(answer["error"])
    return tuple(Footprint(**need) for need in answer["needs"])


def main(trust: Collection[str]) -> None:
    """Answers for the sweep on the standard input."""
    sweep = from_json(sys.stdin.buffer.read().decode("utf-8"))
    try:
        with needing_agents("sweep"):
            answer: dict[str, object] = {"needs": [asdict(need) for need in computed(sweep, trust)]}
    except UserError as error:
        answer = {"error": str(error)}
    print(as_json(answer))


def computed(sweep: Sweep, trust: Collection[str] = ()) -> list[Footprint]:
    """What a run of each cell takes, computed in this process."""
    from momentum_rl.envs.make import make_environment
    from momentum_rl.training.build import known_config

    spaces: dict[str, Spaces] = {}
    cells = [replace(own, config=known_config(own.config, None, trust)) for own in sweep.cells]
    for cell in cells:
        if cell.env not in spaces:
            environment = make_environment(cell.env, 1, trust=trust)
            spaces[cell.env] = environment.spaces
            environment.close()
    return [footprint(cell.config, spaces[cell.env]) for cell in cells]


if __name__ == "__main__":
    main(sys.argv[1:])
