"""The jobs of a sweep, and what they take: asked before anything is started.

A job is what one worker process does: some seeds of a cell. Each has a log and a progress file in
the sweep's directory:

logs/ENV/LABEL/seed-N.txt    what the workers printed, one after the other
logs/ENV/LABEL/seed-N.json   how far they are
"""

import shutil
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from momentum_rl.errors import UserError
from momentum_rl.plumbing.sizes import Footprint
from momentum_rl.runs.sweep import Cell, Sweep, read_sweep, run_directory
from momentum_rl.spaces import Spaces

PROCESS = 1_100_000_000
"""Bytes of a worker beside its replay: Python, JAX, compiled programs, networks. Measured with
Momentum-DQN: 1.08 GB at most on Atari, 0.68 GB on MinAtar."""


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

    def progress(self, directory: Path) -> Path:
        """How far its runs are."""
        return self.log(directory).with_suffix(".json")

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


@dataclass(frozen=True)
class Plan:
    """The jobs that are to be done, and what they take."""

    jobs: tuple[Job, ...]
    needs: tuple[Footprint, ...]
    """What a run of each cell takes."""
    workers: int = 1
    """How many jobs are under way at once."""

    def memory(self, job: Job) -> int:
        """Bytes of memory that a job wants: with less, a replay in files is read from the disk."""
        return PROCESS + len(job.seeds) * self.needs[job.index].replay

    def least(self, job: Job) -> int:
        """Bytes of memory that a job cannot do without."""
        return PROCESS + len(job.seeds) * self.needs[job.index].memory

    def disk(self) -> tuple[int, int]:
        """Bytes on the disk: of the jobs that are under way at once, and of all in the end."""
        under_way = sorted(len(job.seeds) * self.needs[job.index].disk for job in self.jobs)
        results = sum(len(job.seeds) * self.needs[job.index].results for job in self.jobs)
        return sum(under_way[-self.workers :]), results


def grouped(sweep: Sweep, needs: Sequence[Footprint]) -> Sweep:
    """With all seeds of a cell together where the environment is compiled with the agent."""
    cells = [
        replace(cell, together=cell.together or (len(cell.seeds) if need.fused else 1))
        for cell, need in zip(sweep.cells, needs)
    ]
    return replace(sweep, cells=tuple(cells))


def needs_of(sweep: Sweep, trust: Collection[str] = ()) -> tuple[Footprint, ...]:
    """What a run of each cell takes; ``trust`` are the modules that ids and names may name."""
    from momentum_rl.envs.make import make_environment
    from momentum_rl.training.build import footprint, known_config

    spaces: dict[str, Spaces] = {}
    cells = [replace(cell, config=known_config(cell.config, None, trust)) for cell in sweep.cells]
    for cell in cells:
        if cell.env not in spaces:
            environment = make_environment(cell.env, 1, trust=trust)
            spaces[cell.env] = environment.spaces
            environment.close()
    return tuple(footprint(cell.config, spaces[cell.env]) for cell in cells)
