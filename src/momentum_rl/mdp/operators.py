"""What the compiled engines share: an MDP on the device, and expectations over successors.

Many MDPs are *one* MDP to them: the disjoint union, whose states are those of all members one after
the other. So every kernel here is written for [N, A, B] tables, N being S or M·S.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from momentum_rl.errors import UserError
from momentum_rl.mdp.model import FiniteMDP
from momentum_rl.plumbing.compilation import library_takes


class DeviceMDP(NamedTuple):
    """The disjoint union of the MDPs of a batch, or the one MDP, as device arrays."""

    successors: Array
    """[N, A, B] int32, numbered within the union."""
    probabilities: Array
    """[N, A, B]."""
    rewards: Array
    """[N, A]; −inf where a state does not have an action."""
    discount: Array
    """[N, 1], or [1, 1] for a single MDP."""
    available: Array | None = None
    """[N, A], or None where every state has every action: compiled code for those does not know of
    masks."""
    missed: Array | float = 0.0
    """How far from 1 a row of a single MDP was before it was normalised."""


def on_device(mdp: FiniteMDP, copies: int = 1) -> DeviceMDP:
    """Put an MDP, or ``copies`` times the MDPs of a batch, on the device.

    Copy c of MDP m is member ``m * copies + c``. A single MDP is not copied on a CPU.
    """
    absent = np.isneginf(mdp.rewards)
    if mdp.batch is None and copies == 1:
        fields = (mdp.successors, mdp.probabilities, mdp.rewards, mdp.discount.reshape(1, 1))
        available = ~absent if absent.any() else None
        return DeviceMDP(*jax.device_put((*fields, available, mdp.missed)))
    one = mdp.as_batch()
    one_absent = absent.reshape(one.rewards.shape)
    members = one.rewards.shape[0] * copies
    shape = (members * mdp.states, mdp.actions, mdp.branching)

    def repeat(x: np.ndarray) -> np.ndarray:
        return np.repeat(x, copies, axis=0)

    offsets = (np.arange(members) * mdp.states).astype(np.int32)
    successors = repeat(one.successors) + offsets[:, None, None, None]
    return DeviceMDP(
        *jax.device_put(
            (
                successors.reshape(shape),
                repeat(one.probabilities).reshape(shape),
                repeat(one.rewards).reshape(shape[:2]),
                np.repeat(repeat(one.discount), mdp.states)[:, None],
                ~repeat(one_absent).reshape(shape[:2]) if absent.any() else None,
            )
        )
    )


def reward_size(mdp: DeviceMDP) -> Array:
    """max |r(s, a)| over the pairs that are there."""
    sizes = jnp.abs(mdp.rewards)
    return jnp.max(sizes if mdp.available is None else jnp.where(mdp.available, sizes, 0.0))


def take(v: Array, index: Array) -> Array:
    """v[index] for indices known to be in range: no wrapping of negatives, no clamping."""
    numbers = jax.lax.GatherDimensionNumbers(
        offset_dims=(), collapsed_slice_dims=(0,), start_index_map=(0,)
    )
    return jax.lax.gather(v, index[..., None], numbers, (1,), mode="promise_in_bounds")


def expected(successors: Array, probabilities: Array, v: Array) -> Array:
    """Σ_b p(s, a, b) v(s'(s, a, b)): the expectation of v over the successors, [N, A].

    The barrier keeps XLA from computing it again for each of its users.
    """
    chex.assert_rank(v, 1)
    chex.assert_equal_shape([successors, probabilities])
    return jax.lax.optimization_barrier(jnp.sum(probabilities * take(v, successors), -1))


def thresholds(mdp: FiniteMDP) -> np.ndarray:
    """Those of each (s, a) of an MDP, int32 [(M,) S, A, B − 1]."""
    return cuts(mdp.probabilities)


def cuts(probabilities: np.ndarray) -> np.ndarray:
    """Where a random number passes from one of B slots to the next, int32 [..., B − 1].

    Numbers are integers in [0, 2³¹), and one passes slot b if it is *above* threshold b. Slots of
    probability zero cannot be drawn: a threshold repeats before an inner one (and is −1 before the
    first), and past the last possible successor it is out of reach, whatever the rounding of sums.
    """
    passed, slots = np.cumsum(probabilities, -1)[..., :-1], probabilities.shape[-1]
    last = slots - 1 - np.argmax(probabilities[..., ::-1] > 0, -1)
    out_of_reach = np.arange(1, slots) > last[..., None]
    counts = np.clip(np.rint(passed * 2.0**31), 0, 2**31).astype(np.int64)
    return np.where(out_of_reach, 2**31 - 1, counts - 1).astype(np.int32)


def table_jit(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """``jax.jit`` for functions whose time goes into :func:`expected` over large tables.

    On a CPU, XLA hands sums to a library that wants [N, A, B] products in memory first; without it
    the gathers are fused into the sum, in half the time (10⁶ states).
    """

    @functools.cache
    def jitted() -> Callable[..., Any]:
        return jax.jit(function, compiler_options=library_takes("nothing"), **options)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return jitted()(*args, **kwargs)

    return call


def masked(mdp: DeviceMDP, tables: dict[str, Array]) -> dict[str, Array]:
    """Tables [..., N, A] with −inf at actions that a state does not have."""
    if mdp.available is None:
        return tables
    if any(x.shape[-2:] != mdp.available.shape for x in tables.values()):
        raise UserError("scheme: values that are no numbers, expected every action in every state")
    return {name: jnp.where(mdp.available, x, -jnp.inf) for name, x in tables.items()}


def select(table: Array, policy: Array) -> Array:
    """table(s, π(s)): [N, A, …] and [N] to [N, …]."""
    chex.assert_rank(policy, 1)
    index = policy.reshape(policy.shape + (1,) * (table.ndim - 1))
    return jnp.take_along_axis(table, index.astype(jnp.int32), 1)[:, 0]
