"""The finite MDP: sparse by construction, validated at the door, immutable, a JAX pytree.

    successors     [S, A, B]  integers: the B states that may follow (s, a)
    probabilities  [S, A, B]  float64: with which probability
    rewards        [S, A]     float64: r(s, a)
    discount       []         float64: γ in [0, 1)

A leading axis M on all four makes it M MDPs of one shape. Leaves are NumPy arrays: float64 survives
there whatever JAX's default precision is, and the compiled engines take them without a copy.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import jax
import numpy as np

from movi.errors import UserError

ROW_TOLERANCE = 1e-6  # a row may miss 1 by this much (float32 data do); it is then normalised
Axes = Literal["SA", "AS"]  # which comes first in a kernel or a table P: state or action
_FIELDS = ("successors", "probabilities", "rewards", "discount")
_DTYPES = (np.int32, np.float64, np.float64, np.float64)
_BLOCK = 1 << 21  # entries checked at a time, so that validation needs no large temporaries


@dataclass(frozen=True, eq=False, init=False, repr=False)
class FiniteMDP:
    """A finite discounted MDP, or a batch of them; see the module's text for the fields.

    >>> import numpy as np
    >>> stay_or_go = np.array([[[0, 0], [0, 1]], [[1, 1], [1, 1]]])
    >>> mdp = FiniteMDP(stay_or_go, np.full((2, 2, 2), 0.5), np.array([[0.0, 0], [1, 1]]), 0.9)
    >>> mdp
    FiniteMDP(2 states, 2 actions, 2 successors, discount 0.9)
    """

    successors: np.ndarray
    probabilities: np.ndarray
    rewards: np.ndarray
    discount: np.ndarray

    def __init__(self, successors: Any, probabilities: Any, rewards: Any, discount: Any) -> None:
        fields = _validated(successors, probabilities, rewards, discount)
        for name, array, dtype in zip(_FIELDS, fields, _DTYPES):
            object.__setattr__(self, name, frozen(array, dtype, copy=True))

    # Sizes ---------------------------------------------------------------------------------------

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
    def branching(self) -> int:
        """B: how many successors a row has room for."""
        return int(self.successors.shape[-1])

    def __getitem__(self, index: int | slice) -> FiniteMDP:
        """One MDP of a batch, or some of them."""
        if self.batch is None:
            raise UserError("this MDP has no batch axis, there is nothing to index")
        return _trusted(*(leaf[index] for leaf in _leaves(self)))

    def __iter__(self) -> Iterator[FiniteMDP]:
        """The MDPs of a batch."""
        return (self[i] for i in range(len(self)))

    def __len__(self) -> int:
        """How many MDPs a batch holds."""
        if self.batch is None:
            raise TypeError("this MDP has no batch axis")
        return self.batch

    def as_batch(self) -> FiniteMDP:
        """The batch of this one MDP, for functions that take batches.

        >>> import movi
        >>> movi.garnet(5, 2, 2).as_batch()
        FiniteMDP(1 × 5 states, 2 actions, 2 successors, discount 0.9)
        """
        return self if self.batch is not None else _trusted(*(leaf[None] for leaf in _leaves(self)))

    def __repr__(self) -> str:
        many = "" if self.batch is None else f"{self.batch} × "
        discount = np.unique(self.discount)
        return (
            f"FiniteMDP({many}{self.states} states, {self.actions} actions, "
            f"{self.branching} successors, discount {', '.join(f'{g:g}' for g in discount[:3])})"
        )

    # Ways to build one ---------------------------------------------------------------------------

    @classmethod
    def from_dense(
        cls, kernel: Any, rewards: Any, discount: Any, *, axes: Axes | None = None
    ) -> FiniteMDP:
        """From P[s, a, s'] of shape [S, A, S] (or [M, S, A, S]) and rewards [S, A] ([M, S, A]).

        ``axes="AS"`` takes a kernel P[a, s, s'] instead, [A, S, S] (or [M, A, S, S]). Where A = S
        a kernel does not show which it is: it is taken as P[s, a, s'], with a warning unless
        ``axes="SA"`` says so. Rewards are [S, A] in any case.

        >>> import numpy as np
        >>> kernel = np.array([[[0.5, 0.5]], [[0.0, 1.0]]])
        >>> FiniteMDP.from_dense(kernel, np.array([[1.0], [0.0]]), 0.5).branching
        2
        """
        kernel = _floats("kernel", kernel)
        _check_axes(axes)
        if axes == "AS" and kernel.ndim in (3, 4):
            if kernel.shape[-1] != kernel.shape[-2]:
                raise UserError(f"kernel: shape {kernel.shape}, expected [A, S, S] or [M, A, S, S]")
            kernel = np.swapaxes(kernel, -3, -2)
        if kernel.ndim not in (3, 4) or kernel.shape[-1] != kernel.shape[-3]:
            turned = kernel.ndim in (3, 4) and kernel.shape[-1] == kernel.shape[-2]
            hint = '; axes="AS" takes [A, S, S]' if turned else ""
            raise UserError(
                f"kernel: shape {kernel.shape}, expected [S, A, S] or [M, S, A, S]{hint}"
            )
        if axes is None:
            _warn_of_axes("kernel", kernel.shape[-3], kernel.shape[-2], "P[s, a, s']")
        if kernel.size == 0:
            raise UserError(f"kernel: shape {kernel.shape}, expected at least one state and action")
        support = kernel != 0
        branching = max(1, int(support.sum(-1).max()))
        # A stable sort of "is absent" puts the possible successors first, in their order.
        successors = np.argsort(~support, axis=-1, kind="stable")[..., :branching]
        return cls(successors, np.take_along_axis(kernel, successors, -1), rewards, discount)

    @classmethod
    def from_sparse(cls, kernels: Sequence[Any], rewards: Any, discount: float) -> FiniteMDP:
        """From one scipy sparse matrix [S, S] per action and rewards [S, A]."""
        import scipy.sparse as sparse

        if len(kernels) == 0:
            raise UserError("kernels: empty, expected one [S, S] matrix per action")
        rows = [sparse.csr_array(kernel, copy=True) for kernel in kernels]
        states = rows[0].shape[0]
        for a, kernel in enumerate(rows):
            if kernel.shape != (states, states):
                raise UserError(
                    f"kernels: the matrix of action {a} has shape {kernel.shape}, "
                    f"expected ({states}, {states})"
                )
            kernel.sum_duplicates()
            kernel.eliminate_zeros()
        counts = np.stack([np.diff(kernel.indptr) for kernel in rows], 1)
        branching = max(1, int(counts.max(initial=1)))
        successors = np.zeros((states, len(rows), branching), np.int32)
        probabilities = np.zeros((states, len(rows), branching))
        for a, kernel in enumerate(rows):
            state = np.repeat(np.arange(states), counts[:, a])
            slot = np.arange(kernel.nnz) - np.repeat(kernel.indptr[:-1], counts[:, a])
            successors[state, a, slot] = kernel.indices
            probabilities[state, a, slot] = kernel.data
        return cls(successors, probabilities, rewards, discount)

    @classmethod
    def from_gymnasium(
        cls, environment: Any, discount: float, *, axes: Axes | None = None
    ) -> FiniteMDP:
        """From a toy-text environment (FrozenLake, Taxi, CliffWalking), or its table ``P``.

        ``P[s][a]`` lists (probability, successor, reward, terminated). A transition that terminates
        leads to a state of reward 0 that is never left. Where the successor is not such a state
        itself (Taxi, CliffWalking), one is added after the others: state S. ``axes="AS"`` takes a
        table ``P[a][s]``; a table with as many actions as states is taken as ``P[s][a]``, with a
        warning unless ``axes="SA"`` says so.
        """
        _check_axes(axes)
        own = isinstance(environment, Mapping)
        table = environment if own else _toy_text_table(environment)
        if axes == "AS":
            table = _turned(table)
        states, actions = _toy_text_sizes(table)
        if own and axes is None:
            _warn_of_axes("table", states, actions, "P[s][a]")
        at_rest = {
            s
            for s in range(states)
            if all(n == s and r == 0 for a in range(actions) for _, n, r, _ in table[s][a])
        }
        outcomes: dict[tuple[int, int], dict[int, float]] = {}
        rewards = np.zeros((states + 1, actions))
        for s in range(states):
            for a in range(actions):
                row = outcomes.setdefault((s, a), {})
                for p, successor, reward, terminated in table[s][a]:
                    end = terminated and successor not in at_rest
                    successor = states if end else int(successor)
                    row[successor] = row.get(successor, 0.0) + float(p)
                    rewards[s, a] += float(p) * float(reward)
        if any(states in row for row in outcomes.values()):
            outcomes |= {(states, a): {states: 1.0} for a in range(actions)}
            states += 1
        branching = max(map(len, outcomes.values()))
        successors = np.zeros((states, actions, max(1, branching)), np.int64)
        probabilities = np.zeros(successors.shape)
        for (s, a), row in outcomes.items():
            successors[s, a, : len(row)] = list(row)
            probabilities[s, a, : len(row)] = list(row.values())
        return cls(successors, probabilities, rewards[:states], discount)

    def dense(self) -> np.ndarray:
        """P[s, a, s'], of shape [S, A, S] (or [M, S, A, S])."""
        rows = self.successors.reshape(-1, self.branching)
        flat = (np.arange(len(rows), dtype=np.int64)[:, None] * self.states + rows).ravel()
        weights = self.probabilities.ravel()
        kernel = np.bincount(flat, weights, minlength=len(rows) * self.states)
        return kernel.reshape(*self.rewards.shape, self.states)


def aligned(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An uninitialised array whose memory JAX's CPU backend can use as it is."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    memory = np.empty(size + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + size].view(dtype).reshape(shape)


def frozen(array: np.ndarray, dtype: Any, *, copy: bool) -> np.ndarray:
    """The array read-only, aligned and of this dtype; itself only if it may be and is."""
    ready = array.dtype == dtype and array.flags.c_contiguous and array.ctypes.data % 64 == 0
    result = array
    if copy or not ready:
        result = aligned(array.shape, dtype)
        result[...] = array
    result.flags.writeable = False
    return result


def adopted(
    successors: np.ndarray, probabilities: np.ndarray, rewards: np.ndarray, discount: np.ndarray
) -> FiniteMDP:
    """A validated MDP that takes the arrays over instead of copying them: for arrays of our own."""
    fields = _validated(successors, probabilities, rewards, discount)
    del successors, probabilities, rewards, discount
    return _trusted(*(frozen(array, dtype, copy=False) for array, dtype in zip(fields, _DTYPES)))


# Validation --------------------------------------------------------------------------------------


def _validated(
    successors: Any, probabilities: Any, rewards: Any, discount: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The four arrays, checked; rows that sum to one only roughly are normalised."""
    successors = _numbers("successors", successors)
    if successors.dtype.kind not in "iu":
        raise UserError(f"successors: dtype {successors.dtype}, expected integers")
    probabilities, rewards, discount = (
        _floats(name, value) for name, value in zip(_FIELDS[1:], (probabilities, rewards, discount))
    )
    _check_shapes(dict(zip(_FIELDS, (successors, probabilities, rewards, discount))))
    _check_discount(discount)
    _check_rewards(rewards)
    _check_successors(successors)
    if not _check_probabilities(probabilities):
        probabilities = probabilities / probabilities.sum(-1, keepdims=True)
    return successors, probabilities, rewards, discount


def _numbers(name: str, value: Any) -> np.ndarray:
    try:
        return np.asarray(value)
    except ValueError:
        raise UserError(f"{name}: rows of different lengths, expected an array") from None


def _floats(name: str, value: Any) -> np.ndarray:
    array = _numbers(name, value)
    if array.dtype.kind not in "fiu":
        raise UserError(f"{name}: dtype {array.dtype}, expected numbers")
    return array.astype(np.float64, copy=False)


def _check_shapes(arrays: Mapping[str, np.ndarray]) -> None:
    successors = arrays["successors"].shape
    if len(successors) not in (3, 4) or math.prod(successors) == 0:
        raise UserError(
            f"successors: shape {successors}, expected [S, A, B] or [M, S, A, B], each at least 1"
        )
    if successors[-3] >= 2**31:
        raise UserError(f"successors: {successors[-3]} states, expected fewer than 2**31")
    batch = successors[:-3]
    expected = {"probabilities": successors, "rewards": successors[:-1], "discount": batch}
    for name, shape in expected.items():
        if arrays[name].shape != shape:
            raise UserError(
                f"{name}: shape {arrays[name].shape}, expected {shape} "
                f"to go with successors of shape {successors}"
            )


def _place(index: Sequence[Any]) -> str:
    """'MDP 3, state 1, action 0' from the index of a row."""
    names = ("MDP", "state", "action")[3 - len(index) :] if len(index) <= 3 else ()
    return ", ".join(f"{name} {int(i)}" for name, i in zip(names, index))


def _check_discount(discount: np.ndarray) -> None:
    bad = ~((discount >= 0) & (discount < 1))
    if bad.any():
        where = f" of MDP {int(np.argmax(bad))}" if discount.ndim else ""
        raise UserError(f"discount{where}: {discount[bad][0]}, expected a number in [0, 1)")


def _check_rewards(rewards: np.ndarray) -> None:
    flat = rewards.reshape(-1)
    for start in range(0, flat.size, _BLOCK):
        finite = np.isfinite(flat[start : start + _BLOCK])
        if not finite.all():
            at = start + int(np.argmin(finite))
            place = _place(np.unravel_index(at, rewards.shape))
            raise UserError(f"rewards: {place}: {flat[at]}, expected a finite number")


def _check_successors(successors: np.ndarray) -> None:
    rows, states = successors.reshape(-1, successors.shape[-1]), successors.shape[-3]
    step = max(1, _BLOCK // rows.shape[1])
    for start in range(0, len(rows), step):
        block = rows[start : start + step]
        if block.min() >= 0 and block.max() < states:
            continue
        bad = ((block < 0) | (block >= states)).any(-1)
        row = int(np.argmax(bad))
        values = block[row][(block[row] < 0) | (block[row] >= states)]
        place = _place(np.unravel_index(start + row, successors.shape[:-1]))
        raise UserError(f"successors: {place}: {values[0]}, expected a state in 0..{states - 1}")


def row_rounding(branching: int) -> float:
    """How far from 1 a row's sum may be: what rounding explains; other rows are normalised."""
    return (branching + 4) * 2.0**-52


def _check_probabilities(probabilities: np.ndarray) -> bool:
    """Raise at the first bad row; True if every row sums to one up to rounding."""
    rows = probabilities.reshape(-1, probabilities.shape[-1])
    step, exact = max(1, _BLOCK // rows.shape[1]), True
    for start in range(0, len(rows), step):
        block = rows[start : start + step]
        miss = np.abs(block.sum(-1) - 1)
        # Written so that a NaN fails both comparisons.
        good = (block >= 0).all(-1) & (miss <= ROW_TOLERANCE)
        if not good.all():
            row = int(np.argmin(good))
            place = _place(np.unravel_index(start + row, probabilities.shape[:-1]))
            wrong = block[row][~(block[row] >= 0)]
            if len(wrong):
                raise UserError(f"probabilities: {place}: {wrong[0]}, expected a number ≥ 0")
            raise UserError(f"probabilities: {place}: they sum to {block[row].sum()}, expected 1")
        exact = exact and bool((miss <= row_rounding(rows.shape[1])).all())
    return exact


def _toy_text_table(environment: Any) -> Mapping[int, Any]:
    table = getattr(getattr(environment, "unwrapped", environment), "P", None)
    if not isinstance(table, Mapping):
        raise UserError(
            f"environment: {type(environment).__name__} has no transition table P, "
            "expected a toy-text environment such as FrozenLake-v1"
        )
    return table


def _check_axes(axes: str | None) -> None:
    if axes not in (None, "SA", "AS"):
        raise UserError(f"axes: {axes!r}, expected 'SA' (state, action) or 'AS' (action, state)")


def _warn_of_axes(name: str, states: int, actions: int, taken: str) -> None:
    """Where A = S, nothing in the data shows the order of the axes: say which was assumed."""
    if states == actions > 1:
        line = f"{name}: {states} states and as many actions, taken as {taken}"
        warnings.warn(f'{line}; axes="SA" or axes="AS" says which', stacklevel=3)


def _turned(table: Mapping[int, Any]) -> Mapping[int, Any]:
    """P[s][a] from P[a][s]."""
    actions = range(len(table))
    try:
        return {s: {a: table[a][s] for a in actions} for s in range(len(table[0]))}
    except (KeyError, IndexError, TypeError) as error:
        raise UserError(f"table: {error!r}, expected P[a][s] for a, s = 0, 1, …") from None


def _toy_text_sizes(table: Mapping[int, Any]) -> tuple[int, int]:
    """S and A of a toy-text table, every entry of which is looked at."""
    states = len(table)
    try:
        actions = len(table[0])
        for s in range(states):
            if len(table[s]) != actions:
                raise UserError(f"table: state {s}: {len(table[s])} actions, expected {actions}")
            for a in range(actions):
                for p, successor, reward, _ in table[s][a]:
                    if not (float(p) >= 0 and math.isfinite(float(reward))):
                        raise UserError(
                            f"table: state {s}, action {a}: probability {p} and reward {reward}, "
                            "expected a probability ≥ 0 and a finite reward"
                        )
                    if not 0 <= int(successor) < states:
                        raise UserError(
                            f"table: state {s}, action {a}: successor {successor}, "
                            f"expected a state in 0..{states - 1}"
                        )
    except UserError:
        raise
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise UserError(
            f"table: {error!r}, expected P[s][a] to list (probability, successor, reward, "
            "terminated) for s, a = 0, 1, …"
        ) from None
    if not actions:
        raise UserError("table: state 0 has no actions")
    return states, actions


# The pytree --------------------------------------------------------------------------------------


def _leaves(mdp: FiniteMDP) -> tuple[Any, Any, Any, Any]:
    return mdp.successors, mdp.probabilities, mdp.rewards, mdp.discount


def _trusted(successors: Any, probabilities: Any, rewards: Any, discount: Any) -> FiniteMDP:
    """Without validation or copies: for leaves that are tracers or come from a valid MDP."""
    mdp = object.__new__(FiniteMDP)
    object.__setattr__(mdp, "successors", successors)
    object.__setattr__(mdp, "probabilities", probabilities)
    object.__setattr__(mdp, "rewards", rewards)
    object.__setattr__(mdp, "discount", discount)
    return mdp


jax.tree_util.register_pytree_node(
    FiniteMDP, lambda mdp: (_leaves(mdp), None), lambda _, leaves: _trusted(*leaves)
)
