"""Uniform replay of whole transitions, each array in its own dtype."""

import numpy as np

from movi.replay.memory import require_memory
from movi.spaces import ObservationSpace
from movi.transitions import Transition


class UniformReplay:
    """A ring of transitions (s, a, r, discount, s') with s and s' both stored.

    The successor is stored with the transition, so every slot can be sampled at once, whatever the
    environments' order, their episodes' ends and the position of the write head.
    """

    def __init__(self, capacity: int, space: ObservationSpace) -> None:
        """Allocates the ring, or says at once that it cannot fit."""
        require_memory(
            f"replay of {capacity:,} transitions", capacity * bytes_per_transition(space)
        )
        shape = (capacity, *space.shape)
        self._ring = Transition(
            observation=np.zeros(shape, space.dtype),
            action=np.zeros(capacity, np.int32),
            reward=np.zeros(capacity, np.float32),
            discount=np.zeros(capacity, np.float32),
            next_observation=np.zeros(shape, space.dtype),
        )
        self._capacity = capacity
        self._added = 0

    def __len__(self) -> int:
        """How many transitions are stored."""
        return min(self._added, self._capacity)

    @property
    def nbytes(self) -> int:
        """Bytes of the whole ring."""
        return sum(array.nbytes for array in self._ring)

    def add(self, env: int, transition: Transition, ended: bool) -> None:
        """Stores a transition in place of the oldest; which environment it is from is no matter."""
        del env, ended
        slot = self._added % self._capacity
        ring = self._ring
        ring.observation[slot] = transition.observation
        ring.action[slot] = transition.action
        ring.reward[slot] = transition.reward
        ring.discount[slot] = transition.discount
        ring.next_observation[slot] = transition.next_observation
        self._added += 1

    def sample(self, bits: np.ndarray) -> Transition:
        """One stored transition for each random uint32 (the bias of the remainder is < 2⁻¹²)."""
        slots = bits % np.uint32(len(self))
        return Transition(*(array[slots] for array in self._ring))


def bytes_per_transition(space: ObservationSpace) -> int:
    """Bytes that one stored transition takes.

    >>> bytes_per_transition(ObservationSpace((4,), "float32"))
    44
    """
    return 2 * space.zeros().nbytes + 12
