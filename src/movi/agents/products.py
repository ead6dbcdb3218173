"""The matrix products of a layer, with gradients in the order that a CPU multiplies fast.

A product is packed for the processor's registers before it is multiplied, and packing a transposed
matrix of weights costs more than multiplying a minibatch with it. The gradients below are the usual
ones with the large matrix on the side where it is read as it lies in memory; the barriers keep XLA
from turning them round again.
"""

from typing import Any

import jax

Array = Any
_as_is = jax.lax.optimization_barrier


@jax.custom_vjp
def times_weights(x: Array, weights: Array) -> Array:
    """``x @ weights`` for a minibatch x [B, K] and many weights [K, N]."""
    return x @ weights


def _times_weights_forward(x: Array, weights: Array) -> tuple[Array, tuple[Array, Array]]:
    return x @ weights, (x, weights)


def _times_weights_backward(kept: tuple[Array, Array], dy: Array) -> tuple[Array, Array]:
    x, weights = kept
    return _as_is(weights @ _as_is(dy.T)).T, x.T @ dy


times_weights.defvjp(_times_weights_forward, _times_weights_backward)


@jax.custom_vjp
def times_kernel(rows: Array, kernel: Array) -> Array:
    """``rows @ kernel`` for many rows [R, K] and a small kernel [K, N]."""
    return rows @ kernel


def _times_kernel_forward(rows: Array, kernel: Array) -> tuple[Array, tuple[Array, Array]]:
    return rows @ kernel, (rows, kernel)


def _times_kernel_backward(kept: tuple[Array, Array], dy: Array) -> tuple[Array, Array]:
    rows, kernel = kept
    return dy @ kernel.T, _as_is(dy.T @ rows).T


times_kernel.defvjp(_times_kernel_forward, _times_kernel_backward)


def dot_general(lhs: Array, rhs: Array, dimensions: Any, **more: Any) -> Array:
    """``times_weights``, for ``flax.linen.Dense``."""
    plain = lhs.ndim == 2 and dimensions == (((1,), (0,)), ((), ()))
    return times_weights(lhs, rhs) if plain else jax.lax.dot_general(lhs, rhs, dimensions, **more)
