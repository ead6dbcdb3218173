"""A sweep on this machine: a pool of worker processes with the cores divided among them."""

import time
from collections import deque
from collections.abc import Collection, Generator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from momentum_rl.errors import check_count
from momentum_rl.plumbing.signals import heard
from momentum_rl.plumbing.sizes import available_cores
from momentum_rl.runs.sweep import Job
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
    """Processes at once; None: one for each core."""

    def __post_init__(self) -> None:
        check_count("workers", self.workers, most=1_000)

    def connected(self) -> nullcontext[None]:
        """There is nothing to connect to."""
        return nullcontext()

    def run(
        self, directory: Path, jobs: Sequence[Job], trust: Collection[str]
    ) -> Generator[Event, None, None]:
        """Runs the jobs, as many at once as there are shares of cores, until each has ended."""
        cores = available_cores()
        waiting, attempts = deque(jobs), dict.fromkeys(jobs, 0)
        free = deque(shares(cores, min(self.workers or len(cores), len(jobs))))
        busy: dict[Process, tuple[Job, list[int]]] = {}
        try:
            while waiting or busy:
                while waiting and free:
                    job, share = waiting.popleft(), free.popleft()
                    attempts[job] += 1
                    process = start_worker(directory, job, ",".join(map(str, share)), trust)
                    busy[process] = job, share
                    yield Event(job, attempts[job])
                time.sleep(POLL)
                for process in [process for process in busy if process.poll() is not None]:
                    job, share = busy.pop(process)
                    free.append(share)
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
