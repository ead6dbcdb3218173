"""One process at a time for a run's directory, and one ``movi sweep`` for a sweep's."""

import fcntl
import os
import socket
import time
from pathlib import Path

from momentum_rl.errors import UserError
from momentum_rl.plumbing.files import open_own, writing

RUN_LOCK = "lock"
SWEEP_LOCK = ".sweep.lock"


_held: set[int] = set()
"""The descriptors of this process's locks."""


def _let_go() -> None:
    """In a forked child: a copy of the descriptor would keep the lock after its owner's death."""
    for number in _held:
        os.close(number)
    _held.clear()


os.register_at_fork(after_in_child=_let_go)


class InUse(UserError):
    """Another process has the directory."""


class Lock:
    """Held until it is closed or the process dies, whichever way: a stale one holds nobody up.

    The system keeps the lock (``flock``), and frees it with the process. The file's content only
    tells others whose it is.
    """

    def __init__(self, file: Path, of: str = "run", patience: float = 0.0) -> None:
        """Takes the lock within some seconds, or says who has it.

        Args:
          file: its file, in the directory that it keeps others out of.
          of: what the directory is.
          patience: seconds; `movi status` holds the lock of a sweep while it looks at it.
        """
        self._file, end = file, time.monotonic() + patience
        while True:
            with writing(file):
                self._number = open_own(file, os.O_RDWR | os.O_CREAT)
            try:
                fcntl.flock(self._number, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.path.samestat(os.fstat(self._number), file.stat()):
                    break
            except FileNotFoundError:
                pass  # its owner removed it in between
            except BlockingIOError:
                if time.monotonic() >= end:
                    owner = os.read(self._number, 200).decode(errors="replace").strip()
                    os.close(self._number)
                    raise InUse(
                        f"{file.parent}: in use by {owner or 'another process'}; expected one "
                        f"process per {of} directory"
                    ) from None
                time.sleep(0.05)
            except OSError as error:
                os.close(self._number)
                raise UserError(f"{file}: cannot be locked: {error.strerror}") from None
            os.close(self._number)
        _held.add(self._number)
        owner = f"process {os.getpid()} on {socket.gethostname()}\n"
        with writing(file):
            os.truncate(self._number, 0)
            os.pwrite(self._number, owner.encode(), 0)

    def close(self) -> None:
        """Frees the directory; in a forked child it is the parent's still."""
        if self._number in _held:
            self._file.unlink(missing_ok=True)
            _held.remove(self._number)
            os.close(self._number)


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
