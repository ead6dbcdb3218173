"""The finite MDP: sparse by construction, validated at the door, immutable.

    successors     [S, A, B]  integers: the B states that may follow (s, a)
    probabilities  [S, A, B]  float64: with which probability
    rewards        [S, A]     float64: r(s, a); −inf where state s does not have action a
    discount       []         float64: γ in [0, 1)

A leading axis M on all four makes it M MDPs of one shape. Leaves are NumPy arrays: float64 survives
there whatever JAX's default precision is, and the compiled engines take them without a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from momentum_rl.errors import UserError, check_count, door
from momentum_rl.mdp.arrays import frozen
from momentum_rl.mdp.checks import FIELDS, checked_names, validated
from momentum_rl.mdp.tables import Axes, of_kernel, of_matrices, of_pairs, of_toy_text
from momentum_rl.plumbing.sizes import require

_DTYPES = (np.int32, np.float64, np.float64, np.float64)


@dataclass(frozen=True, eq=False, init=False, repr=False)
class FiniteMDP:
    """A finite discounted MDP, or a batch of them; see the module's text for the fields.

    Args:
      successors: [S, A, B].
      probabilities: of the same shape.
      rewards: [S, A]; also [S], [S, A, S'] or [S, A, B]: r(s), r(s, a, s'). −inf where a state does
        not have an action.
      discount: γ.
      state_names: S texts.
      action_names: A texts.

    >>> import numpy as np
    >>> stay_or_go = np.array([[[0, 0], [0, 1]], [[1, 1], [1, 1]]])
    >>> mdp = FiniteMDP(stay_or_go, np.full((2, 2, 2), 0.5), np.array([[0.0, 0], [1, 1]]), 0.9)
    >>> mdp
    FiniteMDP(2 states, 2 actions, 2 successors, discount 0.9)
    >>> FiniteMDP(stay_or_go, np.full((2, 2, 2), 0.5), [[0, -np.inf], [1, 1]], 0.9)
    FiniteMDP(2 states, 2 actions (3 pairs), 2 successors, discount 0.9)
    """

    successors: np.ndarray
    probabilities: np.ndarray
    rewards: np.ndarray
    discount: np.ndarray
    state_names: np.ndarray | None
    action_names: np.ndarray | None
    missed: float  # how far from 1 a row was before it was normalised

    @door
    def __init__(
        self,
        successors: Any,
        probabilities: Any,
        rewards: Any,
        discount: Any,
        *,
        state_names: Any = None,
        action_names: Any = None,
    ) -> None:
        fields: Any = validated(successors, probabilities, rewards, discount)
        arrays = (frozen(array, dtype, copy=True) for array, dtype in zip(fields, _DTYPES))
        _set(self, *arrays, names=(state_names, action_names), missed=fields.missed)

    @property
    def batch(self) -> int | None:
        """How many MDPs there are, or None for a single one without a batch axis."""
        return self.rewards.shape[0] if self.rewards.ndim == 3 else None

    @property
    def states(self) -> int:
        """S."""
        return int(self.rewards.shape[-2])

    @property
    def actions(self) -> int:
        """A."""
        return int(self.rewards.shape[-1])

    @property
    def pairs(self) -> int:
        """How many pairs (s, a) there are: of actions that states have."""
        return int(np.isfinite(self.rewards).sum())

    @property
    def branching(self) -> int:
        """B: how many successors a row has room for."""
        return int(self.successors.shape[-1])

    def __getitem__(self, index: int | slice) -> FiniteMDP:
        """One MDP of a batch, or some of them."""
        if self.batch is None:
            raise UserError("this MDP has no batch axis, there is nothing to index")
        return unchecked(*(leaf[index] for leaf in leaves(self)), missed=self.missed)

    def __iter__(self) -> Iterator[FiniteMDP]:
        """The MDPs of a batch."""
        return (self[i] for i in range(len(self)))

    def __len__(self) -> int:
        """How many MDPs a batch holds."""
        if self.batch is None:
            raise TypeError("this MDP has no batch axis")
        return self.batch

    def as_batch(self) -> FiniteMDP:
        """The batch of this one MDP, for functions that take batches."""
        if self.batch is not None:
            return self
        return unchecked(*(leaf[None] for leaf in leaves(self)), missed=self.missed)

    def __repr__(self) -> str:
        many = "" if self.batch is None else f"{self.batch} × "
        discount, pairs = np.unique(self.discount), self.pairs
        full = pairs == (self.batch or 1) * self.states * self.actions
        return (
            f"FiniteMDP({many}{self.states} states, {self.actions} actions"
            f"{'' if full else f' ({pairs} pairs)'}, {self.branching} successors, "
            f"discount {', '.join(f'{g:g}' for g in discount[:3])})"
        )

    def require_all_actions(self) -> None:
        """Raises unless every state has every action, as bounds over all (s, a) assume."""
        if np.isneginf(self.rewards).any():
            raise UserError("mdps: states without some of the actions, expected all of them")

    def chosen(self, x: np.ndarray, policy: np.ndarray) -> np.ndarray:
        """x(s, π(s)): of [S, A, …] to [S, …]."""
        return x[np.arange(self.states), policy]

    @classmethod
    @door
    def from_dense(
        cls, kernel: Any, rewards: Any, discount: Any, *, axes: Axes | None = None, **more: Any
    ) -> FiniteMDP:
        """From P[s, a, s'] of shape [S, A, S] (or [M, S, A, S]) and rewards [S, A] ([M, S, A]).

        Rewards may also be [S] or [S, A, S']. ``axes="AS"`` takes a kernel P[a, s, s'] instead,
        [A, S, S] (or [M, A, S, S]). Where A = S a kernel does not show which it is: it is taken as
        P[s, a, s'], with a warning unless ``axes="SA"`` says so. Rewards begin with S in any case.
        ``more`` are the constructor's other arguments: names.

        >>> import numpy as np
        >>> kernel = np.array([[[0.5, 0.5]], [[0.0, 1.0]]])
        >>> FiniteMDP.from_dense(kernel, np.array([[1.0], [0.0]]), 0.5).branching
        2
        """
        return cls(**of_kernel(kernel, rewards, axes), discount=discount, **more)

    @classmethod
    @door
    def from_sparse(
        cls, kernels: Sequence[Any], rewards: Any, discount: float, **more: Any
    ) -> FiniteMDP:
        """From a matrix [S, S] per action, sparse or dense, and rewards [S], [S, A] or R[a][s, s'].

        Where a reward of −inf says that a state does not have an action, the row may be empty.
        """
        return cls(**of_matrices(kernels, rewards), discount=discount, **more)

    @classmethod
    @door
    def from_pairs(
        cls, states: Any, actions: Any, kernel: Any, rewards: Any, discount: float, **more: Any
    ) -> FiniteMDP:
        """From L pairs (s, a): QuantEcon's ``DiscreteDP(R, Q, beta, s_indices, a_indices)``.

        ``states`` and ``actions`` are integers [L], ``kernel`` is [L, S], sparse or dense, and
        ``rewards`` [L]. Actions that are in no pair of a state are ones that it does not have.

        >>> import numpy as np
        >>> kernel = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
        >>> FiniteMDP.from_pairs([0, 0, 1], [0, 1, 0], kernel, [5, 10, -1], 0.95)
        FiniteMDP(2 states, 2 actions (3 pairs), 2 successors, discount 0.95)
        """
        return cls(**of_pairs(states, actions, kernel, rewards), discount=discount, **more)

    @classmethod
    @door
    def from_gymnasium(cls, environment: Any, discount: float, **more: Any) -> FiniteMDP:
        """From a toy-text environment (FrozenLake, Taxi, CliffWalking), or its table ``P``.

        ``P[s][a]`` lists (probability, successor, reward, terminated); states may have different
        actions. A transition that terminates leads to a state of reward 0 that is never left. Where
        the successor is not such a state itself (Taxi, CliffWalking), one is added after the
        others: state S.
        """
        return cls(**of_toy_text(environment), discount=discount, **more)

    @classmethod
    @door
    def from_function(
        cls,
        states: int,
        actions: int,
        successors: Callable[[np.ndarray, np.ndarray], tuple[Any, Any, Any]],
        discount: float,
        **more: Any,
    ) -> FiniteMDP:
        """From a function of all pairs at once: ``successors(s, a) → (s', p, r)``.

        It is given arrays s and a [S, A], and gives arrays [S, A, B], [S, A, B] and [S, A].

        >>> import numpy as np
        >>> def walk(s, a):
        ...     to = np.stack([(s + a) % 5, s], -1)
        ...     return to, np.broadcast_to([0.75, 0.25], to.shape), -1.0 * (s != 4)
        >>> FiniteMDP.from_function(5, 2, walk, 0.9)
        FiniteMDP(5 states, 2 actions, 2 successors, discount 0.9)
        """
        check_count("states", states)
        check_count("actions", actions)
        require(f"{states * actions:,} pairs (s, a)", memory=36 * states * actions)
        try:
            to, p, r = successors(*np.indices((states, actions)))
        except Exception as error:
            raise UserError(f"successors: the function fails: {error}") from None
        return cls(to, p, r, discount, **more)

    def dense(self) -> np.ndarray:
        """P[s, a, s'], of shape [S, A, S] (or [M, S, A, S])."""
        rows = self.successors.reshape(-1, self.branching)
        flat = (np.arange(len(rows), dtype=np.int64)[:, None] * self.states + rows).ravel()
        weights = self.probabilities.ravel()
        kernel = np.bincount(flat, weights, minlength=len(rows) * self.states)
        return kernel.reshape(*self.rewards.shape, self.states)


def adopted(*arrays: Any, state_names: Any = None, action_names: Any = None) -> FiniteMDP:
    """A validated MDP that takes over the arrays, of our own, of the constructor's first four."""
    fields: Any = validated(*arrays)
    del arrays
    arrays = tuple(frozen(array, dtype) for array, dtype in zip(fields, _DTYPES))
    return unchecked(*arrays, names=(state_names, action_names), missed=fields.missed)


def leaves(mdp: FiniteMDP) -> tuple[Any, ...]:
    """The four arrays."""
    return tuple(getattr(mdp, name) for name in FIELDS)


def unchecked(*fields: Any, names: Any = (None, None), missed: float = 0.0) -> FiniteMDP:
    """Without validation or copies: for arrays that come from a valid MDP."""
    mdp = object.__new__(FiniteMDP)
    _set(mdp, *fields, names=names, missed=missed)
    return mdp


def _set(mdp: FiniteMDP, *fields: Any, names: Any, missed: float) -> None:
    states, actions = names
    values = dict(zip(FIELDS, fields)) | {"missed": missed}
    for name, value in values.items():
        object.__setattr__(mdp, name, value)
    for name, texts, count in (
        ("state_names", states, "states"),
        ("action_names", actions, "actions"),
    ):
        checked = None if texts is None else checked_names(name, texts, getattr(mdp, count))
        object.__setattr__(mdp, name, checked)
