"""How much memory and disk and how many cores there are, asked before they are taken."""

import os
import re
import resource
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from momentum_rl.errors import NoRoom

CGROUPS = {
    "": ("", "memory.max", "memory.current", "inactive_file"),
    "memory": ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}
"""By controllers, none in version 2: where control groups are, and what they say of memory."""


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
    """Bytes that can be taken without swapping, within this process's control groups and limit."""
    limit = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        for line in meminfo.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                limit = min(limit, int(line.split()[1]) * 1024)
    most, statm = resource.getrlimit(resource.RLIMIT_AS)[0], Path("/proc/self/statm")
    if most != resource.RLIM_INFINITY and statm.exists():
        limit = min(limit, most - int(statm.read_text().split()[0]) * resource.getpagesize())
    return max(min([limit, *left_in_groups()]), 0)


def left_in_groups(
    groups: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")
) -> Iterator[int]:
    """Bytes that a process's control groups, and those above them, have left.

    Files that were read and are not in use count as left: the kernel takes them back.
    """
    for line in groups.read_text().splitlines() if groups.exists() else ():
        _, controllers, path = line.split(":", 2)
        if controllers in CGROUPS:
            place, *names, idle = CGROUPS[controllers]
            below = root / place / path.lstrip("/")  # a host's in a container, which sees the top
            for group in (below, *below.parents):
                with suppress(OSError, ValueError):  # there is none, or no limit
                    most, used = (int((group / name).read_text()) for name in names)
                    unused = re.search(
                        rf"^{idle} (\d+)$", (group / "memory.stat").read_text(), re.M
                    )
                    yield most - used + (int(unused[1]) if unused else 0)


def available_cores() -> list[int]:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def require(name: str, *, memory: int = 0, disk: int = 0, directory: Path | None = None) -> None:
    """Raises at once where there is no room for so many bytes, instead of failing hours later.

    Args:
      name: what needs them.
      memory: bytes in memory.
      disk: bytes in files in the directory; those that are there already count as free.
      directory: where; it need not exist yet.
    """
    available = available_memory()
    if memory > available:
        raise NoRoom(
            f"{name}: needs {readable(memory)}, only {readable(available)} of memory are available"
        )
    if directory is not None:
        held = sum(file.lstat().st_size for file in directory.glob("*"))
        place = next(path for path in (directory, *directory.absolute().parents) if path.exists())
        free = shutil.disk_usage(place).free
        if disk > free + held:
            raise NoRoom(
                f"{name}: needs {readable(disk)}, only {readable(free)} are free in {place}"
            )
