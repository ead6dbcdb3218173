"""Uniform replay of whole transitions, each array in its own dtype."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from movi.replay.memory import require_replay
from movi.replay.ring import Damaged, Ring, bytes_per_record
from movi.spaces import ObservationSpace
from movi.transitions import Transition

FILE = "transitions.bin"


def record_of(space: ObservationSpace) -> np.dtype:
    """One transition as a record."""
    return np.dtype(
        {
            "names": list(Transition._fields),
            "formats": [
                (space.dtype, space.shape),
                np.int32,
                np.float32,
                np.float32,
                (space.dtype, space.shape),
            ],
        }
    )


class UniformReplay:
    """A ring of transitions (s, a, r, discount, s') with s and s' both stored.

    The successor is stored with the transition, so every slot can be sampled at once, whatever the
    environments' order, their episodes' ends and the position of the write head.
    """

    def __init__(
        self,
        capacity: int,
        space: ObservationSpace,
        *,
        slack: int = 0,
        directory: Path | None = None,
        new: bool = True,
    ) -> None:
        """Allocates the ring, or says at once that it cannot fit.

        Args:
          capacity: how many transitions can be sampled, the newest ones.
          space: of the observations.
          slack: how many more slots the ring has.
          directory: keeps the ring in a memory-mapped file there instead of in memory.
          new: begin a new file instead of opening the one that is there.
        """
        require(capacity, space, slack, directory)
        file = None if directory is None else directory / FILE
        self._store = Ring(capacity + slack, record_of(space), file, new=new)
        self._ring = Transition(*(self._store.data[name] for name in Transition._fields))
        self._capacity, self._slack = capacity, slack
        self._added = self._sealed = 0

    def __len__(self) -> int:
        """How many transitions can be sampled."""
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
        """Stores a transition in place of the oldest; which environment it is from is no matter."""
        del env, ended
        slot = self._added % self._store.size
        ring = self._ring
        ring.observation[slot] = transition.observation
        ring.action[slot] = transition.action
        ring.reward[slot] = transition.reward
        ring.discount[slot] = transition.discount
        ring.next_observation[slot] = transition.next_observation
        self._added += 1

    def extend(self, new: Transition, last: int) -> None:
        """Stores transitions [m, ...], the newest of which is number ``last`` − 1."""
        numbers = np.arange(last - len(new.action), last) % self._store.size
        for array, values in zip(self._ring, new):
            array[numbers] = values
        self._added = last

    def newest(self) -> tuple[np.ndarray, Transition]:
        """The numbers of all transitions that can be sampled, and these, [m, ...]."""
        numbers = np.arange(self._added - len(self), self._added)
        return numbers, Transition(*(array[numbers % self._store.size] for array in self._ring))

    def sample(self, bits: np.ndarray) -> Transition:
        """One stored transition for each random uint32 (the bias of the remainder is < 2⁻¹²).

        A draw means a slot of a ring without slack: what is sampled does not depend on the slack.
        """
        held, first = len(self), self._added - len(self)
        numbers = first + ((bits % np.uint32(held)).astype(np.int64) - first) % held
        slots = numbers % self._store.size
        return Transition(*(array[slots] for array in self._ring))

    def moment(self) -> dict[str, Any]:
        """This moment; see ``Kept``."""
        self._store.seal(self._sealed, self._added)
        self._sealed = self._added
        return {"slack": self._slack, "added": self._added}

    def restore(self, moment: Mapping[str, Any]) -> None:
        """Goes back to a moment of this ring."""
        added = int(moment["added"])
        if added < 0 or int(moment["slack"]) != self._slack:
            raise Damaged(f"replay: {dict(moment)} is no moment of it")
        self._store.verify(max(0, added - self._capacity), added)
        self._added = self._sealed = added

    def room(self, moment: Mapping[str, Any]) -> int:
        """How many more transitions can be added before a moment is lost."""
        first = max(0, int(moment["added"]) - self._capacity)
        return first + self._store.size - self._added


def require(capacity: int, space: ObservationSpace, slack: int, directory: Path | None) -> None:
    """Raises at once if a replay cannot fit in memory or in its directory."""
    size = bytes_of(capacity, space, slack, mapped=directory is not None)
    require_replay(capacity, size, directory)


def bytes_of(
    capacity: int, space: ObservationSpace, slack: int = 0, *, mapped: bool = False
) -> int:
    """Bytes of a whole replay."""
    return (capacity + slack) * bytes_per_record(record_of(space), mapped=mapped)


def bytes_per_transition(space: ObservationSpace) -> int:
    """Bytes that one stored transition takes.

    >>> bytes_per_transition(ObservationSpace((4,), "float32"))
    44
    """
    return record_of(space).itemsize
