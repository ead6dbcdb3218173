"""The family that MoVI belongs to: value iteration regularised by KL divergence and by entropy.

After Vieillard, Kozuno, Scherrer, Pietquin, Munos and Geist, "Leverage the Average" (2020). With
λ the weight of the KL divergence to the policy before and τ that of the entropy,

    π_{k+1} = argmax_π ⟨π, q_k⟩ − λ KL(π ‖ π_k) + τ H(π)              the greedy step
    q_{k+1} = r + γ P (⟨π_{k+1}, q_k⟩ − λ KL(π_{k+1} ‖ π_k) + τ H(π_{k+1}))     the evaluation

and one bit: whether the evaluation is *regularised* like the greedy step, or *plain* (r + γ P
⟨π, q⟩). `docs/family.md` has the map of all schemes.

Letters: κ = λ + τ and β = λ / κ. The greedy step is π_{k+1} ∝ π_k^β exp(q_k / κ). In the code
logarithms of policies are multiplied by κ: they are values then, and stay finite as λ, τ → 0.
"""

from dataclasses import replace
from types import MappingProxyType
from typing import Any, Literal

from momentum_rl.core.algorithm import Algorithm, StateView, Target
from momentum_rl.core.arrays import Array, entry, library
from momentum_rl.core.soft import (
    Real,
    expected_under,
    mellowmax,
    scaled_log_policy,
    soft_maximum,
    soft_policy,
)
from momentum_rl.core.targets import AVI, MOVI, evaluation, gap_increasing, greedy_value, munchausen
from momentum_rl.errors import UserError, check_fraction, check_positive

LEAST = 1e-300  # of λ + τ: numbers below about 1e-308 are taken for zero by compiled code


def weights(lam: float, tau: float) -> tuple[float, float]:
    """κ = λ + τ and β = λ / κ, of weights that make a scheme."""
    for name, value in (("lambda", lam), ("tau", tau)):
        if isinstance(value, bool) or not (isinstance(value, int | float) and 0 <= value < 1e300):
            raise UserError(f"{name}: {value!r}, expected a number of at least 0")
    if lam + tau < LEAST:
        raise UserError(
            f"tau: {tau!r} with lambda {lam!r}, expected a sum of at least {LEAST:g}: at 0 the "
            "scheme is not defined (avi has neither; sql and movi are the limits λ → 0 at τ = 0)"
        )
    return lam + tau, lam / (lam + tau)


def mirror_descent(lam: float, tau: float = 0.0, *, regularised: bool = True) -> Algorithm:
    """MD-VI(λ, τ): the policy is made from the one before it.

    The table p holds the logits of the policy, in units of value: p_k = β κ ln π_k + q_k, and
    π_{k+1} = softmax(p_k / κ). Two copies of it give π_{k+1} and π_k.
    """
    kappa, beta = weights(lam, tau)
    return mirrored(kappa, beta, tau, regularised)


def mirrored(kappa: Real, beta: Real, tau: Real, regularised: bool) -> Algorithm:
    """MD-VI for κ and β that may be traced: one compiled program for a whole grid of them."""

    def bootstrap(next_values: StateView) -> Array:
        q, (p, before) = next_values.value, next_values["p"]
        if regularised:  # − λ KL + τ H = ⟨π, β κ ln π_k − κ ln π⟩
            q = q + beta * scaled_log_policy(before, kappa) - scaled_log_policy(p, kappa)
        return expected_under(soft_policy(p, kappa), q)

    def logits(values: StateView, a: Real, r: Real, discount: Real, v: Any, rate: Real) -> Array:
        log_pi = entry(scaled_log_policy(values["p"][0], kappa), a)
        return beta * log_pi + evaluation(values, a, r, discount, v, rate)

    return _with_a_table("md-vi", "p", bootstrap, logits, kappa, tau, regularised)


def dual_averaging(lam: float, tau: float = 0.0, *, regularised: bool = True) -> Algorithm:
    """DA-VI(λ, τ): the policy is made from the sum of all values so far.

    h_k = β h_{k−1} + q_k and π_{k+1} = softmax(h_k / κ); (1 − β) h_k is a moving average for τ > 0,
    h_k / (k + 1) the mean for τ = 0 (β = 1). With F = κ ln Σ exp(h / κ) the regularised evaluation
    telescopes: q_{k+1} = r + γ P (F_k − β F_{k−1}), from h_{−1} = 0.
    """
    kappa, beta = weights(lam, tau)

    def bootstrap(next_values: StateView) -> Array:
        h, before = next_values["h"]
        if regularised:
            return soft_maximum(h, kappa) - beta * soft_maximum(before, kappa)
        return expected_under(soft_policy(h, kappa), next_values.value)

    def sums(values: StateView, a: Real, r: Real, discount: Real, v: Any, rate: Real) -> Array:
        return beta * entry(values["h"][0], a) + evaluation(values, a, r, discount, v, rate)

    made = _with_a_table("da-vi", "h", bootstrap, sums, kappa, tau, regularised)
    return replace(made, rho=beta)


def _with_a_table(
    name: str,
    preference: str,
    bootstrap: Any,
    average: Any,
    kappa: Real,
    tau: Real,
    regularised: bool,
) -> Algorithm:
    """q, and beside it the table that the policy is read from, of which two copies are kept."""
    targets = {"q": Target(bootstrap, evaluation), preference: Target(bootstrap, average)}
    return Algorithm(
        name if regularised else f"{name}-plain",
        MappingProxyType(targets),
        preference=preference,
        lags=2,
        accepts_momentum=False,
        temperature=kappa,
        tau=tau if regularised else 0.0,
    )


def munchausen_value_iteration(alpha: float, tau: float) -> Algorithm:
    """M-VI(α, τ), unclipped: MD-VI(ατ, (1 − α)τ) in one table, q' = q − ατ ln π.

    As τ → 0 it is advantage learning, and with α = 0 it is value iteration with entropy.
    """
    return replace(munchausen(alpha, tau, -float("inf")), name="m-vi", accepts_momentum=False)


def conservative_value_iteration(alpha: float, eta: float) -> Algorithm:
    """CVI(α, β'), with η for β' (Kozuno et al. 2019): DPP with α < 1; policies of M-VI(α, 1/η).

    ψ(s, a) ← r + γ P mψ + α (ψ − mψ), m the mellowmax. Its values are those of M-VI less a
    constant: the mellowmax is a KL divergence to the uniform policy where M-VI has an entropy.
    """
    check_fraction("alpha", alpha)
    check_positive("eta", eta)
    return gap_increasing(
        "cvi", alpha, lambda psi: mellowmax(psi, eta), temperature=1 / eta, tau=(1 - alpha) / eta
    )


def advantage_learning(alpha: float) -> Algorithm:
    """AL(α) (Baird 1999, Bellemare et al. 2016): CVI as η → ∞, M-VI as τ → 0; α = 1 is DPP's."""
    check_fraction("alpha", alpha)
    return gap_increasing("advantage-learning", alpha, lambda q: library(q).max(q, axis=-1))


# Policies that are evaluated by more than one step ------------------------------------------------


def with_evaluation_sweeps(algorithm: Algorithm, name: str, sweeps: int | None) -> Algorithm:
    """The algorithm with q ← (T_π)^m q_k in each iteration; m = None: q ← q_π."""
    if sweeps is not None and (type(sweeps) is not int or not 1 <= sweeps < 2**31):
        raise UserError(f"sweeps: {sweeps!r}, expected an integer from 1 to 2147483647, or none")
    return replace(algorithm, name=name, sweeps=sweeps)


def politex(lam: float, sweeps: int | None = None) -> Algorithm:
    """Politex (Abbasi-Yadkori et al. 2019), discounted: DA-VI(λ, 0), plain, with q_{k+1} = q_π."""
    return with_evaluation_sweeps(dual_averaging(lam, regularised=False), "politex", sweeps)


def softened_policy_iteration(sweeps: int | None = None) -> Algorithm:
    """Softened LSPI (Pérolat et al. 2016), one player: MoVI with a fixed β and q_{k+1} = q_π."""
    return with_evaluation_sweeps(MOVI, "softened-lspi", sweeps)


def modified_policy_iteration(sweeps: int | None = None) -> Algorithm:
    """MPI(m): π = G(q_k), q_{k+1} = (T_π)^m q_k. m = 1 is AVI, m = ∞ policy iteration.

    It is softened LSPI with β = 0, whose h is a copy of q: the policy stays while q is evaluated.
    """
    return with_evaluation_sweeps(AVI if sweeps == 1 else MOVI, "mpi", sweeps)


# Anchoring ---------------------------------------------------------------------------------------


def anchored(anchor: Literal["optimal", "harmonic"] = "optimal") -> Algorithm:
    """Anc-VI (Lee and Ryu 2023): q_k = w_k q_0 + (1 − w_k) T q_{k−1}, anchored at q_0 = 0.

    w_k = 1 / Σ_{i ≤ k} γ^{−2i}, or with ``harmonic`` 1 / (k + 1), its limit for γ → 1: that is the
    exact DA-VI(λ → 0, 0), whose mean q_k is; SQL is the same begun, and anchored, at T q_0.
    The schedule has to be β_k = k/(k+1), which tells k.
    """
    if anchor not in ("optimal", "harmonic"):
        raise UserError(f"anchor: {anchor!r}, expected 'optimal' or 'harmonic'")

    def backup(values: StateView, a: Real, r: Real, discount: Real, v: Any, beta: Real) -> Array:
        y = evaluation(values, a, r, discount, v, beta)
        if anchor == "harmonic":
            return beta * y
        power = discount ** (2 * beta / (1 - beta))  # γ^{2k}
        return (1 - power * (1 - discount**2) / (1 - power * discount**2)) * y

    return Algorithm(
        "anc-vi",
        MappingProxyType({"q": Target(greedy_value, backup)}),
        uses_beta=True,
        accepts_momentum=False,
    )
