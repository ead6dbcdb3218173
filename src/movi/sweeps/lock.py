"""One `movi sweep` at a time works on a directory."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from movi.errors import UserError
from movi.files import open_own, writing

LOCK_FILE = ".sweep.lock"


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Keeps others out; the lock goes with the process, however that ends."""
    with writing(directory / LOCK_FILE):
        number = open_own(directory / LOCK_FILE, os.O_RDWR | os.O_CREAT)
    with os.fdopen(number) as file:
        for _ in range(20):  # `movi status` looks for a moment
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(0.05)
        else:
            raise UserError(f"out: another movi sweep works on {directory}")
        yield


def is_locked(directory: Path) -> bool:
    """Whether one works on it."""
    try:
        with os.fdopen(open_own(directory / LOCK_FILE, os.O_RDONLY)) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
