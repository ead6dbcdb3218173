"""The jobs of a sweep: a job is what one worker process does, some seeds of a cell.

Each has a log in the sweep's directory, what its workers printed, one after the other:

logs/ENV/LABEL/seed-N.txt
"""

import shutil
from collections.abc import Collection, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from momentum_rl.errors import UserError
from momentum_rl.runs.sweep import Cell, Sweep, read_sweep, run_directory
from momentum_rl.spaces import is_gymnax


@dataclass(frozen=True)
class Job:
    """Some seeds of a cell, trained together."""

    index: int
    """The number of the cell in the sweep."""
    cell: Cell
    seeds: tuple[int, ...]

    def runs(self, directory: Path) -> list[Path]:
        """The directories of its runs, in a sweep's directory."""
        return [run_directory(directory, self.cell, seed) for seed in self.seeds]

    def log(self, directory: Path) -> Path:
        """What its workers printed."""
        return directory / "logs" / self.cell.place(self.seeds[0]).with_suffix(".txt")

    def discard(self, directory: Path) -> None:
        """Removes checkpoints and replays, when it is complete: 400 Atari replays are 3 TB."""
        for run in self.runs(directory):
            for name in ("checkpoint", "replay"):
                shutil.rmtree(run / name, ignore_errors=True)

    def __str__(self) -> str:
        plural = "seeds" if len(self.seeds) > 1 else "seed"
        return f"{self.cell.env} {self.cell.label}, {plural} {', '.join(map(str, self.seeds))}"


def jobs_of(sweep: Sweep) -> Iterator[Job]:
    """The jobs of a sweep, in its order."""
    for index, cell in enumerate(sweep.cells):
        together = cell.together or 1
        for first in range(0, len(cell.seeds), together):
            yield Job(index, cell, cell.seeds[first : first + together])


def find_job(directory: Path, index: int, seed: int) -> Job:
    """A job of a sweep's directory, by its cell and its first seed."""
    for job in jobs_of(read_sweep(directory)):
        if job.index == index and job.seeds[0] == seed:
            return job
    raise UserError(f"{directory}: no task of cell {index} starts with seed {seed}")


def grouped(sweep: Sweep) -> Sweep:
    """With all seeds of a cell together where the environment is compiled with the agent."""
    cells = [
        replace(cell, together=cell.together or (len(cell.seeds) if is_gymnax(cell.env) else 1))
        for cell in sweep.cells
    ]
    return replace(sweep, cells=tuple(cells))


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
