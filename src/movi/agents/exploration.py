"""ε-greedy: random actions in place of a policy's, decided by random words."""

from typing import Any, NamedTuple

import numpy as np

Array = Any


class Limits(NamedTuple):
    """ε as integers, so that compiled code compares as the host does.

    A word in [0, 2³²) means exploring where word < ε 2³² in double precision: if ``ever``, where
    word ≤ ``last`` = ⌈ε 2³²⌉ − 1.
    """

    ever: Array
    last: Array


def limits(epsilon: Any) -> Limits:
    """The integers of an ε, or of an array of them."""
    words = np.ceil(np.asarray(epsilon, float) * 2.0**32)
    return Limits(words > 0, (np.maximum(words, 1) - 1).astype(np.uint32))


def exploring(words: Array, limits: Limits, actions: int) -> tuple[Array, Array]:
    """Where n environments explore, and how: [n] each.

    Every environment has its own two words, [n, 2]: whether to explore, and by which action.
    """
    return limits.ever & (words[:, 0] <= limits.last), words[:, 1] % np.uint32(actions)


def drawn(
    generator: np.random.Generator, n: int, epsilon: float, actions: int
) -> tuple[np.ndarray, np.ndarray]:
    """The same by a generator, for episodes that are only watched."""
    return generator.random(n) < epsilon, generator.integers(actions, size=n)
