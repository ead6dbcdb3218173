"""A sweep on this machine: a pool of worker processes with the cores divided among them."""

import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO

from momentum_rl.errors import check_count
from momentum_rl.plumbing.files import open_own, writing
from momentum_rl.plumbing.signals import handled_by, heard
from momentum_rl.plumbing.sizes import available_cores
from momentum_rl.runs.sweep import Sweep
from momentum_rl.sweeps.jobs import Job
from momentum_rl.sweeps.plan import Plan, fitted, shares
from momentum_rl.sweeps.worker import GRACE, INTERRUPTED
from momentum_rl.training.footprint import Footprint

ATTEMPTS = 3
"""How often a job is started whose worker is killed."""
POLL = 0.1
"""Seconds between two looks at the workers."""


@dataclass
class _Worker:
    job: Job
    slot: int
    process: subprocess.Popen[bytes]


class Listener:
    """Hears of jobs; this one ignores it all."""

    def started(self, job: Job, attempt: int) -> None:
        """A worker has begun."""

    def ended(self, job: Job, reason: str) -> None:
        """No worker will continue it; the reason is empty if it was completed."""


def start_worker(
    directory: Path, job: Job, cores: str, trust: Collection[str] = ()
) -> subprocess.Popen[bytes]:
    """A worker process; it stops when this process ends or closes its standard input."""
    log = job.log(directory)
    words = [str(directory), str(job.index), str(job.seeds[0]), cores, *trust]
    output: IO[bytes]
    with writing(log):
        log.parent.mkdir(parents=True, exist_ok=True)
        number = open_own(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    with os.fdopen(number, "ab") as output:
        return subprocess.Popen(
            # -P: not the working directory, where a file numpy.py would be imported and run.
            [sys.executable, "-P", "-m", "momentum_rl.sweeps.worker", *words],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # an interrupt from the keyboard is the driver's to pass on
        )


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

    def plan(self, sweep: Sweep, needs: tuple[Footprint, ...], jobs: Sequence[Job] | None) -> Plan:
        """As many workers as memory allows."""
        return fitted(sweep, needs, self.workers, jobs=jobs)

    def run(
        self,
        directory: Path,
        plan: Plan,
        jobs: Sequence[Job],
        listener: Listener,
        trust: Collection[str],
    ) -> None:
        """Runs the jobs, as many at once as there are shares of cores, until each has ended."""
        slots = shares(available_cores(), plan.workers)
        waiting, attempts = deque(jobs), dict.fromkeys(jobs, 0)
        free, busy = deque(range(len(slots))), list[_Worker]()
        with stopped_by_signals():
            try:
                while waiting or busy:
                    while waiting and free:
                        job, slot = waiting.popleft(), free.popleft()
                        attempts[job] += 1
                        process = start_worker(
                            directory, job, ",".join(map(str, slots[slot])), trust
                        )
                        busy.append(_Worker(job, slot, process))
                        listener.started(job, attempts[job])
                    time.sleep(POLL)
                    for worker in [w for w in busy if w.process.poll() is not None]:
                        busy.remove(worker)
                        free.append(worker.slot)
                        reason = why_ended(worker.process)
                        if reason and died(worker.process) and attempts[worker.job] < ATTEMPTS:
                            waiting.appendleft(worker.job)
                        else:
                            listener.ended(worker.job, reason)
            finally:
                stop(worker.process for worker in busy)


def died(process: "subprocess.Popen[bytes]") -> bool:
    """Whether a worker was ended from outside, so that another may continue its work."""
    assert process.returncode is not None
    return process.returncode < 0 or process.returncode == INTERRUPTED


def why_ended(process: "subprocess.Popen[bytes]") -> str:
    """What ended a worker early; nothing if it came to its end."""
    code = process.returncode
    if code == 0:
        return ""
    if code < 0:
        return f"killed by {signal.Signals(-code).name}"
    return "interrupted" if code == INTERRUPTED else f"exit status {code}"


def stop(processes: "Iterable[subprocess.Popen[bytes]]") -> None:
    """Lets workers save their state, and ends those that take too long."""
    left = [process for process in processes if process.poll() is None]
    for process in left:
        process.terminate()
    end = time.monotonic() + GRACE
    for process in left:
        try:
            process.wait(max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def stopped_by_signals() -> AbstractContextManager[None]:
    """SIGINT and SIGTERM stop a driver, also one whose shell lets it ignore the keyboard."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        heard()
        raise KeyboardInterrupt(number)

    return handled_by(interrupt)
