"""ε-greedy: a policy's actions, but random ones where random words say so."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from movi.spaces import Box, Spaces

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


def words_of(spaces: Spaces) -> int:
    """Words W that an environment's exploration takes: whether, and by which action.

    An action of d numbers takes d of them.
    """
    return 1 + math.prod(spaces.action.shape)


def exploring(words: Array, limits: Limits, spaces: Spaces) -> Exploration:
    """Where n environments explore, and how, each by its own words: [n, W]."""
    where = limits.ever & (words[:, 0] <= limits.last)
    if isinstance(spaces.actions, Box):
        # 24 bits, which a float32 holds: the host and compiled code have the same numbers.
        return Exploration(where, (words[:, 1:] >> 8).astype(np.float32) * np.float32(2**-23) - 1)
    return Exploration(where, words[:, 1] % np.uint32(spaces.actions))


def drawn(generator: np.random.Generator, n: int, epsilon: float, spaces: Spaces) -> Exploration:
    """The same by a generator, for episodes that are only watched."""
    where, actions = generator.random(n) < epsilon, spaces.actions
    if isinstance(actions, Box):
        return Exploration(where, generator.uniform(-1, 1, (n, actions.size)).astype(np.float32))
    return Exploration(where, generator.integers(actions, size=n))


def epsilon_greedy(exploration: Exploration, policy: Callable[[], Array]) -> Array:
    """The actions of a policy, but for the environments that explore.

    On the host a policy is not asked where all of them do.
    """
    where, random = exploration
    where = where.reshape(-1, *[1] * (random.ndim - 1))
    if isinstance(where, np.ndarray):
        return random if exploration.everywhere() else np.where(where, random, policy())
    chosen = policy()
    return jnp.where(where, random.astype(chosen.dtype), chosen)
