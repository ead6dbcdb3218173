"""One run directory, one process."""

import fcntl
import os
import socket
from pathlib import Path

from movi.errors import UserError
from movi.files import open_own, writing

LOCK_FILE = "lock"


class InUse(UserError):
    """Another process has the run."""


class Lock:
    """Held until it is released or the process dies, whichever way: a stale one holds nobody up.

    The system keeps the lock (``flock``), and frees it with the process. The file's content only
    tells others whose it is.
    """

    def __init__(self, directory: Path) -> None:
        """Takes the lock of a directory, or says who has it."""
        self._file = directory / LOCK_FILE
        while True:
            with writing(self._file):
                self._number = open_own(self._file, os.O_RDWR | os.O_CREAT)
            try:
                fcntl.flock(self._number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                owner = os.read(self._number, 200).decode(errors="replace").strip()
                os.close(self._number)
                raise InUse(
                    f"{directory}: in use by {owner or 'another process'}; expected one process "
                    "per run directory"
                ) from None
            except OSError as error:
                os.close(self._number)
                raise UserError(f"{self._file}: cannot be locked: {error.strerror}") from None
            if self._is_the_directorys():
                break
            os.close(self._number)  # its owner removed it in between
        owner = f"process {os.getpid()} on {socket.gethostname()}\n"
        with writing(self._file):
            os.truncate(self._number, 0)
            os.pwrite(self._number, owner.encode(), 0)

    def release(self) -> None:
        """Frees the directory."""
        self._file.unlink(missing_ok=True)
        os.close(self._number)

    def _is_the_directorys(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self._number), self._file.stat())
        except FileNotFoundError:
            return False
