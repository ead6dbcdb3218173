"""The finite MDP: sparse by construction, validated at the door, immutable, a JAX pytree.

    successors     [S, A, B]  integers: the B states that may follow (s, a)
    probabilities  [S, A, B]  float64: with which probability
    rewards        [S, A]     float64: r(s, a); −inf where state s does not have action a
    discount       []         float64: γ in [0, 1)

A leading axis M on all four makes it M MDPs of one shape. That is the *dense* layout. Where states
have very different numbers of actions, the *ragged* one has a row for each of the L pairs (s, a):

    successors, probabilities  [L, B];  rewards [L]
    offsets  [S + 1]  int64: the pairs of state s are rows offsets[s]..offsets[s + 1]
    choices  [L]      int32: the number of each pair's action, rising within a state

Whatever has a number per pair (q, a distribution) has the shape of the rewards, in either layout; a
policy [S] has the numbers of actions. Leaves are NumPy arrays: float64 survives there whatever
JAX's default precision is, and the compiled engines take them without a copy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from momentum_rl.errors import UserError, door
from momentum_rl.mdp.arrays import aligned, frozen
from momentum_rl.mdp.checks import (
    FIELDS,
    LAYOUT,
    check_discount,
    checked_names,
    floats,
    validated,
)
from momentum_rl.mdp.tables import (
    Axes,
    Rows,
    of_function,
    of_kernel,
    of_matrices,
    of_pairs,
    of_toy_text,
)
from momentum_rl.plumbing.sizes import require

_DTYPES = (np.int32, np.float64, np.float64, np.float64, np.int64, np.int32)
_NAMED = (*FIELDS, *LAYOUT)


@dataclass(frozen=True, eq=False, init=False, repr=False)
class FiniteMDP:
    """A finite discounted MDP, or a batch of them; see the module's text for the fields.

    Args:
      successors: [S, A, B], or [L, B] with ``offsets``.
      probabilities: of the same shape.
      rewards: [S, A] (or [L]); also [S], [S, A, S'] or [S, A, B]: r(s), r(s, a, s').
      discount: γ.
      available: a mask [S, A] of the actions that states have; −inf in ``rewards`` says the same.
      offsets: [S + 1], of the ragged layout.
      choices: [L], the actions' numbers in the ragged layout (default: 0, 1, … in every state).
      minimise: whether the rewards are costs. They are kept with the sign turned, so that a value
        is minus a cost.
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
    offsets: np.ndarray | None
    choices: np.ndarray | None
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
        available: Any = None,
        offsets: Any = None,
        choices: Any = None,
        minimise: bool = False,
        state_names: Any = None,
        action_names: Any = None,
    ) -> None:
        if minimise:  # what costs +inf cannot be done
            rewards = -floats("rewards", rewards)
        arrays = successors, probabilities, rewards, discount
        fields: Any = validated(*arrays, available=available, offsets=offsets, choices=choices)
        _set(self, *(frozen(array, dtype, copy=True) for array, dtype in zip(fields, _DTYPES)))
        _name(self, fields.missed, state_names, action_names)

    @property
    def ragged(self) -> bool:
        """Whether the layout is the ragged one."""
        return self.offsets is not None

    @property
    def batch(self) -> int | None:
        """How many MDPs there are, or None for a single one without a batch axis."""
        return self.rewards.shape[0] if self.rewards.ndim == 3 else None

    @property
    def states(self) -> int:
        """S."""
        return int(self.rewards.shape[-2] if self.offsets is None else len(self.offsets) - 1)

    @property
    def actions(self) -> int:
        """A: one more than the highest number of an action."""
        if self.choices is not None:
            return int(self.choices.max()) + 1
        return int(self.rewards.shape[-1])

    @property
    def pairs(self) -> int:
        """How many pairs (s, a) there are."""
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
        return unchecked(*(leaf[None] for leaf in leaves(self.padded())), missed=self.missed)

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
        if self.ragged or np.isneginf(self.rewards).any():
            raise UserError("mdps: states without some of the actions, expected all of them")

    def padded(self) -> FiniteMDP:
        """The dense layout, [S, A, B] with rewards of −inf at pairs that are not there."""
        if self.offsets is None:
            return self
        shape = (self.states, self.actions, self.branching)
        cells = math.prod(shape[:2])
        require(f"a table of {cells:,} pairs (s, a)", memory=cells * (12 * self.branching + 8))
        stay = np.arange(self.states)[:, None, None], np.arange(self.branching) == 0, -np.inf
        arrays = [aligned(shape[: entries.ndim + 1], entries.dtype) for entries in leaves(self)[:3]]
        for array, entries, missing in zip(arrays, leaves(self), stay):
            array[...] = missing
            array[self.owners(), self.choices] = entries
        fields = *(frozen(array, array.dtype) for array in arrays), self.discount
        return unchecked(*fields, names=(self.state_names, self.action_names), missed=self.missed)

    def owners(self) -> np.ndarray:
        """The state of every pair of the ragged layout, [L]."""
        assert self.offsets is not None
        return np.repeat(np.arange(self.states), np.diff(self.offsets))

    def table(self, x: np.ndarray, missing: float = -np.inf) -> np.ndarray:
        """A table [S, A] of what has a number per pair; ``missing`` where there is none."""
        if self.offsets is None:
            return np.where(np.isneginf(self.rewards), missing, x)
        result = np.full((self.states, self.actions), missing)
        result[self.owners(), self.choices] = x
        return result

    def index(self, policy: np.ndarray) -> np.ndarray:
        """Where a policy [S] (or [N, S]) points: the actions; in the ragged layout the rows."""
        if self.offsets is None or self.choices is None:
            return policy
        keys = self.owners() * self.actions + self.choices
        wanted = np.arange(self.states) * self.actions + policy
        return np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)

    def chosen(self, x: np.ndarray, policy: np.ndarray) -> np.ndarray:
        """x(s, π(s)): of [S, A, …] or [L, …] to [S, …]."""
        index = self.index(policy)
        return x[index] if self.ragged else x[np.arange(self.states), index]

    def best(self, q: np.ndarray) -> np.ndarray:
        """max_a q(s, a), [S]."""
        return q.max(-1) if self.offsets is None else np.maximum.reduceat(q, self.offsets[:-1])

    def greedy(self, q: np.ndarray) -> np.ndarray:
        """argmax_a q(s, a), [S]: the first of equal actions."""
        if self.offsets is None or self.choices is None:
            return q.argmax(-1)
        rows = np.flatnonzero(q == self.best(q)[self.owners()])
        return self.choices[rows[np.searchsorted(rows, self.offsets[:-1])]]

    @classmethod
    @door
    def from_dense(
        cls, kernel: Any, rewards: Any, discount: Any, *, axes: Axes | None = None, **more: Any
    ) -> FiniteMDP:
        """From P[s, a, s'] of shape [S, A, S] (or [M, S, A, S]) and rewards [S, A] ([M, S, A]).

        Rewards may also be [S] or [S, A, S']. ``axes="AS"`` takes a kernel P[a, s, s'] instead,
        [A, S, S] (or [M, A, S, S]). Where A = S a kernel does not show which it is: it is taken as
        P[s, a, s'], with a warning unless ``axes="SA"`` says so. Rewards begin with S in any case.
        ``more`` are the constructor's other arguments: a mask, costs, names.

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

        Where a mask ``available`` or a reward of −inf says that a state does not have an action,
        the matrix's row may be empty.
        """
        return cls(**of_matrices(kernels, rewards), discount=discount, **more)

    @classmethod
    @door
    def from_pairs(
        cls, states: Any, actions: Any, kernel: Any, rewards: Any, discount: float, **more: Any
    ) -> FiniteMDP:
        """From L pairs (s, a): QuantEcon's ``DiscreteDP(R, Q, beta, s_indices, a_indices)``.

        ``states`` and ``actions`` are integers [L], ``kernel`` is [L, S], sparse or dense, and
        ``rewards`` [L]. The layout is the ragged one.

        >>> import numpy as np
        >>> kernel = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
        >>> FiniteMDP.from_pairs([0, 0, 1], [0, 1, 0], kernel, [5, 10, -1], 0.95)
        FiniteMDP(2 states, 2 actions (3 pairs), 2 successors, discount 0.95)
        """
        return cls(**of_pairs(states, actions, kernel, rewards), discount=discount, **more)

    @classmethod
    @door
    def from_gymnasium(
        cls, environment: Any, discount: float, *, axes: Axes | None = None, **more: Any
    ) -> FiniteMDP:
        """From a toy-text environment (FrozenLake, Taxi, CliffWalking), or its table ``P``.

        ``P[s][a]`` lists (probability, successor, reward, terminated); states may have different
        actions. A transition that terminates leads to a state of reward 0 that is never left. Where
        the successor is not such a state itself (Taxi, CliffWalking), one is added after the
        others: state S. ``axes="AS"`` takes a table ``P[a][s]``; a table with as many actions as
        states is taken as ``P[s][a]``, with a warning unless ``axes="SA"`` says so.
        """
        return cls(**of_toy_text(environment, axes), discount=discount, **more)

    @classmethod
    @door
    def from_function(
        cls,
        states: int,
        actions: int,
        successors: Rows,
        discount: float,
        *,
        vectorised: bool = False,
        **names: Any,
    ) -> FiniteMDP:
        """From a function ``successors(s, a) → (s'[B], p[B], r)`` of scalars, which JAX compiles.

        With ``vectorised`` it takes NumPy arrays s [n] and a [n] and gives [n, B], [n, B] and [n].
        A reward of −inf is an action that a state does not have.

        >>> import jax.numpy as jnp
        >>> def walk(s, a):
        ...     return jnp.array([(s + a) % 5, s]), jnp.array([0.75, 0.25]), -1.0 * (s != 4)
        >>> FiniteMDP.from_function(5, 2, walk, 0.9)
        FiniteMDP(5 states, 2 actions, 2 successors, discount 0.9)
        """
        check_discount(floats("discount", discount))  # before it is evaluated everywhere
        arrays = of_function(states, actions, successors, vectorised)
        return adopted(*arrays, np.float64(discount), **names)

    def dense(self) -> np.ndarray:
        """P[s, a, s'], of shape [S, A, S] (or [M, S, A, S]; [L, S] in the ragged layout)."""
        rows = self.successors.reshape(-1, self.branching)
        flat = (np.arange(len(rows), dtype=np.int64)[:, None] * self.states + rows).ravel()
        weights = self.probabilities.ravel()
        kernel = np.bincount(flat, weights, minlength=len(rows) * self.states)
        return kernel.reshape(*self.rewards.shape, self.states)


def adopted(
    *arrays: Any, state_names: Any = None, action_names: Any = None, **layout: Any
) -> FiniteMDP:
    """A validated MDP that takes over the arrays, of our own, of the constructor's first four."""
    fields: Any = validated(*arrays, **layout)
    del arrays, layout
    arrays = tuple(frozen(array, dtype) for array, dtype in zip(fields, _DTYPES))
    return unchecked(*arrays, names=(state_names, action_names), missed=fields.missed)


def leaves(mdp: FiniteMDP) -> tuple[Any, ...]:
    """The arrays: four, or six in the ragged layout."""
    return tuple(getattr(mdp, name) for name in (_NAMED if mdp.ragged else FIELDS))


def unchecked(*fields: Any, names: Any = (None, None), missed: float = 0.0) -> FiniteMDP:
    """Without validation or copies: for leaves that are tracers or come from a valid MDP."""
    mdp = object.__new__(FiniteMDP)
    _set(mdp, *fields)
    _name(mdp, missed, *names)
    return mdp


def _set(mdp: FiniteMDP, *fields: Any) -> None:
    for name, array in zip(_NAMED, (*fields, None, None)):
        object.__setattr__(mdp, name, array)


def _name(mdp: FiniteMDP, missed: float, states: Any, actions: Any) -> None:
    object.__setattr__(mdp, "missed", missed)
    for name, values, count in (("state_names", states, "states"), ("action_names", actions, "")):
        if values is not None:
            values = checked_names(name, values, getattr(mdp, count or "actions"))
        object.__setattr__(mdp, name, values)
