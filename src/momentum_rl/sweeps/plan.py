"""The jobs of a sweep: a job is what one worker process does, a run.

Each has a log in the sweep's directory, what its workers printed, one after the other:

logs/ENV/LABEL/seed-N.txt
"""

import shutil
from collections.abc import Collection, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from momentum_rl.errors import UserError
from momentum_rl.runs.sweep import Cell, Sweep, read_sweep, run_directory


@dataclass(frozen=True)
class Job:
    """A run of a cell."""

    index: int
    """The number of the cell in the sweep."""
    cell: Cell
    seed: int

    def run(self, directory: Path) -> Path:
        """The run's directory, in a sweep's directory."""
        return run_directory(directory, self.cell, self.seed)

    def log(self, directory: Path) -> Path:
        """What its workers printed."""
        return directory / "logs" / self.cell.place(self.seed).with_suffix(".txt")

    def discard(self, directory: Path) -> None:
        """Removes checkpoints and replay, when it is complete: 400 Atari replays are 3 TB."""
        for name in ("checkpoint", "replay"):
            shutil.rmtree(self.run(directory) / name, ignore_errors=True)

    def __str__(self) -> str:
        return f"{self.cell.env} {self.cell.label}, seed {self.seed}"


def jobs_of(sweep: Sweep) -> Iterator[Job]:
    """The jobs of a sweep, in its order."""
    for index, cell in enumerate(sweep.cells):
        for seed in cell.seeds:
            yield Job(index, cell, seed)


def find_job(directory: Path, index: int, seed: int) -> Job:
    """A job of a sweep's directory, by its cell and its seed."""
    for job in jobs_of(read_sweep(directory)):
        if (job.index, job.seed) == (index, seed):
            return job
    raise UserError(f"{directory}: no run of cell {index} with seed {seed}")


def require_trainable(sweep: Sweep, trust: Collection[str] = ()) -> None:
    """Raises unless every environment and algorithm can be made, and every run would learn."""
    from momentum_rl.envs.make import make_environment
    from momentum_rl.training.build import check_learns, configured_learner, known_config

    configs = [known_config(cell.config, None, trust) for cell in sweep.cells]
    spaces = {}
    for env in dict.fromkeys(config.env for config in configs):
        with closing(make_environment(env, 1, trust=trust)) as environment:
            spaces[env] = environment.spaces
    for config in configs:
        check_learns(config)
        configured_learner(config, spaces[config.env])
