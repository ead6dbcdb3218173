"""A ring of records, in memory or in memory-mapped files that outlive the process.

Record number k is in slot k mod size, after the slots that are not of the ring. A file is written
to in place and never copied: a process that dies leaves in it what it wrote, and ``seal`` makes
that durable. Every sealed record has a checksum in a file of its own, of what it holds, its number
and its run: damage, another lap and another run's file are recognised when it is opened again.
"""

import os
import sys
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from momentum_rl.errors import Damaged, Unwritable
from momentum_rl.plumbing.files import open_own
from momentum_rl.plumbing.sizes import require


class Ring:
    """``size`` records of one structured dtype; ``data["field"][slot]`` reads and writes them."""

    def __init__(
        self, size: int, dtype: np.dtype, file: Path | None = None, *, new: bool, first: int = 0
    ) -> None:
        """A ring of zeros, or that of a file.

        Args:
          size: how many records.
          dtype: of a record.
          file: where they are kept; None keeps them in memory.
          new: make the file anew instead of opening it.
          first: the slots before this one are not of the ring.
        """
        self.size, self.file, self._first = size, file, first
        self.nbytes = size * bytes_per_record(dtype, mapped=file is not None)
        if file is None:
            self.data: Any = np.zeros(size, dtype)
            return
        sums = file.with_suffix(".crc")
        self._map = _mapped(file, size, dtype, new)
        self._sums = _mapped(sums, size, np.dtype(np.uint32), new)
        self.data = np.asarray(self._map)  # a plain view: every access to a memmap costs more
        self._bytes = np.ndarray((size, dtype.itemsize), np.uint8, self.data)

    def seal(self, first: int, last: int, run: str) -> None:
        """Computes the checksums of a run's records first, …, last − 1, on the disk then."""
        for slots, sums in self._checksums(first, last, run):
            self._sums[slots] = sums
        self._map.flush()
        self._sums.flush()

    def verify(self, first: int, last: int, run: str) -> None:
        """Raises ``Damaged`` unless a run's records first, …, last − 1 are as they were sealed."""
        for slots, sums in self._checksums(first, last, run):
            if not np.array_equal(self._sums[slots], np.array(sums, np.uint32)):
                raise Damaged(f"{self.file}: damaged, of another run or of another moment")

    def _checksums(self, first: int, last: int, run: str) -> Iterator[tuple[slice, list[int]]]:
        """The slots of records first, …, last − 1, piece by piece, and their checksums now."""
        ring, name = self.size - self._first, zlib.crc32(run.encode())
        number = max(first, last - ring)
        while number < last:
            count = min(ring - number % ring, last - number, 2**14)
            slot = self._first + number % ring
            rows = self._bytes[slot : slot + count]
            seeds = (name + k & 0xFFFFFFFF for k in range(number, number + count))
            yield slice(slot, slot + count), list(map(zlib.crc32, rows, seeds))
            number += count


def bytes_per_record(dtype: np.dtype, *, mapped: bool) -> int:
    """Bytes that a record takes, in files with its checksum."""
    return dtype.itemsize + 4 * mapped


def slack_of(
    capacity: int,
    interval: int,
    stored: int = sys.maxsize,
    snapshot: Mapping[str, Any] | None = None,
) -> int:
    """The slots beyond its capacity that a ring needs; negative if it is never filled.

    Two checkpoints are kept. While the third is under way everything that the first needs has to
    be in the ring still: two intervals. An interval is never longer than the capacity: see
    ``headroom``. A run that stores so many transitions in all needs no more slots than these.

    With a snapshot, the slack with which its files are opened again: it may be larger than before,
    of a run that is made longer, while the ring has not gone round.
    """
    fresh = min(2 * min(interval, capacity), stored - capacity)
    before = fresh if snapshot is None else int(snapshot["slack"])
    goes_round = snapshot is not None and int(snapshot["added"]) > capacity + before
    return before if goes_round else max(before, fresh)


def require_space(capacity: int, size: int, directory: Path | None) -> None:
    """Raises at once if a replay of so many bytes cannot fit in memory or in its directory."""
    memory, name = size if directory is None else 0, f"replay of {capacity:,} transitions"
    require(name, memory=memory, disk=size, directory=directory)


def _mapped(file: Path, size: int, dtype: np.dtype, new: bool) -> Any:
    """A file as an array; a new one takes its whole size on the disk at once."""
    whole = size * dtype.itemsize
    try:
        if new:
            file.parent.mkdir(parents=True, exist_ok=True)
        number = open_own(file, os.O_RDWR | (os.O_CREAT | os.O_TRUNC if new else 0))
        with os.fdopen(number, "r+b") as opened:
            if os.fstat(number).st_size < whole:  # new, or of a run that is made longer
                _allocate(number, whole)
            return np.memmap(opened, dtype, "r+", shape=(size,))
    except OSError as error:
        raise (Unwritable if new else Damaged)(f"{file}: {error.strerror}") from None


def _allocate(number: int, size: int) -> None:
    """Takes a file's whole size on the disk: a map of a file with holes crashes on a full one."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(number, 0, size)
    while (length := os.fstat(number).st_size) < size:  # macOS has no call for it
        os.pwrite(number, bytes(min(2**20, size - length)), length)
