"""Files that are complete or absent."""

import os
from pathlib import Path


def write_aside(path: Path, content: bytes | str) -> None:
    """Writes beside the path, flushes to the disk, and renames into place."""
    data = content.encode() if isinstance(content, str) else content
    aside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with aside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
