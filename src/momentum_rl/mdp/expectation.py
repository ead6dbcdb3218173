"""Expected rewards, as exact as the certificates take a reward to be."""

import math

import numpy as np

LARGEST_REWARD = 1e150
"""Sums of discounted rewards, and products of them, stay finite in float64."""


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
