"""The algorithms of *Momentum in Reinforcement Learning*, each as a regression target; momentum.

An algorithm derives a *policy* from a value, and moves the value towards a *target* that evaluates
this policy. A target is a pure function of the values at a state s, the action a, the reward r, the
discount, the mixture rate β, and of what it reads at the successor s'. Here each is written once,
on one example. Three engines evaluate it: exact planning (its expectation over s'), sampled
planning (one s' per (s, a)) and deep learning (a minibatch).

A target has two parts, because it touches two places:

    ``bootstrap(next_values) -> v``                     what is read at s'
    ``backup(values, a, r, discount, v, beta) -> y``    the target, given that

``v`` is one value or a tuple of them, its first entry the scheme's estimate of the value of s';
``backup`` is affine in ``v``, so its expectation over s' is ``backup`` at the expectation of ``v``.

What a target sees of a state are its ``Values``: rows [L, A, …] by name, L lagged copies, newest
first, and the ``preference`` [A] from which the policy is read. For tables row 0 is the current
iterate (q_{k−1} when q_k is computed) and row 1 the one before; for networks row 0 is the last
synchronised copy (Q⁻) and row 1 the one before it.

**Momentum** changes what the policy is derived from: ``momentum(x)`` reads x's policy from an
average h of its values instead of from q, and nothing else. ``momentum(AVI)`` is MoVI.

``discount`` is γ, or 0 when s' is terminal: there is no "done". Equations are cited by their labels
in the paper's source (eq:movi, …), whose printed numbers differ between versions.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import chex
import jax
import jax.numpy as jnp

from movi.errors import UserError, check_fraction, check_positive
from movi.values import NUMBER, Value

Array = Any  # a JAX array or tracer, or a NumPy array
Rows = Mapping[str, Array]  # by a table's name, [L, A, …]


class Target(NamedTuple):
    """What one table or network regresses to; see the module's text."""

    bootstrap: Callable[["Values"], Any]
    backup: Callable[["Values", Array, Array, Array, Any, Array], Array]


@dataclass(frozen=True, eq=False)
class Algorithm:
    """Which tables or networks there are, what each regresses to, and what the policy is read from.

    Attributes:
      name: as on the command line.
      targets: the target of each table or network, by its name.
      preference: the table or network from which the policy is read: in the targets, in acting, and
        in the result.
      lags: how many lagged copies of each table or network its targets read.
      uses_beta: whether any target depends on β.
      first_beta: the k of the first iteration in the schedule β_k of the tabular scheme: MoVI
        averages with β_1 = 1/2 at its first iteration, SQL begins with weight 1/1, that is β = 0.
      kinds: what the values of a table or network are, by its name; numbers if it is not named.
      evaluates: whether q evaluates the policy, so that ``momentum`` applies.
      reads_current: whether a target reads networks as they are now, not only their lagged copies.
      double: whether the policy in the targets is read from the network as it is now. In a table
        that is the newest copy.
      temperature: the policy is softmax(preference / temperature), greedy at 0. Of tables: a
        network's agent explores by ε.
      tau: the optimum that the scheme tends to is q^τ_*, that of the MDP whose reward has τ times
        the policy's entropy added; 0 is q*.
      rho: ρ, where the preference is a sum h_k = ρ h_{k−1} + q_k; None where it is an average.
      sweeps: how often q's target is applied in one iteration of a table, with the policy held;
        None: until q evaluates it exactly.
    """

    name: str
    targets: Mapping[str, Target]
    preference: str = "q"
    lags: int = 1
    uses_beta: bool = False
    first_beta: int = 1
    kinds: Mapping[str, Value] = field(default_factory=dict)
    evaluates: bool = True
    reads_current: bool = False
    double: bool = False
    temperature: float = 0.0
    tau: float = 0.0
    rho: float | None = None
    sweeps: int | None = 1

    def __post_init__(self) -> None:
        """Checks what can be wrong with a declaration."""
        if "q" not in self.targets:
            raise UserError(
                f"targets: of {', '.join(self.targets) or 'nothing'}, expected one of q"
            )
        if self.lags < 1:
            raise UserError(f"lags: {self.lags}, expected at least 1")

    def kind(self, name: str) -> Value:
        """What the values of a table or network are."""
        return self.kinds.get(name, NUMBER)

    def at(self, rows: Rows, current: Rows | None = None) -> "Values":
        """What targets see of a state: its rows [L, A, …], and the current ones [A, …]."""
        return Values(rows, current or {name: row[0] for name, row in rows.items()}, self)

    def target(
        self,
        name: str,
        values: "Rows | Values",
        a: Array,
        r: Array,
        discount: Array,
        next_values: "Rows | Values",
        beta: Array = 0.0,
    ) -> Array:
        """The target of one transition (s, a, r, s').

        Args:
          name: the table or network that is to regress to it.
          values: the rows at s, each [L, A, …]; or what ``at`` made of them.
          a: the action, a scalar integer.
          r: the reward, a scalar.
          discount: γ, or 0 at a termination; a scalar.
          next_values: the same at s'.
          beta: the mixture rate β_k, a scalar.

        >>> import numpy as np
        >>> here, there = {"q": np.array([[1.0, 4.0]])}, {"q": np.array([[8.0, 6.0]])}
        >>> float(AVI.target("q", here, 0, 3.0, 0.5, there))  # 3 + 0.5 · max(8, 6)
        7.0
        """
        here, there = (
            given if isinstance(given, Values) else self.at(given)
            for given in (values, next_values)
        )
        chex.assert_rank([a, r, discount, beta], [0] * 4)
        for rows in (here.rows, there.rows):
            ranks = [2 + len(self.kind(own).shape) for own in rows]
            chex.assert_rank(list(rows.values()), ranks)
        own = self.targets[name]
        return own.backup(here, a, r, discount, own.bootstrap(there), beta)


@dataclass(frozen=True, eq=False)
class Values:
    """What a target sees of one state.

    Attributes:
      rows: by name, [L, A, …]: lagged copies, newest first; ``values["q"]`` for short.
      current: by name, [A, …]: the networks as they are now, for algorithms that read them.
      algorithm: whose values they are.
    """

    rows: Rows
    current: Rows
    algorithm: Algorithm

    def __getitem__(self, name: str) -> Array:
        """The rows of a table or network."""
        return self.rows[name]

    @property
    def preference(self) -> Array:
        """The row [A] from which the policy is read: expected values of q, or of h by momentum."""
        name = self.algorithm.preference
        row = self.current[name] if self.algorithm.double else self.rows[name][0]
        return self.algorithm.kind(name).expectation(row)

    @property
    def greedy(self) -> Array:
        """q(s, π(s)) with π greedy for the preference: max_a q(s, a) where that is q itself."""
        q, algorithm = self.rows["q"][0], self.algorithm
        if algorithm.preference == "q" and algorithm.kind("q") == NUMBER and not algorithm.double:
            return jnp.max(q)
        return q[jnp.argmax(self.preference)]


# What is read at the successor -------------------------------------------------------------------


def greedy_value(next_values: Values) -> Array:
    """q(s', π(s')): max_a q(s', a) for AVI; with π = G(h), greedy for the *average*, for MoVI."""
    return next_values.greedy


def two_greedy_values(next_values: Values) -> tuple[Array, Array]:
    """(max_a q¹(s', a), max_a q²(s', a)): the newest copy and the one before."""
    return jnp.max(next_values["q"][0]), jnp.max(next_values["q"][1])


# What is made of it ------------------------------------------------------------------------------


def evaluation(values: Values, a: Array, r: Array, discount: Array, v: Any, beta: Array) -> Array:
    """r + γ v(s'): AVI (eq:avi), DQN, and the q of MoVI (eq:movi) and of Momentum-DQN (Q̂)."""
    del a, beta
    return values.algorithm.kind("q").backup(r, discount, v)


def speedy(values: Values, a: Array, r: Array, discount: Array, v: Any, beta: Array) -> Array:
    """Speedy Q-learning with 1/k = 1 − β: SQL (eq:sql-q) and Deep SQL.

    q¹ + (1 − β)(r + γ max q² − q¹) + β γ (max q¹ − max q²), with q¹ at (s, a) and the maxima at s'.
    """
    (v1, v2), q1 = v, values["q"][0][a]
    return q1 + (1 - beta) * (r + discount * v2 - q1) + beta * discount * (v1 - v2)


def speedy_as_printed(
    values: Values, a: Array, r: Array, discount: Array, v: Any, beta: Array
) -> Array:
    """Deep SQL as the appendix prints it: the sign of the last difference is reversed.

    It contradicts SQL and is slower in tables; kept to reproduce what the paper states.
    """
    (v1, v2), q1 = v, values["q"][0][a]
    return q1 + (1 - beta) * (r + discount * v2 - q1) + beta * discount * (v2 - v1)


# The algorithms ----------------------------------------------------------------------------------

AVI = Algorithm("avi", MappingProxyType({"q": Target(greedy_value, evaluation)}))


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
    movi.errors.UserError: momentum: sql has no value that only evaluates its policy ...
    """
    if not isinstance(algorithm, Algorithm):
        raise UserError(f"momentum: {algorithm!r}, expected an Algorithm")
    if "h" in algorithm.targets:
        raise UserError(f"momentum: {algorithm.name} already has an average h, expected none")
    if not algorithm.evaluates or set(algorithm.targets) != {"q"}:
        raise UserError(
            f"momentum: {algorithm.name} has no value that only evaluates its policy (its q "
            "carries an average or a preference of its own), expected one such as avi or dqn"
        )
    if not reads_preference(algorithm):
        raise UserError(
            f"momentum: {algorithm.name} reads its policy from q by name, so that momentum would "
            "change nothing; expected targets that read values.preference or values.greedy"
        )
    if h_target not in ("sample", "network"):
        raise UserError(f"h_target: {h_target!r}, expected 'sample' or 'network'")
    if h_value not in ("same", "number"):
        raise UserError(f"h_value: {h_value!r}, expected 'same' or 'number'")
    q, kind = algorithm.targets["q"], algorithm.kind("q")
    own = kind if h_value == "same" else NUMBER

    def average(values: Values, a: Array, r: Array, discount: Array, v: Any, beta: Array) -> Array:
        if h_target == "network":
            y = values.current["q"][a]
        else:
            y = q.backup(values, a, r, discount, v, beta)
        return own.mixture(beta, values["h"][0][a], y if own == kind else kind.expectation(y))

    return replace(
        algorithm,
        name=f"momentum-{algorithm.name}" if name is None else name,
        targets=MappingProxyType({"q": q, "h": Target(q.bootstrap, average)}),
        preference="h",
        uses_beta=True,
        kinds=MappingProxyType({n: k for n, k in (("q", kind), ("h", own)) if k != NUMBER}),
        reads_current=algorithm.reads_current or h_target == "network",
    )


def reads_preference(algorithm: Algorithm) -> bool:
    """Whether a target reads its policy from the preference, as its trace tells."""
    q = algorithm.targets["q"]
    if q.bootstrap is greedy_value:  # known, without a trace
        return True
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


def smoothed_value_iteration(rho: float) -> Algorithm:
    """MoVI in the form of Section 3, h_k = ρ h_{k−1} + q_k, for any ρ ≥ 0.

    With w_k = 1 + ρ + … + ρ^k, h_k / w_k is MoVI's average with β_k = 1 − 1/w_k
    (``schedules.Smoothing``), so that both have the same policies: ρ = 0 is AVI, ρ = 1 is
    β_k = k/(k+1), and from q_0 = 0 a ρ < 1 has the policies of the constant β = ρ.
    """
    if not 0 <= rho < float("inf"):
        raise UserError(f"rho: {rho!r}, expected a number of at least 0")

    def sums(values: Values, a: Array, r: Array, discount: Array, v: Any, beta: Array) -> Array:
        return rho * values["h"][0][a] + evaluation(values, a, r, discount, v, beta)

    q = MOVI.targets["q"]
    targets = MappingProxyType({"q": q, "h": Target(q.bootstrap, sums)})
    return replace(MOVI, name="movi-smoothed", targets=targets, uses_beta=False, rho=rho)


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


def distributional(kind: Value, name: str = "avi-distributional") -> Algorithm:
    """AVI on values of another kind: C51 on atoms (``Categorical``), QR-DQN on quantiles.

    r + γ Z(s', a*), with a* greedy for the mean of Z.
    """
    return replace(AVI, name=name, kinds=MappingProxyType({"q": kind}))


def speedy_q_learning(sign: Literal["sql", "printed"] = "sql") -> Algorithm:
    """SQL with its own sign, or with the one that the paper's appendix prints."""
    backups = {"sql": speedy, "printed": speedy_as_printed}
    if sign not in backups:
        raise UserError(f"sign: {sign!r}, expected 'sql' or 'printed'")
    return Algorithm(
        "sql" if sign == "sql" else "sql-printed",
        MappingProxyType({"q": Target(two_greedy_values, backups[sign])}),
        lags=2,
        uses_beta=True,
        first_beta=0,
        evaluates=False,
    )


SQL = speedy_q_learning("sql")


def soft_maximum(x: Array, kappa: Array) -> Array:
    """κ ln Σ_a exp(x_a / κ) over the last axis: max_π ⟨π, x⟩ + κ H(π), for κ > 0.

    Written around the maximum, so that nothing overflows however small κ is.

    >>> import numpy as np
    >>> [float(soft_maximum(np.array([2e6, 1e6]), kappa)) for kappa in (1e-300, 1e-3)]
    [2000000.0, 2000000.0]
    """
    top = jnp.max(x, -1, keepdims=True)
    return top[..., 0] + kappa * jnp.log(jnp.sum(jnp.exp(_over(x - top, kappa)), -1))


def _over(gaps: Array, kappa: Array) -> Array:
    """gaps / κ, with 0 / κ = 0 where κ is too small for the type of the numbers."""
    return gaps / jnp.maximum(kappa, jnp.finfo(gaps.dtype).tiny)


def soft_policy(x: Array, kappa: Array) -> Array:
    """softmax(x / κ) over the last axis, for κ > 0."""
    weights = jnp.exp(_over(x - jnp.max(x, -1, keepdims=True), kappa))
    return weights / jnp.sum(weights, -1, keepdims=True)


def scaled_log_policy(x: Array, kappa: Array) -> Array:
    """κ ln π with π = softmax(x / κ): finite however small κ is, as ln π alone is not."""
    return x - soft_maximum(x, kappa)[..., None]


def under(pi: Array, x: Array) -> Array:
    """⟨π, x⟩ over the last axis; what π never takes may be infinite."""
    return jnp.sum(jnp.where(pi == 0, 0.0, pi * x), -1)


def mellowmax(x: Array, eta: float) -> Array:
    """ln(mean_a exp(η x_a)) / η over the last axis."""
    return soft_maximum(x, 1 / eta) - jnp.log(x.shape[-1]) / eta


def boltzmann(x: Array, eta: float) -> Array:
    """⟨softmax(η x), x⟩ over the last axis."""
    return under(soft_policy(x, 1 / eta), x)


def gap_increasing(
    name: str, alpha: float, soft: Callable[[Array], Array], **traits: Any
) -> Algorithm:
    """r + γ mψ(s') + α (ψ(s, a) − mψ(s)), where q holds ψ: the form of DPP, CVI and AL."""

    def bootstrap(next_values: Values) -> Array:
        return soft(next_values["q"][0])

    def backup(values: Values, a: Array, r: Array, discount: Array, v: Any, beta: Array) -> Array:
        del beta
        psi = values["q"][0]
        return alpha * psi[a] + r + discount * v - alpha * soft(psi)

    targets = MappingProxyType({"q": Target(bootstrap, backup)})
    return Algorithm(name, targets, evaluates=False, **traits)


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
    if form not in softened:
        raise UserError(f"form: {form!r}, expected one of {', '.join(softened)}")

    def soft(psi: Array) -> Array:
        return jnp.max(psi) if eta is None else softened[form](psi, eta)

    return gap_increasing("dpp", 1.0, soft, temperature=0.0 if eta is None else 1 / eta)


DPP = dynamic_policy_programming()


def munchausen(alpha: float = 0.9, tau: float = 0.03, floor: float = -1.0) -> Algorithm:
    """Munchausen value iteration (Vieillard, Pietquin, Geist 2020), M-VI(α, τ); q is its value.

    r + α [τ ln π(a|s)]_{floor}^0 + γ Σ_b π(b|s') (q(s', b) − τ ln π(b|s')), π = softmax(q / τ): the
    logarithm is clipped from below at ``floor``, which may be −∞.
    """
    check_fraction("alpha", alpha)
    check_positive("tau", tau)
    if not floor <= 0:
        raise UserError(f"floor: {floor!r}, expected a number of at most 0")

    def bootstrap(next_values: Values) -> Array:
        log_pi = scaled_log_policy(next_values.preference, tau)
        return under(soft_policy(next_values.preference, tau), next_values["q"][0] - log_pi)

    def backup(values: Values, a: Array, r: Array, discount: Array, v: Any, beta: Array) -> Array:
        log_pi = scaled_log_policy(values.preference, tau)[a]
        return evaluation(values, a, r + alpha * jnp.clip(log_pi, floor, 0.0), discount, v, beta)

    targets = MappingProxyType({"q": Target(bootstrap, backup)})
    return Algorithm("munchausen", targets, temperature=tau, tau=(1 - alpha) * tau)


SCHEMES: Mapping[str, Algorithm] = MappingProxyType(
    {algorithm.name: algorithm for algorithm in (AVI, MOVI, SQL, DPP)}
)
"""The paper's four; `movi.family` has their relatives."""
