"""Uniform replay of whole transitions, in a ring of records that frames are kept in, too.

A ring is in memory, or in memory-mapped files that outlive the process. Record number k is in slot
k mod size, after the slots that are not of the ring. A file is written to in place and never
copied: a process that dies leaves in it what it wrote, and ``seal`` makes that durable. Every
sealed record has a checksum in a file of its own, of what it holds, its number and its run: damage,
another lap and another run's file are recognised when it is opened again.
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
from momentum_rl.replay.windows import windows_of
from momentum_rl.spaces import NUMBERED, ONE_STEP, ActionFormat, NStep, ObservationSpace, Transition

FILE = "transitions.bin"


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


# Transitions --------------------------------------------------------------------------------------


def record_of(space: ObservationSpace, action: ActionFormat = NUMBERED) -> np.dtype:
    """One transition as a record."""
    seen = (space.dtype, space.shape)
    formats: Any = [seen, (action.dtype, action.shape), np.float32, np.float32, seen]
    return np.dtype({"names": Transition._fields, "formats": formats})


class UniformReplay:
    """A ring of transitions (s, a, r, discount, s') with s and s' both stored.

    The successor is stored with the transition, so every slot can be sampled at once, whatever the
    ends of episodes and the position of the write head. With a horizon of n > 1 steps what is
    sampled is a window.
    """

    def __init__(
        self,
        capacity: int,
        space: ObservationSpace,
        *,
        slack: int = 0,
        horizon: NStep = ONE_STEP,
        action: ActionFormat = NUMBERED,
        directory: Path | None = None,
        new: bool = True,
        run: str = "",
    ) -> None:
        """Allocates the ring, or says at once that it cannot fit; arguments as of `FrameReplay`."""
        size = bytes_of(capacity, space, slack, mapped=directory is not None, action=action)
        require_space(capacity, size, directory)
        file = None if directory is None else directory / FILE
        self._store = Ring(capacity + slack, record_of(space, action), file, new=new)
        self._ring = Transition(*(self._store.data[name] for name in Transition._fields))
        self._capacity, self._slack, self.horizon = capacity, slack, horizon
        self._incomplete = horizon.incomplete
        self._added = self._sealed = 0
        self.run = run

    def __len__(self) -> int:
        return max(0, self._stored - self._incomplete)

    @property
    def _stored(self) -> int:
        return min(self._added, self._capacity)

    @property
    def added(self) -> int:
        """Transitions ever stored."""
        return self._added

    @property
    def nbytes(self) -> int:
        """Bytes of the whole ring."""
        return self._store.nbytes

    def add(self, env: int, transition: Transition, ended: bool) -> None:
        """Stores the next transition of an environment in place of the oldest."""
        slot = self._added % self._store.size
        ring = self._ring
        ring.observation[slot] = transition.observation
        ring.action[slot] = transition.action
        ring.reward[slot] = transition.reward
        ring.discount[slot] = -transition.discount if ended else transition.discount
        ring.next_observation[slot] = transition.next_observation
        self._added += 1

    def extend(self, new: Transition, last: int) -> None:
        """Stores transitions [m, ...], the newest of which is number ``last`` − 1."""
        numbers = np.arange(last - len(new.action), last) % self._store.size
        for array, values in zip(self._ring, new):
            array[numbers] = values
        self._added = last

    def newest(self) -> tuple[np.ndarray, Transition]:
        """The numbers of all transitions that are stored, and these, [m, ...]."""
        numbers = np.arange(self._added - self._stored, self._added)
        return numbers, Transition(*(array[numbers % self._store.size] for array in self._ring))

    def sample(self, bits: np.ndarray) -> Transition:
        """One stored transition for each random uint32 (the bias of the remainder is < 2⁻¹²).

        A draw means a slot of a ring without slack: what is sampled does not depend on the slack.
        """
        held, first = len(self), self._added - self._stored
        numbers = first + ((bits % np.uint32(held)).astype(np.int64) - first) % held
        slots, ring = numbers % self._store.size, self._ring
        if self.horizon.steps == 1:
            batch = Transition(*(array[slots] for array in ring))
            return batch._replace(discount=abs(batch.discount))
        last, reward, discount = windows_of(slots, ring.reward, ring.discount, self.horizon)
        return Transition(
            observation=ring.observation[slots],
            action=ring.action[slots],
            reward=reward,
            discount=discount,
            next_observation=ring.next_observation[last],
        )

    def snapshot(self) -> dict[str, Any]:
        """See ``Replay``."""
        self._store.seal(self._sealed, self._added, self.run)
        self._sealed = self._added
        return {"slack": self._slack, "added": self._added, "run": self.run}

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Goes back to a snapshot of this ring."""
        added = int(snapshot["added"])
        if added < 0 or int(snapshot["slack"]) > self._slack:
            raise Damaged(f"replay: {dict(snapshot)}, expected a snapshot of it")
        first = max(0, added - self._capacity)
        self.run = str(snapshot["run"])
        self._store.verify(first, added, self.run)
        self._added = self._sealed = added

    def headroom(self, snapshot: Mapping[str, Any]) -> int:
        """How many more transitions can be added before a snapshot is overwritten."""
        first = max(0, int(snapshot["added"]) - self._capacity)
        return first + self._store.size - self._added


def bytes_of(
    capacity: int,
    space: ObservationSpace,
    slack: int = 0,
    *,
    mapped: bool = False,
    action: ActionFormat = NUMBERED,
) -> int:
    """Bytes of a whole replay.

    >>> bytes_of(1, ObservationSpace((4,), "float32"))
    44
    """
    return (capacity + slack) * bytes_per_record(record_of(space, action), mapped=mapped)
