"""A run's random numbers, each a pure function of (seed, purpose, count).

Counting instead of carrying a generator's state means that no key is used twice, that a resumed run
needs only its counters, and that a compiled loop draws the same numbers as the host's.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from momentum_rl.plumbing.compilation import shared

INITIALISATION, ACTING, SAMPLING, POLICY, LEARNING, INSPECTION = range(6)
_WORDS = 2**16  # random words per call of the compiled function


def key_of(seed: int, purpose: int) -> jax.Array:
    """The key of one purpose in one run."""
    return jax.random.fold_in(jax.random.key(seed), purpose)


def env_seeds(seed: int, n: int, *purpose: int) -> list[int]:
    """Different seeds for n environments; those of one purpose don't depend on another's n.

    A purpose is one number, training's 0 by default, or several.
    """
    entropy = [seed, *(purpose or (0,))]
    return [int(word) for word in np.random.SeedSequence(entropy).generate_state(n)]


def bits(key: jax.Array, count: jax.Array, shape: Sequence[int]) -> jax.Array:
    """The random uint32 words of draw number ``count``."""
    return jax.random.bits(jax.random.fold_in(key, count), tuple(shape), jnp.uint32)


class Draws:
    """Draws of one shape, by their number, made in chunks.

    >>> draws = Draws(key_of(seed=0, purpose=ACTING), (3,))
    >>> bool((draws(70_000) == bits(key_of(0, ACTING), 70_000, (3,))).all())
    True
    """

    def __init__(self, key: jax.Array, shape: Sequence[int]) -> None:
        self._size = max(1, min(4096, _WORDS // math.prod(shape)))
        self._start = -1
        self._chunk = np.zeros((0, *shape), np.uint32)
        self._make = partial(_chunk_of(self._size, tuple(shape)), key)

    def __call__(self, count: int) -> np.ndarray:
        """The words of draw number ``count``."""
        start = count - count % self._size
        if start != self._start:
            self._chunk = np.asarray(self._make(np.uint32(start)))
            self._start = start
        return self._chunk[count - start]


@shared
def _chunk_of(size: int, shape: tuple[int, ...]) -> Callable[[jax.Array, np.uint32], jax.Array]:
    """``chunk(key, start)``: the words of ``size`` draws from number ``start`` on, compiled."""

    def chunk(key: jax.Array, start: jax.Array) -> jax.Array:
        counts = start + jnp.arange(size, dtype=jnp.uint32)
        return jax.vmap(lambda count: bits(key, count, shape))(counts)

    return jax.jit(chunk)
