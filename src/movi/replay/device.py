"""Uniform replay as plain arrays inside a compiled loop.

The ring is part of the loop's state and every function is pure. Rows are written by
``dynamic_update_slice``, which XLA does in place when the loop's state is donated; a scatter may
copy the whole ring every step.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp

from movi.spaces import ObservationSpace
from movi.transitions import Transition

Array = Any


def empty(capacity: int, space: ObservationSpace) -> Transition:
    """A ring of this many transitions, each array [capacity, ...] with flat observations."""
    width = math.prod(space.shape)
    return Transition(
        observation=jnp.zeros((capacity, width), space.dtype),
        action=jnp.zeros(capacity, jnp.int32),
        reward=jnp.zeros(capacity, jnp.float32),
        discount=jnp.zeros(capacity, jnp.float32),
        next_observation=jnp.zeros((capacity, width), space.dtype),
    )


def add(ring: Transition, slot: Array, transition: Transition) -> Transition:
    """The ring with a transition in a slot."""

    def put(array: Array, value: Array) -> Array:
        row = jnp.asarray(value, array.dtype).reshape(1, *array.shape[1:])
        return jax.lax.dynamic_update_slice_in_dim(array, row, slot, axis=0)

    return Transition(*map(put, ring, transition))


def sample(ring: Transition, stored: Array, bits: Array, space: ObservationSpace) -> Transition:
    """One stored transition for each random uint32, by ``UniformReplay.sample``'s rule."""
    slots = (bits % stored.astype(jnp.uint32)).astype(jnp.int32)
    batch = Transition(*(array[slots] for array in ring))
    return batch._replace(
        observation=batch.observation.reshape(*bits.shape, *space.shape),
        next_observation=batch.next_observation.reshape(*bits.shape, *space.shape),
    )
