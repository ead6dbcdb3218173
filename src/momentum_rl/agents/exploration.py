"""ε-greedy: a policy's actions, or random ones where random words say so."""

import math
from collections.abc import Callable
from typing import Generic, NamedTuple

import chex
import jax.numpy as jnp
import numpy as np

from momentum_rl.core.arrays import AnyArray
from momentum_rl.core.schedules import Value
from momentum_rl.spaces import Box, Spaces


class Limits(NamedTuple, Generic[AnyArray]):
    """ε as integers, so that compiled code compares as the host does.

    A word in [0, 2³²) means exploring where word < ε 2³² in double precision: if ``ever``, where
    word ≤ ``last`` = ⌈ε 2³²⌉ − 1.
    """

    ever: AnyArray
    last: AnyArray


class Exploration(NamedTuple, Generic[AnyArray]):
    """Which of n environments explore, and how."""

    where: AnyArray
    """Whether each explores, [n]."""
    actions: AnyArray
    """Random actions, [n, ...]."""


def limits(epsilon: Value) -> Limits[np.ndarray]:
    """The integers of an ε, or of an array of them."""
    words = np.ceil(np.asarray(epsilon, float) * 2.0**32)
    return Limits(words > 0, (np.maximum(words, 1) - 1).astype(np.uint32))


def words_of(spaces: Spaces) -> int:
    """Words W that an environment's exploration takes: whether, and by which action.

    An action of d numbers takes d of them.
    """
    return 1 + math.prod(spaces.action.shape)


def exploring(words: AnyArray, limits: Limits[AnyArray], spaces: Spaces) -> Exploration[AnyArray]:
    """Where n environments explore, and how, each by its own words: [n, W]."""
    chex.assert_rank(words, 2)
    where = limits.ever & (words[:, 0] <= limits.last)
    if isinstance(spaces.actions, Box):
        # 24 bits, which a float32 holds: the host and compiled code have the same numbers.
        return Exploration(where, (words[:, 1:] >> 8).astype(np.float32) * np.float32(2**-23) - 1)
    return Exploration(where, words[:, 1] % np.uint32(spaces.actions))


def drawn(
    generator: np.random.Generator, n: int, epsilon: float, spaces: Spaces
) -> Exploration[np.ndarray]:
    """Where n environments explore, and how, by a generator: for evaluations and videos."""
    where, actions = generator.random(n) < epsilon, spaces.actions
    if isinstance(actions, Box):
        return Exploration(where, generator.uniform(-1, 1, (n, actions.size)).astype(np.float32))
    return Exploration(where, generator.integers(actions, size=n))


def epsilon_greedy(exploration: Exploration[AnyArray], policy: Callable[[], AnyArray]) -> AnyArray:
    """The actions of a policy, or random ones in the environments that explore.

    On the host the policy is not evaluated if all of them do.
    """
    where, random = exploration
    where = where.reshape(-1, *[1] * (random.ndim - 1))
    if isinstance(where, np.ndarray):
        return random if where.all() else np.where(where, random, policy())
    chosen = policy()
    return jnp.where(where, random.astype(chosen.dtype), chosen)
