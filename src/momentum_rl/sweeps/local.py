"""A sweep on this machine: a pool of worker processes with the cores divided among them."""

import time
from collections import deque
from collections.abc import Collection, Generator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from momentum_rl.errors import UserError, check_count
from momentum_rl.plumbing.signals import heard
from momentum_rl.plumbing.sizes import available_cores, available_memory, readable
from momentum_rl.sweeps.plan import Job, Plan
from momentum_rl.sweeps.worker import Process, died, start_worker, stop, why_ended

ATTEMPTS = 3
"""How often a job is started whose worker is killed."""
POLL = 0.1
"""Seconds between two looks at the workers."""


@dataclass(frozen=True)
class Event:
    """What happened to a job: a worker has begun it, or no worker will continue it."""

    job: Job
    attempt: int = 0
    """How often a worker has begun it, if that is what happened."""
    reason: str = ""
    """What ended it early."""


@dataclass(frozen=True)
class ThisMachine:
    """The pool of this machine's cores."""

    workers: int | None = None
    """Processes at once; None: one for each core, as many as memory allows."""

    def __post_init__(self) -> None:
        check_count("workers", self.workers, most=1_000)

    def connected(self) -> nullcontext[None]:
        """There is nothing to connect to."""
        return nullcontext()

    def fitted(self, plan: Plan) -> Plan:
        """The plan with as many workers as memory allows."""
        return fitted(plan, self.workers, available_memory())

    def run(
        self, directory: Path, plan: Plan, trust: Collection[str]
    ) -> Generator[Event, None, None]:
        """Runs the jobs, as many at once as there are shares of cores, until each has ended."""
        waiting, attempts = deque(plan.jobs), dict.fromkeys(plan.jobs, 0)
        free = deque(shares(available_cores(), plan.workers))
        busy: dict[Process, tuple[Job, list[int]]] = {}
        try:
            while waiting or busy:
                while waiting and free:
                    job, cores = waiting.popleft(), free.popleft()
                    attempts[job] += 1
                    process = start_worker(directory, job, ",".join(map(str, cores)), trust)
                    busy[process] = job, cores
                    yield Event(job, attempts[job])
                time.sleep(POLL)
                for process in [process for process in busy if process.poll() is not None]:
                    job, cores = busy.pop(process)
                    free.append(cores)
                    if died(process) and attempts[job] < ATTEMPTS:
                        waiting.appendleft(job)
                    else:
                        yield Event(job, reason=why_ended(process))
        finally:
            heard()  # whatever ends this: the workers save their state first, which takes a while
            stop(busy)


def shares(available: list[int], workers: int) -> list[list[int]]:
    """The cores divided among workers; more workers than cores share them.

    >>> shares([0, 1, 2], 2), shares([4, 5], 3)
    ([[0, 2], [1]], [[4], [5], [4]])
    """
    if workers >= len(available):
        return [[available[i % len(available)]] for i in range(workers)]
    return [available[i::workers] for i in range(workers)]


def fitted(plan: Plan, workers: int | None, memory: int) -> Plan:
    """With as many workers as are asked for, or else one per core, as many as fit into memory."""
    most = min(workers or len(available_cores()), len(plan.jobs))
    for count in [most] if workers else range(most, 0, -1):
        # A replay in files may be larger than the memory, if asked for or if nothing else fits.
        wanted = plan.least if workers or count == 1 else plan.memory
        largest = max(plan.jobs, key=wanted)
        if wanted(largest) <= memory // count:
            return replace(plan, workers=count)
    fits = memory // plan.least(largest)
    advice = f"; at most --workers {fits}" if fits else ""
    raise UserError(
        f"workers: {count}, {largest} needs {readable(plan.least(largest))} of memory, "
        f"{readable(memory)} are available{advice}"
    )
