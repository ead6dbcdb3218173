"""The algorithms of *Momentum in Reinforcement Learning*, each as a regression target; momentum.

An algorithm derives a *policy* from a value, and moves the value towards a *target* that evaluates
this policy. A target is a pure function of the values at a state s, the action a, the reward r, the
discount, the mixture rate β, and of what it reads at the successor s' (`algorithm.py` has its two
parts). Here each is written once, on one example. Three engines evaluate it: exact planning (its
expectation over s'), sampled planning (one s' per (s, a)) and deep learning (a minibatch).

**Momentum** changes what the policy is derived from: ``momentum(x)`` reads x's policy from an
average h of its values instead of from q, and nothing else. ``momentum(AVI)`` is MoVI.

Equations are cited by their labels in the paper's source (eq:movi, …), whose printed numbers differ
between versions.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Literal

from momentum_rl.core.algorithm import Algorithm as Algorithm
from momentum_rl.core.algorithm import StateView as StateView
from momentum_rl.core.algorithm import Target as Target
from momentum_rl.core.arrays import Array, entry, library
from momentum_rl.core.soft import (
    Real,
    boltzmann,
    expected_under,
    mellowmax,
    scaled_log_policy,
    soft_policy,
)
from momentum_rl.core.values import NUMBER, ValueKind
from momentum_rl.errors import UserError, check_fraction, check_not_negative, check_positive, door

# What is read at the successor -------------------------------------------------------------------


def greedy_value(next_values: StateView) -> Array:
    """q(s', π(s')): max_a q(s', a) for AVI; with π = G(h), greedy for the *average*, for MoVI."""
    return next_values.greedy


def two_greedy_values(next_values: StateView) -> tuple[Array, Array]:
    """(max_a q¹(s', a), max_a q²(s', a)): the newest copy and the one before."""
    newest, before = next_values[next_values.algorithm.value_table]
    return library(newest).max(newest), library(before).max(before)


# What is made of it ------------------------------------------------------------------------------


def evaluation(values: StateView, a: Real, r: Real, discount: Real, v: Any, beta: Real) -> Array:
    """r + γ v(s'): AVI (eq:avi), DQN, and the q of MoVI (eq:movi) and of Momentum-DQN (Q̂)."""
    del a, beta
    own = values.algorithm
    return own.kind(own.value_table).backup(r, discount, v)


def speedy(values: StateView, a: Real, r: Real, discount: Real, v: Any, beta: Real) -> Array:
    """Speedy Q-learning with 1/k = 1 − β: SQL (eq:sql-q) and Deep SQL.

    q¹ + (1 − β)(r + γ max q² − q¹) + β γ (max q¹ − max q²), with q¹ at (s, a) and the maxima at s'.
    """
    (v1, v2), q1 = v, entry(values.value, a)
    return q1 + (1 - beta) * (r + discount * v2 - q1) + beta * discount * (v1 - v2)


def speedy_as_printed(
    values: StateView, a: Real, r: Real, discount: Real, v: Any, beta: Real
) -> Array:
    """Deep SQL as the appendix prints it: the sign of the last difference is reversed.

    It contradicts SQL and is slower in tables; kept to reproduce what the paper states.
    """
    (v1, v2), q1 = v, entry(values.value, a)
    return q1 + (1 - beta) * (r + discount * v2 - q1) + beta * discount * (v2 - v1)


# The algorithms ----------------------------------------------------------------------------------

AVI = Algorithm(
    "avi", MappingProxyType({"q": Target(greedy_value, evaluation)}), values_are_returns=True
)


@door
def momentum(
    algorithm: Algorithm,
    name: str | None = None,
    *,
    h_target: Literal["sample", "network"] = "sample",
    h_value: Literal["same", "number"] = "same",
) -> Algorithm:
    """The algorithm with its policy read from h, the average of its values, instead of from q.

    h moves towards β h(s, a) + (1 − β) y, where y is what q moves towards (eq:movi, Ĥ). With
    ``h_target="network"`` y is the value Q(s, a) of the network as it is now, instead of a fresh
    sample ("Leverage the Average", appendix E.2). With ``h_value="number"`` h is a number, the
    average of the means, whatever the values of q are.

    >>> momentum(AVI).preference, momentum(AVI, "movi").name
    ('h', 'movi')
    >>> momentum(SQL)
    Traceback (most recent call last):
    momentum_rl.errors.UserError: momentum: sql has no value that only evaluates its policy ...
    """
    if "h" in algorithm.targets:
        raise UserError(f"momentum: {algorithm.name} already has an average h, expected none")
    if not algorithm.accepts_momentum or set(algorithm.targets) != {algorithm.value_table}:
        raise UserError(
            f"momentum: {algorithm.name} has no value that only evaluates its policy (its q "
            "carries an average or a preference of its own), expected one such as avi or dqn"
        )
    if not reads_preference(algorithm):
        raise UserError(
            f"momentum: {algorithm.name} reads its policy from q by name, so that momentum would "
            "change nothing; expected targets that read values.preference or values.greedy"
        )
    value = algorithm.value_table
    q, kind = algorithm.targets[value], algorithm.kind(value)
    own = kind if h_value == "same" else NUMBER

    def average(values: StateView, a: Real, r: Real, discount: Real, v: Any, beta: Real) -> Array:
        if h_target == "network":
            y = entry(values.current[value], a)
        else:
            y = q.backup(values, a, r, discount, v, beta)
        return own.mixture(
            beta, entry(values["h"][0], a), y if own == kind else kind.expectation(y)
        )

    return replace(
        algorithm,
        name=f"momentum-{algorithm.name}" if name is None else name,
        targets=MappingProxyType({value: q, "h": Target(q.bootstrap, average)}),
        preference="h",
        uses_beta=True,
        kinds=MappingProxyType({n: k for n, k in ((value, kind), ("h", own)) if k != NUMBER}),
        reads_current=algorithm.reads_current or h_target == "network",
    )


def reads_preference(algorithm: Algorithm) -> bool:
    """Whether a target reads its policy from the preference, as its trace tells."""
    q = algorithm.targets[algorithm.value_table]
    if q.bootstrap is greedy_value:  # known, without a trace
        return True
    import jax
    import jax.numpy as jnp

    targets = {**algorithm.targets, "own": q}
    apart = replace(algorithm, targets=targets, preference="own", double=False)

    def evaluate(own: Array, rows: dict[str, Array], current: dict[str, Array]) -> Any:
        values = apart.at({**rows, "own": own}, current)
        v = q.bootstrap(values)
        return v, q.backup(values, 0, 0.0, 0.5, v, 0.5)

    def row(name: str, *lags: int) -> Any:
        return jax.ShapeDtypeStruct((*lags, 2, *apart.kind(name).shape), jnp.float32)

    rows = {name: row(name, algorithm.lags) for name in algorithm.targets}
    current = {name: row(name) for name in algorithm.targets}
    traced = jax.make_jaxpr(evaluate)(row("own", algorithm.lags), rows, current).jaxpr
    own = traced.invars[0]
    return any(own is x for equation in traced.eqns for x in equation.invars)


MOVI = momentum(AVI, "movi")


@door
def smoothed_value_iteration(rho: float) -> Algorithm:
    """MoVI in the form of Section 3, h_k = ρ h_{k−1} + q_k, for any ρ ≥ 0.

    With w_k = 1 + ρ + … + ρ^k, h_k / w_k is MoVI's average with β_k = 1 − 1/w_k
    (``schedules.Smoothing``), so that both have the same policies: ρ = 0 is AVI, ρ = 1 is
    β_k = k/(k+1), and from q_0 = 0 a ρ < 1 has the policies of the constant β = ρ.
    """
    check_not_negative("rho", rho)

    def sums(values: StateView, a: Real, r: Real, discount: Real, v: Any, beta: Real) -> Array:
        return rho * entry(values["h"][0], a) + evaluation(values, a, r, discount, v, beta)

    q = MOVI.targets["q"]
    targets = MappingProxyType({"q": q, "h": Target(q.bootstrap, sums)})
    return replace(MOVI, name="movi-smoothed", targets=targets, uses_beta=False, rho=rho)


@door
def double(algorithm: Algorithm, name: str | None = None) -> Algorithm:
    """The algorithm with the policy of its targets read from the network as it is now.

    ``double(AVI)`` is Double DQN: r + γ Q⁻(s', argmax Q(s')). In a table the network as it is now
    is the newest copy, so that nothing changes.
    """
    if not reads_preference(algorithm):
        raise UserError(f"double: {algorithm.name} reads no policy from a preference")
    return replace(
        algorithm,
        name=f"double-{algorithm.name}" if name is None else name,
        reads_current=True,
        double=True,
    )


def distributional(kind: ValueKind, name: str = "avi-distributional") -> Algorithm:
    """AVI on values of another kind: C51 on atoms (``Categorical``), QR-DQN on quantiles.

    r + γ Z(s', a*), with a* greedy for the mean of Z.
    """
    return replace(AVI, name=name, kinds=MappingProxyType({"q": kind}))


@door
def speedy_q_learning(sign: Literal["sql", "printed"] = "sql") -> Algorithm:
    """SQL with its own sign, or with the one that the paper's appendix prints."""
    backups = {"sql": speedy, "printed": speedy_as_printed}
    return Algorithm(
        "sql" if sign == "sql" else "sql-printed",
        MappingProxyType({"q": Target(two_greedy_values, backups[sign])}),
        lags=2,
        uses_beta=True,
        first_beta=0,
        accepts_momentum=False,
        values_are_returns=True,
        analysed_in_psi=True,
    )


SQL = speedy_q_learning("sql")


def gap_increasing(
    name: str, alpha: float, soft: Callable[[Array], Array], **traits: Any
) -> Algorithm:
    """r + γ mψ(s') + α (ψ(s, a) − mψ(s)), where q holds ψ: the form of DPP, CVI and AL."""

    def bootstrap(next_values: StateView) -> Array:
        return soft(next_values.value)

    def backup(values: StateView, a: Real, r: Real, discount: Real, v: Any, beta: Real) -> Array:
        del beta
        psi = values.value
        return alpha * entry(psi, a) + r + discount * v - alpha * soft(psi)

    targets = MappingProxyType({"q": Target(bootstrap, backup)})
    return Algorithm(name, targets, accepts_momentum=False, **traits)


@door
def dynamic_policy_programming(
    eta: float | None = None, form: Literal["log-sum-exp", "boltzmann"] = "log-sum-exp"
) -> Algorithm:
    """DPP: ψ(s, a) + r + γ mψ(s') − mψ(s), where q holds ψ (eq:psi-dpp; Deep DPP).

    Without η, m is the maximum: the greedy limit, which the paper's Deep DPP is. With a finite η
    it is the mellowmax (log-sum-exp form), or ⟨softmax(ηψ), ψ⟩ (the form that Azar et al. analyse).
    """
    if eta is not None:
        check_positive("eta", eta)
    softened = {"log-sum-exp": mellowmax, "boltzmann": boltzmann}

    def soft(psi: Array) -> Array:
        return library(psi).max(psi) if eta is None else softened[form](psi, eta)

    return gap_increasing("dpp", 1.0, soft, temperature=0.0 if eta is None else 1 / eta)


DPP = dynamic_policy_programming()


@door
def munchausen(alpha: float = 0.9, tau: float = 0.03, floor: float = -1.0) -> Algorithm:
    """Munchausen value iteration (Vieillard, Pietquin, Geist 2020), M-VI(α, τ); q is its value.

    r + α [τ ln π(a|s)]_{floor}^0 + γ Σ_b π(b|s') (q(s', b) − τ ln π(b|s')), π = softmax(q / τ): the
    logarithm is clipped from below at ``floor``, which may be −∞.
    """
    check_fraction("alpha", alpha)
    check_positive("tau", tau)
    if not floor <= 0:
        raise UserError(f"floor: {floor!r}, expected a number of at most 0")

    def bootstrap(next_values: StateView) -> Array:
        log_pi = scaled_log_policy(next_values.preference, tau)
        return expected_under(soft_policy(next_values.preference, tau), next_values.value - log_pi)

    def backup(values: StateView, a: Real, r: Real, discount: Real, v: Any, beta: Real) -> Array:
        log_pi = entry(scaled_log_policy(values.preference, tau), a)
        clipped = library(log_pi).clip(log_pi, floor, 0.0)
        return evaluation(values, a, r + alpha * clipped, discount, v, beta)

    targets = MappingProxyType({"q": Target(bootstrap, backup)})
    return Algorithm("munchausen", targets, temperature=tau, tau=(1 - alpha) * tau)


SCHEMES: Mapping[str, Algorithm] = MappingProxyType(
    {algorithm.name: algorithm for algorithm in (AVI, MOVI, SQL, DPP)}
)
"""The paper's four; `momentum_rl.core.family` has their relatives."""
