"""What a training loop asks of a replay."""

from typing import Protocol

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
