"""ε-greedy: a policy's actions, but random ones where random words say so."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

Array = Any


class Limits(NamedTuple):
    """ε as integers, so that compiled code compares as the host does.

    A word in [0, 2³²) means exploring where word < ε 2³² in double precision: if ``ever``, where
    word ≤ ``last`` = ⌈ε 2³²⌉ − 1.
    """

    ever: Array
    last: Array


class Exploration(NamedTuple):
    """Which of n environments explore, and how.

    Attributes:
      where: [n].
      actions: random ones, [n, ...].
    """

    where: Array
    actions: Array

    def everywhere(self) -> bool:
        """Whether no environment asks the policy; on the host only."""
        return bool(self.where.all())


def limits(epsilon: Any) -> Limits:
    """The integers of an ε, or of an array of them."""
    words = np.ceil(np.asarray(epsilon, float) * 2.0**32)
    return Limits(words > 0, (np.maximum(words, 1) - 1).astype(np.uint32))


def exploring(words: Array, limits: Limits, actions: int) -> Exploration:
    """Where n environments explore, and how.

    Every environment has its own two words, [n, 2]: whether to explore, and by which action.
    """
    return Exploration(limits.ever & (words[:, 0] <= limits.last), words[:, 1] % np.uint32(actions))


def drawn(generator: np.random.Generator, n: int, epsilon: float, actions: int) -> Exploration:
    """The same by a generator, for episodes that are only watched."""
    return Exploration(generator.random(n) < epsilon, generator.integers(actions, size=n))


def epsilon_greedy(exploration: Exploration, policy: Callable[[], Array]) -> Array:
    """The actions of a policy, but for the environments that explore.

    On the host a policy is not asked where all of them do.
    """
    where, random = exploration
    if isinstance(where, np.ndarray):
        return random if exploration.everywhere() else np.where(where, random, policy())
    chosen = policy()
    return jnp.where(where, random.astype(chosen.dtype), chosen)
