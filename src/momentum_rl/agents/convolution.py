"""Convolutions that are fast on a CPU too: one for compiled loops, one for outside them.

XLA runs a convolution inside a compiled loop about six times slower on a CPU than outside it. The
same numbers as slices of the image, side by side, times the kernel as a matrix are fast in both
places. Outside, its own convolution is faster for large kernels, but for the bias's gradient.
Parameters, their names and their initial values are those of ``flax.linen.Conv``.
"""

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array

from momentum_rl.agents.products import plus_bias


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
