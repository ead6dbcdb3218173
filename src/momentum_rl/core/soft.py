"""Maxima and policies that are softened by an entropy, over the last axis.

Written around the maximum, so that nothing overflows however small the temperature κ is.
"""

from momentum_rl.core.arrays import Array, constant, library

Real = Array | float  # a number, or an array of rank 0


def soft_maximum(x: Array, kappa: Real) -> Array:
    """κ ln Σ_a exp(x_a / κ) over the last axis: max_π ⟨π, x⟩ + κ H(π), for κ > 0.

    >>> import numpy as np
    >>> [float(soft_maximum(np.array([2e6, 1e6]), kappa)) for kappa in (1e-300, 1e-3)]
    [2000000.0, 2000000.0]
    """
    xp = library(x)
    top = xp.max(x, axis=-1, keepdims=True)
    return top[..., 0] + kappa * xp.log(xp.sum(xp.exp(_over(x - top, kappa)), axis=-1))


def _over(gaps: Array, kappa: Real) -> Array:
    """gaps / κ, with 0 / κ = 0 where κ is too small for the type of the numbers."""
    xp = library(gaps)
    least = constant(float(xp.finfo(gaps.dtype).tiny), gaps)
    return gaps / xp.maximum(constant(kappa, gaps), least)


def soft_policy(x: Array, kappa: Real) -> Array:
    """softmax(x / κ) over the last axis, for κ > 0."""
    xp = library(x)
    weights = xp.exp(_over(x - xp.max(x, axis=-1, keepdims=True), kappa))
    return weights / xp.sum(weights, axis=-1, keepdims=True)


def scaled_log_policy(x: Array, kappa: Real) -> Array:
    """κ ln π with π = softmax(x / κ): finite however small κ is, as ln π alone is not."""
    return x - soft_maximum(x, kappa)[..., None]


def expected_under(pi: Array, x: Array) -> Array:
    """⟨π, x⟩ over the last axis; what π never takes may be infinite."""
    xp = library(x)
    return xp.sum(xp.where(pi == 0, 0.0, pi * x), axis=-1)


def mellowmax(x: Array, eta: float) -> Array:
    """ln(mean_a exp(η x_a)) / η over the last axis."""
    actions = constant(x.shape[-1], x)
    return soft_maximum(x, 1 / eta) - library(x).log(actions) / eta


def boltzmann(x: Array, eta: float) -> Array:
    """⟨softmax(η x), x⟩ over the last axis."""
    return expected_under(soft_policy(x, 1 / eta), x)
