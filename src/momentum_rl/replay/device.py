"""Uniform replay as plain arrays inside a compiled loop.

The ring is part of the loop's state and every function is pure. Rows are written by
``dynamic_update_slice``, which XLA does in place when the loop's state is donated; a scatter may
copy the whole ring every step.
"""

import math

import chex
import jax
import jax.numpy as jnp
from jax import Array

from momentum_rl.replay.windows import begun, longer
from momentum_rl.spaces import NUMBERED, ONE_STEP, ActionFormat, NStep, ObservationSpace, Transition


def packed_space(space: ObservationSpace) -> ObservationSpace:
    """The rows of these observations, as the space of a replay on the host."""
    row = jax.eval_shape(lambda: packed(jnp.asarray(space.zeros()), space))
    return ObservationSpace(tuple(row.shape), str(row.dtype))


def bytes_per_transition(space: ObservationSpace, action: ActionFormat = NUMBERED) -> int:
    """Bytes that one stored transition takes.

    >>> bytes_per_transition(ObservationSpace((10, 10, 4), "bool"))
    116
    """
    return 2 * packed_space(space).zeros().nbytes + action.nbytes + 8


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


def empty(capacity: int, space: ObservationSpace, action: ActionFormat = NUMBERED) -> Transition:
    """A ring of this many transitions, each array [capacity, ...] with packed observations."""
    row = packed_space(space)
    seen, numbers = jnp.zeros((capacity, *row.shape), row.dtype), jnp.zeros(capacity, jnp.float32)
    actions = jnp.zeros((capacity, *action.shape), action.dtype)
    return Transition(seen, actions, numbers, numbers.copy(), seen.copy())


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


def sample(
    ring: Transition,
    added: Array,
    bits: Array,
    space: ObservationSpace,
    horizon: NStep = ONE_STEP,
) -> Transition:
    """One transition for each random uint32, by ``UniformReplay.sample``'s rule.

    Args:
      ring: the ring.
      added: transitions ever stored, one of each environment in turn.
      bits: the random numbers.
      space: of the observations.
      horizon: of the transitions that are sampled.
    """
    chex.assert_rank([ring.observation, ring.reward, ring.discount, added], [2, 1, 1, 0])
    capacity = len(ring.action)
    stored = jnp.minimum(added, capacity)
    held, first = stored - horizon.incomplete, added - stored
    drawn = (bits % held.astype(jnp.uint32)).astype(jnp.int32)
    slots = (first + (drawn - first) % held) % capacity
    last, reward, discount = jax.lax.fori_loop(
        1,
        horizon.steps,
        lambda _, windows: longer(jnp, windows, ring.reward, ring.discount, horizon),
        begun(jnp, slots, ring.reward, ring.discount, horizon),
    )
    return Transition(
        unpacked(ring.observation[slots], space),
        ring.action[slots],
        reward,
        discount,
        unpacked(ring.next_observation[last], space),
    )
