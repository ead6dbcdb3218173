"""Jobs: what one worker process does. Each has a log and a progress file in the sweep's directory.

logs/ENV/LABEL/seed-N.txt    what the workers printed, one after the other
logs/ENV/LABEL/seed-N.json   how far they are
"""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from momentum_rl.errors import UserError
from momentum_rl.runs.sweep import Cell, Sweep, read_sweep, run_directory


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
