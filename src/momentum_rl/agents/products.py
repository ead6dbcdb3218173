"""A product and a sum of layers, with gradients in the form that a CPU computes fast.

A product is packed for the processor's registers before it is multiplied, and packing a transposed
matrix of weights costs more than multiplying a minibatch with it. The gradient below is the usual
one with the weights on the side where they are read as they lie in memory; the barriers keep XLA
from turning it round again. Both are for reverse mode only.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

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
def plus_bias(x: Array, bias: Array) -> Array:
    """``x + bias`` for images [B, H, W, F] and a bias [F]."""
    return x + bias


def _plus_bias_forward(x: Array, bias: Array) -> tuple[Array, None]:
    return x + bias, None


def _plus_bias_backward(_: None, dy: Array) -> tuple[Array, Array]:
    rows = dy.reshape(-1, dy.shape[-1])
    ones = jnp.ones(rows.shape[0], rows.dtype)  # a sum over rows would run on one thread
    return dy, jnp.matmul(ones, rows, precision=jax.lax.Precision.HIGHEST)


plus_bias.defvjp(_plus_bias_forward, _plus_bias_backward)


def dot_general(lhs: Array, rhs: Array, dimensions: Any, **more: Any) -> Array:
    """``times_weights``, for ``flax.linen.Dense``."""
    plain = lhs.ndim == 2 and dimensions == (((1,), (0,)), ((), ())) and not any(more.values())
    return times_weights(lhs, rhs) if plain else jax.lax.dot_general(lhs, rhs, dimensions, **more)
