"""Layers that are fast on a CPU too: convolutions, products with weights, sums with a bias.

XLA runs a convolution inside a compiled loop about six times slower on a CPU than outside it. The
same numbers as slices of the image, side by side, times the kernel as a matrix are fast in both
places. Outside, its own convolution is faster for large kernels, but for the bias's gradient.
Parameters, their names and their initial values are those of ``flax.linen.Conv``.

A product is packed for the processor's registers before it is multiplied, and packing a transposed
matrix of weights costs more than multiplying a minibatch with it. The gradient of ``times_weights``
is the usual one with the weights on the side where they are read as they lie in memory; the
barriers keep XLA from turning it round again. These gradients are for reverse mode only.
"""

from typing import Any

import flax.linen as nn
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


class SlicedConv(nn.Module):
    """``nn.Conv`` with padding VALID and stride 1, for small kernels."""

    features: int
    size: tuple[int, int]
    kernel_init: nn.initializers.Initializer = nn.initializers.lecun_normal()

    @nn.compact
    def __call__(self, x: Array) -> Array:
        """Images [B, H, W, C] to [B, H − h + 1, W − w + 1, features]."""
        h, w = self.size
        kernel = self.param("kernel", self.kernel_init, (h, w, x.shape[-1], self.features))
        bias = self.param("bias", nn.initializers.zeros_init(), (self.features,))
        height, width = x.shape[1] - h + 1, x.shape[2] - w + 1
        patches = [x[:, i : i + height, j : j + width] for i in range(h) for j in range(w)]
        columns = jnp.concatenate(patches, axis=-1)
        # As a plain matrix: its gradient with respect to the kernel is one product too.
        rows = columns.reshape(-1, columns.shape[-1]) @ kernel.reshape(-1, self.features) + bias
        return rows.reshape(*columns.shape[:-1], self.features)


class StridedConv(nn.Module):
    """``nn.Conv`` with square kernels and any stride, by XLA's own convolution."""

    features: int
    size: int
    stride: int
    padding: str
    kernel_init: nn.initializers.Initializer = nn.initializers.lecun_normal()

    @nn.compact
    def __call__(self, x: Array) -> Array:
        """Images [B, H, W, C] to [B, ..., features]."""
        shape = (self.size, self.size, x.shape[-1], self.features)
        kernel = self.param("kernel", self.kernel_init, shape)
        bias = self.param("bias", nn.initializers.zeros_init(), (self.features,))
        y = jax.lax.conv_general_dilated(
            x,
            kernel,
            (self.stride, self.stride),
            self.padding,
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
        )
        return plus_bias(y, bias)
