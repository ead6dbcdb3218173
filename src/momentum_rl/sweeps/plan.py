"""What a sweep needs, asked before anything is started: memory at once, disk in the end."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from momentum_rl.errors import UserError
from momentum_rl.plumbing.sizes import available_cores, available_memory, readable
from momentum_rl.runs.sweep import Sweep
from momentum_rl.sweeps.jobs import Job, jobs_of
from momentum_rl.training.footprint import Footprint

PROCESS = 1_100_000_000
"""Bytes of a worker beside its replay: Python, JAX, compiled programs, networks. Measured with
Momentum-DQN: 1.08 GB at most on Atari, 0.68 GB on MinAtar."""


@dataclass(frozen=True)
class Plan:
    """A sweep that fits."""

    sweep: Sweep
    """Its cells say how many seeds a task takes together."""
    needs: tuple[Footprint, ...]
    """What a run of each cell takes."""
    workers: int

    def memory(self, job: Job) -> int:
        """Bytes of memory that a job wants: with less, a replay in files is read from the disk."""
        return PROCESS + len(job.seeds) * self.needs[job.index].replay

    def least(self, job: Job) -> int:
        """Bytes of memory that a job cannot do without."""
        return PROCESS + len(job.seeds) * self.needs[job.index].memory

    def disk(self, jobs: Sequence[Job]) -> tuple[int, int]:
        """Bytes that jobs take on the disk: of those under way at once, and of all in the end."""
        under_way = sorted(len(job.seeds) * self.needs[job.index].disk for job in jobs)
        results = sum(len(job.seeds) * self.needs[job.index].results for job in jobs)
        return sum(under_way[-self.workers :]), results


def shares(available: list[int], workers: int) -> list[list[int]]:
    """The cores divided among workers; more workers than cores share them.

    >>> shares([0, 1, 2], 2), shares([4, 5], 3)
    ([[0, 2], [1]], [[4], [5], [4]])
    """
    if workers >= len(available):
        return [[available[i % len(available)]] for i in range(workers)]
    return [available[i::workers] for i in range(workers)]


def grouped(sweep: Sweep, needs: Sequence[Footprint]) -> Sweep:
    """With all seeds of a cell together where the environment is compiled with the agent."""
    cells = [
        replace(cell, together=cell.together or (len(cell.seeds) if need.fused else 1))
        for cell, need in zip(sweep.cells, needs)
    ]
    return replace(sweep, cells=tuple(cells))


def within(sweep: Sweep, needs: tuple[Footprint, ...], share: int) -> Sweep:
    """With as many seeds together as fit into a worker's share of the memory, at least one."""
    cells = []
    for cell, need in zip(sweep.cells, needs):
        fit = max(1, (share - PROCESS) // max(1, need.replay))
        cells.append(replace(cell, together=min(cell.together or 1, fit)))
    return replace(sweep, cells=tuple(cells))


def fitted(
    sweep: Sweep,
    needs: tuple[Footprint, ...],
    workers: int | None,
    *,
    jobs: Sequence[Job] | None = None,
    memory: int | None = None,
) -> Plan:
    """The plan on this machine.

    Args:
      sweep: what is to be run.
      needs: of its cells.
      workers: processes at once; by default one per core, as many as fit.
      jobs: what is left of a sweep that has begun; by default all, with as many seeds together as
        fit.
      memory: bytes; by default what is available.
    """
    memory = available_memory() if memory is None else memory
    most = workers or len(available_cores())
    for count in [most] if workers else range(most, 0, -1):
        smaller = within(sweep, needs, memory // count) if jobs is None else sweep
        todo = list(jobs_of(smaller) if jobs is None else jobs)
        plan = Plan(smaller, needs, min(count, len(todo)))
        wanted = plan.least if workers or count == 1 else plan.memory
        largest = max(todo, key=wanted)
        if wanted(largest) <= memory // plan.workers:
            return plan
    fits = memory // plan.least(largest)
    advice = f"; at most --workers {fits}" if fits else ""
    raise UserError(
        f"workers: {plan.workers}, {largest} needs {readable(plan.least(largest))} of memory, "
        f"{readable(memory)} are available{advice}"
    )
