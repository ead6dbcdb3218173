"""How far a job is: a small file that its worker keeps up to date, for ``movi status``.

Rows of metrics come once an iteration, which may be an hour; this file comes every few seconds, and
its age says whether the worker is alive. It decides nothing: results are in the run directories.
"""

import os
import socket
import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from momentum_rl.errors import UserError
from momentum_rl.plumbing.files import write_aside
from momentum_rl.plumbing.reading import as_json, read

PERIOD = 2.0
STALE = 60.0
"""Seconds after which a file that was not written says that its worker is dead."""
WINDOW = 60.0
"""Seconds over which the speed is measured."""


@dataclass(frozen=True)
class ProgressFile:
    """What a progress file says."""

    state: str
    """running, stopped or failed."""
    step: int
    """Agent steps that each run of the job has taken."""
    steps_per_second: float | None
    """The speed of each run."""
    message: str
    where: str
    """The machine and the process."""


class Progress:
    """Writes the file while a job is under way."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._step, self._state, self._message = 0, "running", ""
        self._seen: deque[tuple[float, int]] = deque()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._keep_fresh, daemon=True)

    def reach(self, step: int) -> None:
        """Notes how far the runs are."""
        self._step = step

    def fail(self, message: str) -> None:
        """Notes why the job failed."""
        self._state, self._message = "failed", message

    def __enter__(self) -> "Progress":
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._write()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        if self._state == "running":
            self._state = "stopped"
        with suppress(OSError):  # a full disk: the runs themselves report it
            self._write()

    def _keep_fresh(self) -> None:
        while not self._over.wait(PERIOD):
            with suppress(OSError):
                self._write()

    def _write(self) -> None:
        now = time.monotonic()
        if self._step:
            self._seen.append((now, self._step))
        while len(self._seen) > 2 and now - self._seen[0][0] > WINDOW:
            self._seen.popleft()
        speed = None
        if len(self._seen) > 1:
            (start, first), (end, last) = self._seen[0], self._seen[-1]
            speed = round((last - first) / (end - start), 1) if end > start else None
        where = f"{socket.gethostname()}:{os.getpid()}"
        _write(self._file, ProgressFile(self._state, self._step, speed, self._message, where))


def _write(file: Path, content: ProgressFile) -> None:
    write_aside(file, as_json(asdict(content)) + "\n")


def write_failure(file: Path, message: str) -> None:
    """Says that a job failed whose worker could not say so itself."""
    found, _ = read_progress(file)
    step, where = (found.step, found.where) if found else (0, "")
    file.parent.mkdir(parents=True, exist_ok=True)
    _write(file, ProgressFile("failed", step, None, message, where))


def read_progress(file: Path) -> tuple[ProgressFile | None, bool]:
    """What a progress file says, None if it cannot be read; and whether it was written lately."""
    try:
        return read(file, ProgressFile), time.time() - file.stat().st_mtime < STALE
    except (OSError, UserError):
        return None, False
