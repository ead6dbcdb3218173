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


def bytes_per_transition(space: ObservationSpace) -> int:
    """Bytes that one stored transition takes.

    >>> bytes_per_transition(ObservationSpace((10, 10, 4), "bool"))
    116
    """
    row = jax.eval_shape(lambda: packed(jnp.asarray(space.zeros()), space))
    return 2 * row.size * row.dtype.itemsize + 12


def packed_space(space: ObservationSpace) -> ObservationSpace:
    """The rows of these observations, as the space of a replay on the host."""
    row = jax.eval_shape(lambda: packed(jnp.asarray(space.zeros()), space))
    return ObservationSpace(tuple(row.shape), str(row.dtype))


def packed(observation: Array, space: ObservationSpace) -> Array:
    """An observation as a flat row; booleans 32 to a word, an eighth of their bytes."""
    flat = jnp.asarray(observation, space.dtype).reshape(-1)
    if space.dtype != "bool":
        return flat
    bits = jnp.pad(flat, (0, -flat.size % 32)).reshape(-1, 32).astype(jnp.uint32)
    return jnp.sum(bits << jnp.arange(32, dtype=jnp.uint32), axis=1, dtype=jnp.uint32)


def unpacked(rows: Array, space: ObservationSpace) -> Array:
    """The observations of rows [..., W], the inverse of ``packed``."""
    leading = rows.shape[:-1]
    if space.dtype == "bool":
        bits = (rows[..., None] >> jnp.arange(32, dtype=jnp.uint32)) & jnp.uint32(1)
        rows = bits.reshape(*leading, -1)[..., : math.prod(space.shape)].astype(bool)
    return rows.reshape(*leading, *space.shape)


def empty(capacity: int, space: ObservationSpace) -> Transition:
    """A ring of this many transitions, each array [capacity, ...] with packed observations."""
    row = jax.eval_shape(lambda: packed(jnp.asarray(space.zeros()), space))
    return Transition(
        observation=jnp.zeros((capacity, *row.shape), row.dtype),
        action=jnp.zeros(capacity, jnp.int32),
        reward=jnp.zeros(capacity, jnp.float32),
        discount=jnp.zeros(capacity, jnp.float32),
        next_observation=jnp.zeros((capacity, *row.shape), row.dtype),
    )


def add(ring: Transition, slot: Array, new: Transition, space: ObservationSpace) -> Transition:
    """The ring with a transition in a slot."""

    def put(array: Array, value: Array) -> Array:
        row = jnp.asarray(value, array.dtype).reshape(1, *array.shape[1:])
        return jax.lax.dynamic_update_slice_in_dim(array, row, slot, axis=0)

    row = new._replace(
        observation=packed(new.observation, space),
        next_observation=packed(new.next_observation, space),
    )
    return Transition(*map(put, ring, row))


def sample(ring: Transition, stored: Array, bits: Array, space: ObservationSpace) -> Transition:
    """One stored transition for each random uint32, by ``UniformReplay.sample``'s rule."""
    slots = (bits % stored.astype(jnp.uint32)).astype(jnp.int32)
    batch = Transition(*(array[slots] for array in ring))
    return batch._replace(
        observation=unpacked(batch.observation, space),
        next_observation=unpacked(batch.next_observation, space),
    )
