"""How much memory there is, asked before it is taken."""

import os
import shutil
from pathlib import Path

from movi.errors import UserError


def readable(size: int) -> str:
    """A number of bytes for people.

    >>> readable(7_056_000_000), readable(640)
    ('7.06 GB', '640 B')
    """
    for unit, factor in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size} B"


def available_memory() -> int:
    """Bytes that can be taken without swapping, within this process's control group."""
    limit = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        for line in meminfo.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                limit = min(limit, int(line.split()[1]) * 1024)
    group = Path("/sys/fs/cgroup")
    try:
        most = (group / "memory.max").read_text().strip()
        if most != "max":
            limit = min(limit, int(most) - int((group / "memory.current").read_text()))
    except (OSError, ValueError):
        pass
    return max(limit, 0)


def require_memory(name: str, size: int) -> None:
    """Raises at once if ``size`` bytes cannot fit, instead of being killed hours later."""
    available = available_memory()
    if size > available:
        raise UserError(
            f"{name}: needs {readable(size)}, only {readable(available)} of memory are available"
        )


def require_disk(name: str, directory: Path, size: int) -> None:
    """Raises if ``size`` bytes cannot fit on the directory's disk, with what it holds already."""
    held = sum(file.stat().st_size for file in directory.glob("*"))
    existing = next(path for path in (directory, *directory.absolute().parents) if path.exists())
    free = shutil.disk_usage(existing).free
    if size > free + held:
        raise UserError(
            f"{name}: needs {readable(size)}, only {readable(free)} are free in {existing}"
        )


def require_replay(capacity: int, size: int, directory: Path | None) -> None:
    """Raises at once if a replay cannot fit in memory, or in its directory if it has one."""
    name = f"replay of {capacity:,} transitions"
    if directory is None:
        require_memory(name, size)
    else:
        require_disk(name, directory, size)
