"""A worker process: one run, to its end; and how it is started and stopped.

``python -P -m momentum_rl.sweeps.worker DIR CELL SEED CORES [MODULE …]`` trains the run of cell
number CELL with SEED, on some cores: ``0,1`` are these two, ``any:2`` are any two. The modules are
those that ids of environments and names of algorithms may name (``--trust``). It continues what is
unfinished and leaves what is finished alone, so it may be started again. When the process that
started it dies, the standard input closes: the worker saves its state and stops.
"""

import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import IO

from momentum_rl.errors import Interrupted, UserError
from momentum_rl.plumbing.files import open_own, writing
from momentum_rl.plumbing.signals import stopping
from momentum_rl.runs.lock import InUse
from momentum_rl.runs.sweep import Job, find_job
from momentum_rl.sweeps.status import note_failure

FAILED = 1
INTERRUPTED = 75
"""Exit statuses: an error, and an interruption after which the job can be continued."""

GRACE = 120.0
"""Seconds that a process has to save its state before it is killed."""

Process = subprocess.Popen[bytes]


def start_worker(directory: Path, job: Job, cores: str, trust: Collection[str] = ()) -> Process:
    """A worker process; it stops when this process ends or closes its standard input."""
    log = job.log(directory)
    words = [str(directory), str(job.index), str(job.seed), cores, *trust]
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


def died(process: Process) -> bool:
    """Whether a worker was ended from outside, so that another may continue its work."""
    assert process.returncode is not None
    return process.returncode < 0 or process.returncode == INTERRUPTED


def why_ended(process: Process) -> str:
    """What ended a worker early; nothing if it came to its end."""
    code = process.returncode
    if code == 0:
        return ""
    if code < 0:
        return f"killed by {signal.Signals(-code).name}"
    return "interrupted" if code == INTERRUPTED else f"exit status {code}"


def stop(processes: Iterable[Process]) -> None:
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


def main(arguments: Sequence[str]) -> int:
    """Does the job; the exit status."""
    directory, index, seed, cores, *trust = arguments
    use_cores(cores)
    threading.Thread(target=_follow_parent, daemon=True).start()
    job = find_job(Path(directory), int(index), int(seed))
    print(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {job} (process {os.getpid()})", flush=True)
    try:
        when_free(lambda: perform(Path(directory), job, trust))
    except Interrupted as stop:
        print(f"movi: {stop}", flush=True)
        return INTERRUPTED
    except UserError as error:
        print(f"movi: {error}", flush=True)
        note_failure(Path(directory), job, str(error))
        return FAILED
    except Exception as error:
        traceback.print_exc(file=sys.stdout)
        note_failure(Path(directory), job, repr(error))
        return FAILED
    return 0


def when_free(work: Callable[[], None]) -> None:
    """Retries while the run is in use: a worker before this one may still save its state."""
    end = time.monotonic() + GRACE + 30
    while True:
        try:
            return work()
        except InUse:
            if time.monotonic() > end:
                raise
            time.sleep(1)


def perform(directory: Path, job: Job, trust: Sequence[str] = ()) -> None:
    """Trains the job's run, as far as it is not trained, to its end."""
    from momentum_rl.spaces import is_gymnax
    from momentum_rl.training.train import Watcher, train

    class ToLog(Watcher):
        """Announcements go to the log."""

        def announce(self, line: str) -> None:
            print(line, flush=True)

    with stopping() as stop:
        if is_gymnax(job.cell.env):
            os.environ["NPROC"] = "1"  # as `movi train` has it: one is faster than several
        config = job.cell.config_of(job.seed)
        train(config, job.run(directory), watcher=ToLog(), stop=stop, trust=trust)


def use_cores(cores: str) -> None:
    """Tells libraries that are yet to be loaded how many threads to start, and where."""
    kind, _, count = cores.partition(":")
    chosen = [] if kind == "any" else [int(core) for core in cores.split(",")]
    threads = count if kind == "any" else str(len(chosen))
    for name in ("NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = threads  # XLA reads NPROC
    if chosen and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, chosen)


def _follow_parent() -> None:
    """Stops the process when the standard input closes: gently, and after a while for good."""
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE)
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
