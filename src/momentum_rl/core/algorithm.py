"""What an algorithm is: its tables or networks, what each regresses to, and its policy.

A target has two parts, because it touches two places:

    ``bootstrap(next_values) -> v``                     what is read at s'
    ``backup(values, a, r, discount, v, beta) -> y``    the target, given that

``v`` is one value or a tuple of them, its first entry the scheme's estimate of the value of s';
``backup`` is affine in ``v``, so its expectation over s' is ``backup`` at the expectation of ``v``.

What a target sees of a state are its ``StateView``: rows [L, A, …] by name, L lagged copies, newest
first, and the ``preference`` [A] from which the policy is read. For tables row 0 is the current
iterate (q_{k−1} when q_k is computed) and row 1 the one before; for networks row 0 is the last
synchronised copy (Q⁻) and row 1 the one before it.

``discount`` is γ, or 0 when s' is terminal: there is no "done".

Rows are arrays of JAX, NumPy or PyTorch, and a target is one of the same library. It is of one
transition; ``jax.vmap`` and ``torch.func.vmap`` map it over a minibatch.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from momentum_rl.core.arrays import Array, entry, library
from momentum_rl.core.soft import Real
from momentum_rl.core.values import NUMBER, ValueKind
from momentum_rl.errors import UserError, check_fields

Rows = Mapping[str, Array]  # by a table's name, [L, A, …]


class Target(NamedTuple):
    """What one table or network regresses to; see the module's text."""

    bootstrap: Callable[["StateView"], Any]
    backup: Callable[["StateView", Real, Real, Real, Any, Real], Array]


@dataclass(frozen=True)
class Tabular:
    """What only a scheme on tables and its theory need of an algorithm."""

    first_beta: int = 1
    """The k of the first iteration in the schedule β_k: MoVI averages with β_1 = 1/2 at its first
    iteration, SQL begins with weight 1/1, that is β = 0."""
    temperature: Real = 0.0
    """The policy is softmax(preference / temperature), greedy at 0. Agents with networks explore
    by ε."""
    tau: Real = 0.0
    """The optimum that the scheme tends to is q^τ_*, that of the MDP whose reward has τ times the
    policy's entropy added; 0 is q*."""
    rho: float | None = None
    """ρ, where the preference is a sum h_k = ρ h_{k−1} + q_k; None where it is an average."""
    sweeps: int | None = 1
    """How often the value's target is applied in one iteration, with the policy held; None: until
    the value evaluates it exactly."""
    in_psi: bool = False
    """Whether the theory is about ψ_k = q_k / (1 − β_k), which is k q_k for SQL, instead of q_k, so
    that the error of an iteration is that of ψ_k."""


@dataclass(frozen=True, eq=False)
class Algorithm:
    """Tables or networks, what each regresses to, and what the policy is read from."""

    name: str
    """The name, as on the command line."""
    targets: Mapping[str, Target]
    """The target of each table or network, by its name."""
    preference: str = "q"
    """The table or network from which the policy is read: in the targets, in acting, and in the
    result."""
    lags: int = 1
    """How many lagged copies of each table or network its targets read."""
    uses_beta: bool = False
    """Whether any target depends on β."""
    kinds: Mapping[str, ValueKind] = field(default_factory=dict)
    """What the values of a table or network are, by its name; numbers if it is not named."""
    accepts_momentum: bool = False
    """Whether ``momentum`` applies: the value evaluates a policy that its target reads from
    ``values.preference`` or ``values.greedy``, and nothing else."""
    reads_current: bool = False
    """Whether a target reads networks as they are now, not only their lagged copies."""
    double: bool = False
    """Whether the policy in the targets is read from the network as it is now. In a table that is
    the newest copy."""
    value_table: str = "q"
    """The table or network that holds the value, whose error the theory is about; the first number
    that its target reads at a state is the estimate of the state's value."""
    values_are_returns: bool = False
    """Whether its values estimate discounted returns: no bonus, no preference in them. Only then
    do rewards bound them, and can they be compared with what is collected."""
    tabular: Tabular = field(default_factory=Tabular)
    """What only the scheme on tables and its theory need."""

    def __post_init__(self) -> None:
        check_fields(self)
        for role, name in (("value", self.value_table), ("preference", self.preference)):
            if name not in self.targets:
                known = ", ".join(self.targets) or "nothing"
                raise UserError(f"targets: of {known}, expected one of {name}, the {role}")
        if self.lags < 1:
            raise UserError(f"lags: {self.lags}, expected at least 1")

    def kind(self, name: str) -> ValueKind:
        """What the values of a table or network are."""
        return self.kinds.get(name, NUMBER)

    def at(self, rows: Rows, current: Rows | None = None) -> "StateView":
        """What targets see of a state: its rows [L, A, …], and the current ones [A, …]."""
        return StateView(rows, current or {name: row[0] for name, row in rows.items()}, self)

    def target(
        self,
        name: str,
        values: "Rows | StateView",
        a: Real,
        r: Real,
        discount: Real,
        next_values: "Rows | StateView",
        beta: Real = 0.0,
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
        >>> from momentum_rl.core.targets import AVI
        >>> now, next = {"q": np.array([[1.0, 4.0]])}, {"q": np.array([[8.0, 6.0]])}
        >>> float(AVI.target("q", now, 0, 3.0, 0.5, next))  # 3 + 0.5 · max(8, 6)
        7.0
        """
        now, after = (
            given if isinstance(given, StateView) else self.at(given)
            for given in (values, next_values)
        )
        for what, scalar in (("a", a), ("r", r), ("discount", discount), ("beta", beta)):
            _check_rank(what, scalar, 0)
        for rows in (now.rows, after.rows):
            for what, row in rows.items():
                _check_rank(what, row, 2 + len(self.kind(what).shape))
        target = self.targets[name]
        return target.backup(now, a, r, discount, target.bootstrap(after), beta)


def _check_rank(name: str, x: Any, rank: int) -> None:
    """A target is of one transition, which is mapped over a batch."""
    if (given := getattr(x, "ndim", 0)) != rank:
        raise UserError(f"{name}: rank {given}, expected {rank}: a target is of one transition")


@dataclass(frozen=True, eq=False)
class StateView:
    """What a target sees of one state."""

    rows: Rows
    """By name, [L, A, …]: lagged copies, newest first; ``values["q"]`` for short."""
    current: Rows
    """By name, [A, …]: the networks as they are now, for algorithms that read them."""
    algorithm: Algorithm
    """Whose values they are."""

    def __getitem__(self, name: str) -> Array:
        return self.rows[name]

    @property
    def value(self) -> Array:
        """The newest row [A, …] of the value: q(s, ·)."""
        return self.rows[self.algorithm.value_table][0]

    @property
    def preference(self) -> Array:
        """The row [A] from which the policy is read: expected values of q, or of h by momentum."""
        name = self.algorithm.preference
        row = self.current[name] if self.algorithm.double else self.rows[name][0]
        return self.algorithm.kind(name).expectation(row)

    @property
    def greedy(self) -> Array:
        """q(s, π(s)) with π greedy for the preference: max_a q(s, a) where that is q itself."""
        q, of = self.value, self.algorithm
        if of.preference == of.value_table and of.kind(of.value_table) == NUMBER and not of.double:
            return library(q).max(q)
        preference = self.preference
        return entry(q, library(preference).argmax(preference))
