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

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal

from momentum_rl.core.algorithm import Algorithm, StateView, Tabular, Target
from momentum_rl.core.arrays import Array, entry, library
from momentum_rl.core.options import (
    BelowOne,
    Count,
    NotNegative,
    Options,
    Positive,
    Share,
    on_tables,
)
from momentum_rl.core.schedules import Constant, Schedule
from momentum_rl.core.soft import (
    Real,
    expected_under,
    mellowmax,
    scaled_log_policy,
    soft_maximum,
    soft_policy,
)
from momentum_rl.core.targets import AVI, MOVI, evaluation, gap_increasing, greedy_value
from momentum_rl.errors import UserError

LEAST = 1e-300  # of λ + τ: numbers below about 1e-308 are taken for zero by compiled code


@dataclass(frozen=True)
class Regularised(Options):
    """λ, τ and whether the evaluation is regularised."""

    lam: NotNegative = 0.01
    """λ: the weight of the KL divergence to the policy before."""
    tau: NotNegative = 0.0
    """τ: the weight of the entropy."""
    evaluation: Literal["regularised", "plain"] = "regularised"
    """Whether the evaluation has the two terms of the greedy step as well, or is plain."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.lam + self.tau < LEAST:
            raise UserError(
                f"tau: {self.tau!r} with lambda {self.lam!r}, expected a sum of at least {LEAST:g}:"
                " at 0 the scheme is not defined (avi has neither; sql and movi are the limits "
                "λ → 0 at τ = 0)"
            )

    @property
    def regularised(self) -> bool:
        """Whether the evaluation is."""
        return self.evaluation == "regularised"

    @property
    def kappa(self) -> float:
        """κ = λ + τ."""
        return self.lam + self.tau


def weights(lam: float, tau: float) -> tuple[float, float]:
    """κ = λ + τ and β = λ / κ, of weights that make a scheme."""
    kappa = Regularised(lam, tau).kappa
    return kappa, lam / kappa


@on_tables("md-vi", "MD-VI")
@dataclass(frozen=True)
class MirrorDescent(Regularised):
    """Mirror-descent value iteration: each policy is made from the one before.

    The table p holds the logits of the policy, in units of value: p_k = β κ ln π_k + q_k, and
    π_{k+1} = softmax(p_k / κ). Two copies of it give π_{k+1} and π_k.
    """

    def algorithm(self) -> Algorithm:
        """MD-VI(λ, τ)."""
        return mirrored(*weights(self.lam, self.tau), self.tau, self.regularised)


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


@on_tables("da-vi", "DA-VI")
@dataclass(frozen=True)
class DualAveraging(Regularised):
    """Dual-averaging value iteration: the policy is made from the sum of the values.

    h_k = β h_{k−1} + q_k and π_{k+1} = softmax(h_k / κ); (1 − β) h_k is a moving average for τ > 0,
    h_k / (k + 1) the mean for τ = 0 (β = 1). With F = κ ln Σ exp(h / κ) the regularised evaluation
    telescopes: q_{k+1} = r + γ P (F_k − β F_{k−1}), from h_{−1} = 0.
    """

    def algorithm(self) -> Algorithm:
        """DA-VI(λ, τ)."""
        (kappa, beta), regularised = weights(self.lam, self.tau), self.regularised

        def bootstrap(next_values: StateView) -> Array:
            h, before = next_values["h"]
            if regularised:
                return soft_maximum(h, kappa) - beta * soft_maximum(before, kappa)
            return expected_under(soft_policy(h, kappa), next_values.value)

        def sums(values: StateView, a: Real, r: Real, discount: Real, v: Any, rate: Real) -> Array:
            return beta * entry(values["h"][0], a) + evaluation(values, a, r, discount, v, rate)

        return _with_a_table("da-vi", "h", bootstrap, sums, kappa, self.tau, regularised, rho=beta)


def _with_a_table(
    name: str,
    preference: str,
    bootstrap: Any,
    average: Any,
    kappa: Real,
    tau: Real,
    regularised: bool,
    rho: float | None = None,
) -> Algorithm:
    """q, and with it the table that the policy is read from, of which two copies are kept."""
    targets = {"q": Target(bootstrap, evaluation), preference: Target(bootstrap, average)}
    return Algorithm(
        name if regularised else f"{name}-plain",
        MappingProxyType(targets),
        preference=preference,
        lags=2,
        tabular=Tabular(temperature=kappa, tau=tau if regularised else 0.0, rho=rho),
    )


@on_tables("cvi", "CVI")
@dataclass(frozen=True)
class ConservativeValueIteration(Options):
    """Conservative value iteration (Kozuno, Uchibe, Doya 2019): DPP with α < 1.

    ψ(s, a) ← r + γ P mψ + α (ψ − mψ), m the mellowmax. Its policies are those of M-VI(α, 1/η), its
    values M-VI's less a constant: the mellowmax is a KL divergence to the uniform policy where M-VI
    has an entropy.
    """

    alpha: Share = 0.9
    """α: how much of the gap between actions is kept; 1 is DPP."""
    eta: Positive = 30.0
    """β' of that paper: the inverse temperature of the policy."""

    def algorithm(self) -> Algorithm:
        """CVI(α, η)."""
        alpha, eta = self.alpha, self.eta
        soft = Tabular(temperature=1 / eta, tau=(1 - alpha) / eta)
        return gap_increasing("cvi", alpha, lambda psi: mellowmax(psi, eta), soft)


@on_tables("advantage-learning", "AL")
@dataclass(frozen=True)
class AdvantageLearning(Options):
    """Advantage learning (Baird 1999; Bellemare et al. 2016).

    It is CVI as η → ∞ and M-VI as τ → 0.
    """

    alpha: Share = 0.9
    """α: how much of the gap between actions is kept; 1 is the greedy DPP, 0 is AVI."""

    def algorithm(self) -> Algorithm:
        """AL(α)."""

        def greedy(q: Array) -> Array:
            return library(q).max(q, axis=-1)

        return gap_increasing("advantage-learning", self.alpha, greedy, Tabular())


# Policies that are evaluated by more than one step ------------------------------------------------


def with_evaluation_sweeps(algorithm: Algorithm, name: str, sweeps: int | None) -> Algorithm:
    """The algorithm with q ← (T_π)^m q_k in each iteration; m = None: q ← q_π."""
    tabular = replace(algorithm.tabular, sweeps=sweeps)
    return replace(algorithm, name=name, accepts_momentum=False, tabular=tabular)


@on_tables("politex", "Politex")
@dataclass(frozen=True)
class Politex(Options):
    """Politex (Abbasi-Yadkori et al. 2019), discounted: DA-VI(λ, 0), plain, with q_{k+1} = q_π."""

    lam: Positive = 0.01
    """λ: the policy is softmax(Σ q / λ)."""
    sweeps: Count | None = None
    """Evaluations of each policy, q ← (T_π)^m q; none: exactly."""

    def algorithm(self) -> Algorithm:
        """Politex(λ)."""
        plain = DualAveraging(self.lam, evaluation="plain").algorithm()
        return with_evaluation_sweeps(plain, "politex", self.sweeps)


@on_tables("softened-lspi", "Softened LSPI")
@dataclass(frozen=True)
class SoftenedPolicyIteration(Options):
    """Softened LSPI (Pérolat et al. 2016), one player: MoVI with a fixed β and q_{k+1} = q_π."""

    beta: BelowOne = 0.9
    """β of the moving average h, for which the policy is greedy."""
    sweeps: Count | None = None
    """Evaluations of each policy, q ← (T_π)^m q; none: exactly."""

    def algorithm(self) -> Algorithm:
        """MoVI, its policies evaluated."""
        return with_evaluation_sweeps(MOVI, "softened-lspi", self.sweeps)

    def schedule(self) -> Schedule:
        """The constant."""
        return Constant(self.beta)


@on_tables("mpi", "MPI")
@dataclass(frozen=True)
class ModifiedPolicyIteration(Options):
    """Modified policy iteration (Puterman and Shin 1978): π = G(q_k), q_{k+1} = (T_π)^m q_k.

    m = 1 is AVI, m = ∞ policy iteration. It is softened LSPI with β = 0, whose h is a copy of q:
    the policy stays while q is evaluated.
    """

    sweeps: Count | None = 5
    """m: evaluations of each policy; 1 is value iteration, none policy iteration."""

    def algorithm(self) -> Algorithm:
        """MPI(m)."""
        return with_evaluation_sweeps(AVI if self.sweeps == 1 else MOVI, "mpi", self.sweeps)

    def schedule(self) -> Schedule:
        """h is q itself."""
        return Constant(0.0)


# Anchoring ---------------------------------------------------------------------------------------


@on_tables("anc-vi", "Anc-VI")
@dataclass(frozen=True)
class AnchoredValueIteration(Options):
    """Anchored value iteration (Lee and Ryu 2023).

    q_k = w_k q_0 + (1 − w_k) T q_{k−1}, anchored at q_0 = 0. The harmonic weight is the limit of
    the optimal one for γ → 1, and is the exact DA-VI(λ → 0, 0), whose mean q_k is; SQL is the same
    begun, and anchored, at T q_0. The schedule has to be β_k = k/(k+1), which tells k.
    """

    anchor: Literal["optimal", "harmonic"] = "optimal"
    """The anchor's weight w_k: 1/Σ_{i ≤ k} γ^{−2i} (optimal), or 1/(k+1), the exact limit of
    DA-VI."""

    def algorithm(self) -> Algorithm:
        """Anc-VI."""
        harmonic = self.anchor == "harmonic"

        def backup(
            values: StateView, a: Real, r: Real, discount: Real, v: Any, beta: Real
        ) -> Array:
            y = evaluation(values, a, r, discount, v, beta)
            if harmonic:
                return beta * y
            power = discount ** (2 * beta / (1 - beta))  # γ^{2k}
            return (1 - power * (1 - discount**2) / (1 - power * discount**2)) * y

        targets = MappingProxyType({"q": Target(greedy_value, backup)})
        return Algorithm("anc-vi", targets, uses_beta=True)
