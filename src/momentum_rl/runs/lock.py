"""One process at a time for a run's directory, and one ``movi sweep`` for a sweep's."""

import fcntl
import os
import socket
from pathlib import Path

from filelock import FileLock, Timeout

from momentum_rl.errors import UserError
from momentum_rl.plumbing.files import open_own, writing

RUN_LOCK = "lock"
SWEEP_LOCK = ".sweep.lock"


class InUse(UserError):
    """Another process has the directory."""


class Lock:
    """Held until it is closed or the process dies, whichever way: a stale one holds nobody up.

    The system keeps the lock (``flock``) and frees it with the process; forked children do not keep
    it. The file's content only tells others whose it is.
    """

    def __init__(self, file: Path, of: str = "run", patience: float = 1.0) -> None:
        """Takes the lock within some seconds, or says who has it.

        Args:
          file: its file, in the directory that it keeps others out of.
          of: what the directory is.
          patience: seconds; `movi status` holds a lock for the moment in which it looks at it.
        """
        self._file = file
        self._lock = FileLock(file, timeout=patience, thread_local=False, fallback_to_soft=False)
        with writing(file):
            try:
                self._lock.acquire()
            except Timeout:
                raise InUse(
                    f"{file.parent}: in use by {_owner(file)}; expected one process per {of} "
                    "directory"
                ) from None
            try:
                with os.fdopen(open_own(file, os.O_WRONLY | os.O_TRUNC), "w") as opened:
                    opened.write(f"process {os.getpid()} on {socket.gethostname()}\n")
            except OSError:
                self._lock.release()
                raise

    def close(self) -> None:
        """Frees the directory; in a forked child it is the parent's still."""
        if self._lock.is_locked:
            self._file.unlink(missing_ok=True)
            self._lock.release()


def _owner(file: Path) -> str:
    with os.fdopen(open_own(file, os.O_RDONLY), errors="replace") as opened:
        return opened.read(200).strip() or "another process"


def is_locked(file: Path) -> bool:
    """Whether a process holds a lock."""
    try:
        with os.fdopen(open_own(file, os.O_RDONLY)) as opened:
            fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
