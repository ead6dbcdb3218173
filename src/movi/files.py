"""Files that are complete or absent."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from movi.errors import Unwritable


@contextmanager
def written_aside(path: Path) -> Iterator[BinaryIO]:
    """A file beside the path: flushed and renamed into place, or removed on an error."""
    aside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with aside.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    flush_directory(path.parent)


def write_aside(path: Path, content: bytes | str) -> None:
    """Writes beside the path, flushes to the disk, and renames into place."""
    with written_aside(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def flush_directory(path: Path) -> None:
    """Makes the names in a directory durable."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """What the system says against writing (a full disk, no permission) becomes one clear line."""
    try:
        yield
    except OSError as error:
        name = error.filename or path
        raise Unwritable(f"{name}: cannot be written: {error.strerror or error}") from None
