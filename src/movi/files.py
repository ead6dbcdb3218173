"""Files that are complete or absent."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


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


def write_aside(path: Path, content: bytes | str) -> None:
    """Writes beside the path, flushes to the disk, and renames into place."""
    with written_aside(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)
