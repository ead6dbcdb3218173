"""What a training loop asks of a replay."""

from collections.abc import Mapping
from typing import Any, Protocol, TypeGuard

import numpy as np

from momentum_rl.spaces import Transition


class Replay(Protocol):
    """A bounded store of transitions, oldest forgotten first, sampled uniformly."""

    def __len__(self) -> int:
        """How many transitions can be sampled."""

    def add(self, env: int, transition: Transition, ended: bool) -> None:
        """Stores the next transition of an environment; ``ended`` if its episode ends there."""

    def sample(self, bits: np.ndarray) -> Transition:
        """One transition for each random uint32, with the same leading axes."""


class ReplayInFiles(Replay, Protocol):
    """A replay in files. A checkpoint does not copy them: it holds a snapshot that refers to them.

    The files have slack: what a snapshot refers to stays in them for a while, and ``headroom`` says
    for how long.
    """

    run: str
    """What tells the files from another run's; a snapshot has it."""

    def snapshot(self) -> dict[str, Any]:
        """The replay's state, of JSON types; what it refers to is on the disk when this returns."""

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Goes back to a snapshot; ``Damaged`` if the files are not as they were then."""

    def headroom(self, snapshot: Mapping[str, Any]) -> int:
        """How many more transitions can surely be added before a snapshot is overwritten."""


def can_be_checkpointed(replay: Replay) -> TypeGuard[ReplayInFiles]:
    """Whether a run with this replay can be checkpointed."""
    return all(hasattr(replay, name) for name in ("snapshot", "restore", "headroom"))
