"""What an agent sees and does, as plain data that can be saved as JSON."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class ObservationSpace:
    """One observation: an array, or one of a finite number of categories."""

    shape: tuple[int, ...]
    """The array's shape; () for a category."""
    dtype: str
    """The array's own dtype, in which it is stored: uint8 images stay uint8."""
    categories: int | None = None
    """The number of categories, or None for an array."""
    start: int = 0
    """The first category's number."""

    def zeros(self, *leading: int) -> np.ndarray:
        """Observations of the right shape and dtype; the value of each is ``start``."""
        return np.full((*leading, *self.shape), self.start, dtype=self.dtype)


@dataclass(frozen=True)
class Spaces:
    """The observations and the number of actions of an environment.

    >>> spaces = Spaces(ObservationSpace((4,), "float32"), actions=2)
    >>> spaces.to_json()["observation"]["shape"]
    (4,)
    """

    observation: ObservationSpace
    """What is seen."""
    actions: int
    """The number of actions; the agents number them from 0."""
    first_action: int = 0
    """The environment's own number of action 0."""

    def to_json(self) -> dict[str, Any]:
        """A dictionary of JSON's types."""
        return asdict(self)
