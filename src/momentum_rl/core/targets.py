"""The algorithms of *Momentum in Reinforcement Learning*, each as a regression target; momentum.

An algorithm derives a *policy* from a value, and moves the value towards a *target* that evaluates
this policy. A target is a pure function of the values at a state s, the action a, the reward r, the
discount, the mixture rate β, and of what it reads at the successor s' (`algorithm.py` has its two
parts). Here each is written once, on one example. Three engines evaluate it: exact planning (its
expectation over s'), sampled planning (one s' per (s, a)) and deep learning (a minibatch).

**Momentum** changes what the policy is derived from: ``momentum(x)`` reads x's policy from an
average h of its values instead of from q, and nothing else. ``momentum(AVI)`` is MoVI.

Each algorithm is declared once, as a dataclass of its options (`options.py`), with its name on
tables and its name with networks. ``momentum`` adds its own where the declaration accepts it.

Equations are cited by their labels in the paper's source (eq:movi, …), whose printed numbers differ
between versions.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Annotated, Any, Literal

from momentum_rl.core.algorithm import Algorithm as Algorithm
from momentum_rl.core.algorithm import StateView as StateView
from momentum_rl.core.algorithm import Tabular as Tabular
from momentum_rl.core.algorithm import Target as Target
from momentum_rl.core.arrays import Array, entry, library
from momentum_rl.core.options import (
    Averaging,
    BelowOne,
    NotPositive,
    Options,
    Positive,
    Share,
    capped,
    integer_from,
    on_networks,
    on_tables,
)
from momentum_rl.core.schedules import Constant, Mean, Schedule
from momentum_rl.core.soft import (
    Real,
    boltzmann,
    expected_under,
    mellowmax,
    scaled_log_policy,
    soft_policy,
)
from momentum_rl.core.values import NUMBER, Categorical, Quantile, ValueKind
from momentum_rl.errors import UserError, check_not_negative, door

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
    algorithm = values.algorithm
    return algorithm.kind(algorithm.value_table).backup(r, discount, v)


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


# Value iteration, and momentum --------------------------------------------------------------------

AVI = Algorithm(
    "avi",
    MappingProxyType({"q": Target(greedy_value, evaluation)}),
    accepts_momentum=True,
    values_are_returns=True,
)


@on_tables("avi", "AVI")
@on_networks("dqn", "DQN")
@dataclass(frozen=True)
class ValueIteration(Options):
    """Approximate value iteration (eq:avi); with a network for the table, Deep Q-Network."""

    def algorithm(self) -> Algorithm:
        """r + γ max q(s')."""
        return AVI


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
    momentum_rl.errors.UserError: momentum: sql does not accept it, ...
    """
    value = algorithm.value_table
    if "h" in algorithm.targets:
        raise UserError(f"momentum: {algorithm.name} already has an average h, expected none")
    if not algorithm.accepts_momentum or set(algorithm.targets) != {value}:
        raise UserError(
            f"momentum: {algorithm.name} does not accept it, expected an algorithm such as avi or "
            "dqn: one value, which only evaluates the policy that its target reads from "
            "values.preference or values.greedy, declared by accepts_momentum=True"
        )
    q, kind = algorithm.targets[value], algorithm.kind(value)
    averaged = kind if h_value == "same" else NUMBER

    def average(values: StateView, a: Real, r: Real, discount: Real, v: Any, beta: Real) -> Array:
        if h_target == "network":
            y = entry(values.current[value], a)
        else:
            y = q.backup(values, a, r, discount, v, beta)
        if averaged != kind:
            y = kind.expectation(y)
        return averaged.mixture(beta, entry(values["h"][0], a), y)

    kinds = {name: of for name, of in ((value, kind), ("h", averaged)) if of != NUMBER}
    return replace(
        algorithm,
        name=f"momentum-{algorithm.name}" if name is None else name,
        targets=MappingProxyType({value: q, "h": Target(q.bootstrap, average)}),
        preference="h",
        uses_beta=True,
        kinds=MappingProxyType(kinds),
        accepts_momentum=False,
        reads_current=algorithm.reads_current or h_target == "network",
    )


MOVI = momentum(AVI, "movi")


@on_tables("movi", "MoVI")
@dataclass(frozen=True)
class MomentumValueIteration(Options):
    """Momentum value iteration (eq:movi)."""

    takes_beta = True

    beta: BelowOne | None = None
    """A constant β, which makes h a moving average; None: β_k = k/(k+1), the mean."""
    beta_max: BelowOne | None = None
    """The largest β_k; None: no limit. With errors of the average there is a best one below 1."""

    def algorithm(self) -> Algorithm:
        """AVI with its policy read from the average."""
        return MOVI

    def schedule(self) -> Schedule:
        """The mean or the constant, up to the largest β."""
        return capped(Mean() if self.beta is None else Constant(self.beta), self.beta_max)


@dataclass(frozen=True)
class Momentum(Averaging):
    """What momentum lets one choose with networks, added to the options of the algorithm below."""

    shared_batch: bool = False
    """One minibatch for both networks instead of one each (paper: one each)."""
    tie: bool = False
    """H begins as a copy of Q and shares its minibatch (paper: neither). With β = 0 it then stays
    Q's equal: what differs from the algorithm without momentum is the average's work alone."""
    h_target: Literal["sample", "network"] = "sample"
    """What H averages. sample: the fresh target of Q (paper); network: the value Q(s, a) of the
    online network ("Leverage the Average", appendix E.2)."""

    def algorithm(self) -> Algorithm:
        """``momentum`` of the other algorithm."""
        return momentum(super().algorithm(), h_target=self.h_target)


@dataclass(frozen=True)
class DistributionalMomentum(Momentum):
    """The same, added to the options of an algorithm whose values are distributions."""

    h_value: Literal["same", "number"] = "same"
    """What H is. same: a distribution as Q is, the mixture β H⁻ + (1 − β) y; number: the average of
    the means, which tells whether H's distribution matters."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tie and self.h_value == "number":
            raise UserError("tie: H is a number and Q is not, expected --h-value same")

    def algorithm(self) -> Algorithm:
        """``momentum`` of the other algorithm."""
        other = super(Momentum, self).algorithm()
        return momentum(other, h_target=self.h_target, h_value=self.h_value)


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
    return replace(
        MOVI, name="movi-smoothed", targets=targets, uses_beta=False, tabular=Tabular(rho=rho)
    )


# Other ways of averaging --------------------------------------------------------------------------


@on_tables("sql", "SQL")
@on_networks("deep-sql", "Deep SQL")
@dataclass(frozen=True)
class SpeedyQLearning(Options):
    """Speedy Q-learning (eq:sql-q); with networks, Deep SQL (appendix)."""

    takes_beta = True

    sign: Literal["sql", "printed"] = "sql"
    """The last term: with Speedy Q-learning's sign, or with the one that the appendix prints."""

    def algorithm(self) -> Algorithm:
        """q¹ + (1 − β)(r + γ max q² − q¹) ± β γ (max q¹ − max q²)."""
        backup = {"sql": speedy, "printed": speedy_as_printed}[self.sign]
        return Algorithm(
            "sql" if self.sign == "sql" else "sql-printed",
            MappingProxyType({"q": Target(two_greedy_values, backup)}),
            lags=2,
            uses_beta=True,
            values_are_returns=True,
            tabular=Tabular(first_beta=0, in_psi=True),
        )


SQL = SpeedyQLearning().algorithm()


def gap_increasing(
    name: str, alpha: float, soft: Callable[[Array], Array], tabular: Tabular
) -> Algorithm:
    """r + γ mψ(s') + α (ψ(s, a) − mψ(s)), where q holds ψ: the form of DPP, CVI and AL."""

    def bootstrap(next_values: StateView) -> Array:
        return soft(next_values.value)

    def backup(values: StateView, a: Real, r: Real, discount: Real, v: Any, beta: Real) -> Array:
        del beta
        psi = values.value
        return alpha * entry(psi, a) + r + discount * v - alpha * soft(psi)

    return Algorithm(name, MappingProxyType({"q": Target(bootstrap, backup)}), tabular=tabular)


@on_tables("dpp", "DPP")
@on_networks("deep-dpp", "Deep DPP")
@dataclass(frozen=True)
class DynamicPolicyProgramming(Options):
    """Dynamic policy programming (eq:psi-dpp); with networks, Deep DPP (appendix)."""

    eta: Positive | None = None
    """η: the inverse temperature of the policy; None: the greedy limit (the paper's)."""
    form: Literal["log-sum-exp", "boltzmann"] = "log-sum-exp"
    """With η: the log-sum-exp form (Tsurumine et al. 2019), or the form with ⟨softmax(ηψ), ψ⟩ that
    Azar et al. (2012) analyse."""

    def algorithm(self) -> Algorithm:
        """ψ(s, a) + r + γ mψ(s') − mψ(s), m the maximum, the mellowmax or ⟨softmax(ηψ), ψ⟩."""
        eta = self.eta
        if eta is None:
            return gap_increasing("dpp", 1.0, lambda psi: library(psi).max(psi), Tabular())
        softened = {"log-sum-exp": mellowmax, "boltzmann": boltzmann}[self.form]
        soft = Tabular(temperature=1 / eta)
        return gap_increasing("dpp", 1.0, lambda psi: softened(psi, eta), soft)


DPP = DynamicPolicyProgramming().algorithm()


# What value iteration becomes ---------------------------------------------------------------------


@door
def double(algorithm: Algorithm, name: str | None = None) -> Algorithm:
    """The algorithm with the policy of its targets read from the network as it is now.

    ``double(AVI)`` is Double DQN: r + γ Q⁻(s', argmax Q(s')). In a table the network as it is now
    is the newest copy, so that nothing changes.
    """
    if not algorithm.accepts_momentum and "h" not in algorithm.targets:
        raise UserError(f"double: {algorithm.name} reads no policy from a preference")
    return replace(
        algorithm,
        name=f"double-{algorithm.name}" if name is None else name,
        reads_current=True,
        double=True,
    )


@on_networks("double-dqn", "Double DQN")
@dataclass(frozen=True)
class DoubleDQN(Options):
    """Double DQN (van Hasselt et al. 2016)."""

    def algorithm(self) -> Algorithm:
        """DQN whose targets take the action from the online network."""
        return double(AVI)


def distributional(kind: ValueKind, name: str = "avi-distributional") -> Algorithm:
    """AVI on values of another kind: r + γ Z(s', a*), with a* greedy for the mean of Z."""
    return replace(AVI, name=name, kinds=MappingProxyType({"q": kind}))


@on_networks("c51", "C51")
@dataclass(frozen=True)
class C51(Options):
    """C51 (Bellemare et al. 2017): the distribution of returns on fixed atoms."""

    atoms: Annotated[int, integer_from(2)] = 51
    """Atoms, evenly spaced (Dopamine: 51 on Atari, 201 on CartPole)."""
    v_min: float = -10.0
    """The first atom (Dopamine: −10 on Atari, −100 on small environments)."""
    v_max: float = 10.0
    """The last (Dopamine: 10 and 100). Returns beyond count as these, and the share of their
    probability is logged as clipped_q."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.v_min < self.v_max:
            raise UserError(f"v_min: {self.v_min}, expected less than v_max ({self.v_max})")

    def algorithm(self) -> Algorithm:
        """AVI on distributions."""
        return distributional(Categorical(self.v_min, self.v_max, self.atoms))


@on_networks("qr-dqn", "QR-DQN")
@dataclass(frozen=True)
class QRDQN(Options):
    """QR-DQN (Dabney et al. 2018), with everything else as DQN has it."""

    quantiles: Annotated[int, integer_from(1)] = 200
    """Quantiles (Dabney et al. and Dopamine: 200)."""

    def algorithm(self) -> Algorithm:
        """AVI on quantiles."""
        return distributional(Quantile(self.quantiles))


@on_tables("m-vi", "M-VI", floor=None)
@on_networks("munchausen-dqn", "Munchausen-DQN")
@dataclass(frozen=True)
class Munchausen(Options):
    """Munchausen value iteration (Vieillard, Pietquin, Geist 2020); q is its value.

    M-VI(α, τ), unclipped, is MD-VI(ατ, (1 − α)τ) in one table, q' = q − ατ ln π. As τ → 0 it is
    advantage learning, and with α = 0 it is value iteration with entropy.
    """

    alpha: Share = 0.9
    """α: the weight of the log-policy that is added to the reward."""
    tau: Positive = 0.03
    """τ: the temperature of the softmax policy."""
    floor: NotPositive | None = -1.0
    """l₀: the log-policy, times τ, is clipped from below at this; None: it is not."""

    def algorithm(self) -> Algorithm:
        """r + α [τ ln π(a|s)]_{l₀}^0 + γ ⟨π, q − τ ln π⟩(s'), π = softmax(q / τ)."""
        alpha, tau = self.alpha, self.tau
        floor = -float("inf") if self.floor is None else self.floor

        def bootstrap(next_values: StateView) -> Array:
            log_pi = scaled_log_policy(next_values.preference, tau)
            pi = soft_policy(next_values.preference, tau)
            return expected_under(pi, next_values.value - log_pi)

        def backup(
            values: StateView, a: Real, r: Real, discount: Real, v: Any, beta: Real
        ) -> Array:
            log_pi = entry(scaled_log_policy(values.preference, tau), a)
            clipped = library(log_pi).clip(log_pi, floor, 0.0)
            return evaluation(values, a, r + alpha * clipped, discount, v, beta)

        return Algorithm(
            "munchausen",
            MappingProxyType({"q": Target(bootstrap, backup)}),
            accepts_momentum=True,
            tabular=Tabular(temperature=tau, tau=(1 - alpha) * tau),
        )


SCHEMES: Mapping[str, Algorithm] = MappingProxyType(
    {algorithm.name: algorithm for algorithm in (AVI, MOVI, SQL, DPP)}
)
"""The paper's four; `momentum_rl.core.family` has their relatives."""
