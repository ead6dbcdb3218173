"""What a training loop asks of a replay."""

from collections.abc import Mapping
from typing import Any, Protocol, TypeGuard

import numpy as np

from movi.transitions import Transition


class Replay(Protocol):
    """A bounded store of transitions, oldest forgotten first, sampled uniformly."""

    def __len__(self) -> int:
        """How many transitions can be sampled."""
        ...

    def add(self, env: int, transition: Transition, ended: bool) -> None:
        """Stores the next transition of an environment; ``ended`` if its episode ends there."""
        ...

    def sample(self, bits: np.ndarray) -> Transition:
        """One transition for each random uint32, with the same leading axes."""
        ...


class Kept(Replay, Protocol):
    """A replay in files. A checkpoint does not copy them: it remembers a moment of theirs.

    The files have slack: what was in the replay at a moment stays in them for a while, and
    ``room`` says for how long.
    """

    def moment(self) -> dict[str, Any]:
        """This moment, of JSON's types; what it needs is on the disk when this returns."""
        ...

    def restore(self, moment: Mapping[str, Any]) -> None:
        """Goes back to a moment; ``Damaged`` if the files are not as they were then."""
        ...

    def room(self, moment: Mapping[str, Any]) -> int:
        """How many more transitions can surely be added before a moment is lost."""
        ...


def is_kept(replay: Replay) -> TypeGuard[Kept]:
    """Whether a run with this replay can be checkpointed."""
    return all(hasattr(replay, name) for name in ("moment", "restore", "room"))


def slack_of(capacity: int, interval: int) -> int:
    """The slots beyond its capacity that a ring in files needs.

    Two checkpoints are kept. While the third is under way everything that the first needs has to
    be there still: two intervals. An interval is never longer than the capacity: see ``room``.
    """
    return 2 * min(interval, capacity)
