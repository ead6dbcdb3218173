"""Arrays of an MDP: memory that JAX's CPU backend takes without a copy, and exact expectations."""

import math
from typing import Any

import numpy as np

LARGEST_REWARD = 1e150
"""Sums of discounted rewards, and products of them, stay finite in float64."""


def aligned(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An uninitialised array at an address that is a multiple of 64."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    memory = np.empty(size + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + size].view(dtype).reshape(shape)


def frozen(array: np.ndarray, dtype: Any, *, copy: bool = False) -> np.ndarray:
    """The array read-only, aligned and of this dtype; itself only if it may be and is."""
    ready = array.dtype == dtype and array.flags.c_contiguous and array.ctypes.data % 64 == 0
    result = array
    if copy or not ready:
        result = aligned(array.shape, dtype)
        result[...] = array
    result.flags.writeable = False
    return result


def expectation(p: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Σ p x over the last axis, 0 where p is 0.

    A sum of B terms is off by B u Σ p |x|, u = 2⁻⁵³; `certificates.backup_rounding` leaves room for
    4 B u |Σ p x|. Where terms cancel, they are therefore added up exactly: each product is the sum
    of two numbers, made of halves of the factors' bits (Dekker, 1971).
    """
    x = np.where(p > 0, x, 0.0)
    products = p * x
    result, size = products.sum(-1), np.abs(products).sum(-1)
    result = np.where((size > LARGEST_REWARD) & np.isfinite(size), size, result)  # to be refused
    cancels = (size > 4 * np.abs(result)) & (size <= LARGEST_REWARD)
    p, x, products = p[cancels], x[cancels], products[cancels]
    a, c = ((big := (2.0**27 + 1) * y) - (big - y) for y in (p, x))
    rest = (p - a) * (x - c) - (((products - a * c) - (p - a) * c) - a * (x - c))
    rows = np.concatenate([products, rest], -1)
    result[cancels] = [math.fsum(row.tolist()) for row in rows]
    return result
