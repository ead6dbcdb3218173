"""The two theorems of "Leverage the Average" (Vieillard et al. 2020), and what their proofs give.

With n = k + 1 the policy π_n is the one *used in* iteration n, as in `bounds`; q_0 = 0, and greedy
steps are exact. Both theorems are about a *regularised* evaluation: MoVI, the limit of DA-VI(λ, 0)
with a plain one, is not covered, and functions refuse such a run unless ``unproven=True``.

``stated`` are the constants of the paper, ``derived`` those of `docs/family.md`, where both proofs
are written out: they are never larger. [K, M], row n − 1 being iteration n.
"""

from typing import Literal

import numpy as np

from momentum_rl.core.family import weights
from momentum_rl.errors import UserError
from momentum_rl.mdp.model import FiniteMDP
from momentum_rl.mdp.solve.exact import weighted_norm
from momentum_rl.planning.theory import Trace, cumulative, largest_value

Constants = Literal["stated", "derived"]
SCHEMES = ("md-vi", "da-vi")


def _check(run: Trace, lam: float, tau: float, unproven: bool) -> tuple[float, float]:
    kappa, beta = (lam, 1.0) if unproven and lam + tau == 0 else weights(lam, tau)
    algorithm = run.scheme.algorithm
    soft = algorithm.tabular
    proven = algorithm.name in SCHEMES and (soft.temperature, soft.tau) == (kappa, tau)
    if not (unproven or proven):
        raise UserError(
            f"run: the theorem is not proven for {algorithm.name} with temperature "
            f"{soft.temperature:g}, expected md-vi or da-vi with λ = {lam:g} and τ = {tau:g}; "
            "unproven=True computes it all the same"
        )
    return kappa, beta


def averaged_errors(
    mdps: FiniteMDP,
    run: Trace,
    lam: float,
    *,
    constants: Constants = "stated",
    unproven: bool = False,
) -> np.ndarray:
    """Theorem 1 (λ > 0, τ = 0): ‖q* − q_{π_n}‖∞ ≤ this, [K, M].

    Stated: 2/(1 − γ) ‖(1/n) Σ_{j≤n} ε_j‖ + 4/(1 − γ) v^λ_max / n, where
    v^λ_max = (r_max + λ ln A)/(1 − γ).
    Derived: (γ sp(q_n − Σ_{j≤n} ε_j) + γ λ ln A) / (n (1 − γ)), sp(x) = max x − min x.
    """
    _check(run, lam, 0.0, unproven)
    discount, entropy = mdps.discount, lam * np.log(mdps.actions)
    gap, n = 1 - discount, np.arange(1, len(run.errors) + 1)[:, None]
    if constants == "stated":
        errors = weighted_norm(cumulative(run.errors), np.inf)
        return (2 * errors + 4 * (largest_value(mdps) + entropy / gap)) / (n * gap)
    x = run.q[1:] - run.q[0] + cumulative(run.errors)
    span = x.max((-2, -1)) - x.min((-2, -1))
    return discount * (span + entropy) / (n * gap)


def moving_average_errors(
    mdps: FiniteMDP,
    run: Trace,
    lam: float,
    tau: float,
    *,
    constants: Constants = "stated",
    unproven: bool = False,
) -> np.ndarray:
    """Theorem 2 (τ > 0): ‖q^τ_* − q^τ_{π_n}‖∞ ≤ this, [K, M], with k = n − 1.

    With E^β_j = (1 − β) Σ_{i≤j} β^{j−i} ε_i, stated:
    2/(1 − γ) Σ_{j≤k} γ^{k−j} ‖E^β_j‖ + γ^k (1 + (1 − β)/(1 − γ)) Σ_{j≤k} (β/γ)^j v^τ_max.
    Derived: 2γ/(1 − γ) [Σ_{1≤j≤k} γ^{k−j} ‖E^β_j − β^j T^τ 0‖ + γ^k c/(1 − γ)], where
    T^τ 0 = r + γ τ ln A and c = r_max + γ τ ln A.
    """
    if not tau > 0:
        raise UserError(f"tau: {tau!r}, expected a number above 0; averaged_errors is for 0")
    _, beta = _check(run, lam, tau, unproven)
    discount, entropy = mdps.discount, tau * np.log(mdps.actions)
    gap, r_max = 1 - discount, largest_value(mdps) * (1 - discount)
    first = mdps.rewards + (discount * entropy)[:, None, None]  # T^τ 0
    average, total = np.zeros_like(first), np.zeros(len(gap))
    initial = (
        (r_max + entropy) / gap if constants == "stated" else (r_max + discount * entropy) / gap
    )
    series, result = initial, np.empty(run.errors.shape[:2])  # Σ_{j≤k} γ^{k−j} β^j v^τ_max
    for k, error in enumerate(run.errors):
        if constants == "stated":
            result[k] = 2 / gap * total + (1 + (1 - beta) / gap) * series
        else:
            result[k] = 2 * discount / gap * (total + discount**k * initial)
        average = beta * average + (1 - beta) * error
        moved = average if constants == "stated" else average - beta ** (k + 1) * first
        total = discount * total + weighted_norm(moved, np.inf)
        series = discount * series + beta ** (k + 1) * initial
    return result
