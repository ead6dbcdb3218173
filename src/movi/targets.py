"""The algorithms of *Momentum in Reinforcement Learning*, each as a regression target.

An algorithm moves a table (or a network) towards a *target*: a pure function of the values at a
state s, the action a, the reward r, the discount, the mixture rate β, and of what it reads at the
successor s'. Here each is written once, on one example. Three engines evaluate it: exact planning
(its expectation over s'), sampled planning (one s' per (s, a)) and deep learning (a minibatch).

A target has two parts, because it touches two places:

    ``bootstrap(next_values) -> v``                     what is read at s'
    ``backup(values, a, r, discount, v, beta) -> y``    the target, given that

``v`` is a scalar or a tuple of scalars, its first entry the scheme's estimate of the value of s';
``backup`` is affine in ``v``, so its expectation over s' is ``backup`` at the expectation of ``v``.

``values`` maps a table's name to its rows at one state, ``[L, A]``: L lagged copies, newest first.
For tables row 0 is the current iterate (q_{k−1} when q_k is computed) and row 1 the one before; for
networks row 0 is the last synchronised copy (Q⁻) and row 1 the one before it.

``discount`` is γ, or 0 when s' is terminal: there is no "done". Equations are cited by their labels
in the paper's source (eq:movi, …), whose printed numbers differ between versions.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import chex
import jax.numpy as jnp

from movi.errors import UserError

Array = Any  # a JAX array or tracer, or a NumPy array
Values = Mapping[str, Array]


class Target(NamedTuple):
    """What one table or network regresses to; see the module's text."""

    bootstrap: Callable[[Values], Array | tuple[Array, ...]]
    backup: Callable[[Values, Array, Array, Array, Array | tuple[Array, ...], Array], Array]

    def __call__(
        self,
        values: Values,
        a: Array,
        r: Array,
        discount: Array,
        next_values: Values,
        beta: Array = 0.0,
    ) -> Array:
        """The target of one transition (s, a, r, s').

        Args:
          values: the rows at s, each [L, A].
          a: the action, a scalar integer.
          r: the reward, a scalar.
          discount: γ, or 0 at a termination; a scalar.
          next_values: the rows at s', each [L, A].
          beta: the mixture rate β_k, a scalar.
        """
        rows = (*values.values(), *next_values.values())
        chex.assert_rank([a, r, discount, beta, *rows], [0] * 4 + [2] * len(rows))
        return self.backup(values, a, r, discount, self.bootstrap(next_values), beta)


def greedy_value(next_values: Values) -> Array:
    """max_a q(s', a)."""
    return jnp.max(next_values["q"][0])


def momentum_value(next_values: Values) -> Array:
    """q(s', π(s')) with π = G(h), the policy greedy with respect to the *average* h."""
    return next_values["q"][0][jnp.argmax(next_values["h"][0])]


def two_greedy_values(next_values: Values) -> tuple[Array, Array]:
    """(max_a q¹(s', a), max_a q²(s', a)): the newest copy and the one before."""
    return jnp.max(next_values["q"][0]), jnp.max(next_values["q"][1])


def evaluation(values: Values, a: Array, r: Array, discount: Array, v: Array, beta: Array) -> Array:
    """r + γ v(s'): AVI (eq:avi), DQN, and the q of MoVI (eq:movi) and of Momentum-DQN (Q̂)."""
    del values, a, beta
    return r + discount * v


def averaging(values: Values, a: Array, r: Array, discount: Array, v: Array, beta: Array) -> Array:
    """β h(s, a) + (1 − β)(r + γ v(s')): the h of MoVI (eq:movi) and of Momentum-DQN (Ĥ)."""
    return beta * values["h"][0][a] + (1 - beta) * evaluation(values, a, r, discount, v, beta)


def smoothing(rho: float) -> Callable[..., Array]:
    """ρ h(s, a) + r + γ v(s'): the h of MoVI before it is made an average (Section 3)."""

    def backup(values: Values, a: Array, r: Array, discount: Array, v: Array, beta: Array) -> Array:
        return rho * values["h"][0][a] + evaluation(values, a, r, discount, v, beta)

    return backup


def speedy(values: Values, a: Array, r: Array, discount: Array, v: Array, beta: Array) -> Array:
    """Speedy Q-learning with 1/k = 1 − β: SQL (eq:sql-q) and Deep SQL.

    q¹ + (1 − β)(r + γ max q² − q¹) + β γ (max q¹ − max q²), with q¹ at (s, a) and the maxima at s'.
    """
    (v1, v2), q1 = v, values["q"][0][a]
    return q1 + (1 - beta) * (r + discount * v2 - q1) + beta * discount * (v1 - v2)


def speedy_as_printed(
    values: Values, a: Array, r: Array, discount: Array, v: Array, beta: Array
) -> Array:
    """Deep SQL as the appendix prints it: the sign of the last difference is reversed.

    It contradicts SQL and is slower in tables; kept to reproduce what the paper states.
    """
    (v1, v2), q1 = v, values["q"][0][a]
    return q1 + (1 - beta) * (r + discount * v2 - q1) + beta * discount * (v2 - v1)


def policy_programming(
    values: Values, a: Array, r: Array, discount: Array, v: Array, beta: Array
) -> Array:
    """ψ(s, a) + r + γ max ψ(s') − max ψ(s): DPP-RL (eq:psi-dpp) and Deep DPP; q holds ψ."""
    del beta
    psi = values["q"][0]
    return psi[a] + r + discount * v - jnp.max(psi)


@dataclass(frozen=True, eq=False)
class Algorithm:
    """Which tables or networks there are, what each regresses to, and which one acts.

    Attributes:
      name: as on the command line.
      targets: the target of each table or network, by its name.
      acts_on: the table or network whose greedy policy acts and is the result.
      lags: how many lagged copies of each table or network its targets read.
      uses_beta: whether any target depends on β.
      first_beta: the k of the first iteration in the schedule β_k of the tabular scheme: MoVI
        averages with β_1 = 1/2 at its first iteration, SQL begins with weight 1/1, that is β = 0.
    """

    name: str
    targets: Mapping[str, Target]
    acts_on: str = "q"
    lags: int = 1
    uses_beta: bool = False
    first_beta: int = 1


AVI = Algorithm("avi", MappingProxyType({"q": Target(greedy_value, evaluation)}))

MOVI = Algorithm(
    "movi",
    MappingProxyType(
        {"q": Target(momentum_value, evaluation), "h": Target(momentum_value, averaging)}
    ),
    acts_on="h",
    uses_beta=True,
)


def smoothed_value_iteration(rho: float) -> Algorithm:
    """MoVI in the form of Section 3, h_k = ρ h_{k−1} + q_k, for any ρ ≥ 0.

    With w_k = 1 + ρ + … + ρ^k, h_k / w_k is MoVI's average with β_k = 1 − 1/w_k
    (``schedules.Smoothing``), so that both have the same policies: ρ = 0 is AVI, ρ = 1 is
    β_k = k/(k+1), and from q_0 = 0 a ρ < 1 has the policies of the constant β = ρ.
    """
    if not 0 <= rho < float("inf"):
        raise UserError(f"rho: {rho!r}, expected a number of at least 0")
    return Algorithm(
        "movi-smoothed",
        MappingProxyType(
            {"q": Target(momentum_value, evaluation), "h": Target(momentum_value, smoothing(rho))}
        ),
        acts_on="h",
    )


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
    )


SQL = speedy_q_learning("sql")

DPP = Algorithm("dpp", MappingProxyType({"q": Target(greedy_value, policy_programming)}))

SCHEMES: Mapping[str, Algorithm] = MappingProxyType(
    {algorithm.name: algorithm for algorithm in (AVI, MOVI, SQL, DPP)}
)
