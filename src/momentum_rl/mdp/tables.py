"""Arrays of an MDP from what there is: matrices, pairs (s, a), toy-text tables."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from momentum_rl.errors import UserError
from momentum_rl.mdp.arrays import expectation
from momentum_rl.mdp.checks import check_successors, floats, numbers
from momentum_rl.plumbing.sizes import require

Axes = Literal["SA", "AS"]  # which comes first in a kernel: state or action
Arrays = dict[str, Any]
_SAY = 'axes="SA" or axes="AS" says which'


def of_kernel(kernel: Any, rewards: Any, axes: Axes | None) -> Arrays:
    """From P[s, a, s'] and rewards [S], [S, A] or [S, A, S']."""
    kernel = floats("kernel", kernel)
    if axes == "AS" and kernel.ndim in (3, 4):
        if kernel.shape[-1] != kernel.shape[-2]:
            raise UserError(f"kernel: shape {kernel.shape}, expected [A, S, S] or [M, A, S, S]")
        kernel = np.swapaxes(kernel, -3, -2)
    if kernel.ndim not in (3, 4) or kernel.shape[-1] != kernel.shape[-3]:
        turned = kernel.ndim in (3, 4) and kernel.shape[-1] == kernel.shape[-2]
        hint = '; axes="AS" takes [A, S, S]' if turned else ""
        raise UserError(f"kernel: shape {kernel.shape}, expected [S, A, S] or [M, S, A, S]{hint}")
    if axes is None:
        warn_of_axes("kernel", kernel.shape[-3], kernel.shape[-2], f"P[s, a, s']; {_SAY}")
    if kernel.size == 0:
        raise UserError(f"kernel: shape {kernel.shape}, expected at least one state and action")
    support = kernel != 0
    branching = max(1, int(support.sum(-1).max()))
    # A stable sort of "is absent" puts the possible successors first, in their order.
    successors = np.argsort(~support, axis=-1, kind="stable")[..., :branching]
    probabilities = np.take_along_axis(kernel, successors, -1)
    rewards = floats("rewards", rewards)
    lead = kernel.ndim - 3
    same = rewards.ndim < lead + 2 or np.array_equal(rewards, rewards.swapaxes(lead, lead + 1))
    if axes == "AS" and not same:
        warn_of_axes("rewards", kernel.shape[-3], kernel.shape[-2], "R[s, a], whatever the axes")
    if rewards.shape == kernel.shape:
        rewards = expectation(kernel, rewards)
    return {"successors": successors, "probabilities": probabilities, "rewards": rewards}


def of_matrices(kernels: Sequence[Any], rewards: Any) -> Arrays:
    """From one scipy sparse matrix [S, S] per action; rewards also as such matrices, by s'."""
    import scipy.sparse as sparse

    if getattr(kernels, "ndim", 1) == 0:  # a number of NumPy's
        kernels = [kernels]
    if len(kernels) == 0:
        raise UserError("kernels: empty, expected one [S, S] matrix per action")
    rows = [_matrix("kernels", kernel) for kernel in kernels]
    states = rows[0].shape[0]
    for a, kernel in enumerate(rows):
        if kernel.shape != (states, states):
            raise UserError(
                f"kernels: the matrix of action {a} has shape {kernel.shape}, "
                f"expected ({states}, {states})"
            )
    if not (isinstance(rewards, Sequence) and any(map(sparse.issparse, rewards))):
        rewards = floats("rewards", rewards)
    if isinstance(rewards, Sequence) or rewards.ndim == 3:  # R[a][s, s'], as the kernels
        by_action = [_matrix("rewards", r) for r in rewards]
        if len(by_action) != len(rows) or any(r.shape != rows[0].shape for r in by_action):
            raise UserError(f"rewards: expected {len(rows)} matrices of shape {rows[0].shape}")
        each = [(k.multiply(r != 0), r.multiply(k != 0)) for k, r in zip(rows, by_action)]
        rewards = np.stack([expectation(_slots(k)[1], _slots(r)[1]) for k, r in each], 1)
    elif rewards.ndim == 2 and not np.array_equal(rewards, rewards.T):
        warn_of_axes("rewards", states, len(rows), "R[s, a]; R[a][s, s'] has a matrix for each a")
    stacked = _slots(sparse.vstack(rows).tocsr())
    successors, probabilities = (x.reshape(len(rows), states, -1).swapaxes(0, 1) for x in stacked)
    return {"successors": successors, "probabilities": probabilities, "rewards": rewards}


def _matrix(name: str, given: Any) -> Any:
    """A sparse matrix of what is one, or an array."""
    import scipy.sparse as sparse

    matrix: Any = given if sparse.issparse(given) else floats(name, given)
    if matrix.ndim != 2 or matrix.dtype.kind not in "biuf":
        raise UserError(f"{name}: {given!r}, expected a matrix of numbers")
    return sparse.csr_array(matrix, copy=True)


def _slots(kernel: Any) -> tuple[np.ndarray, np.ndarray]:
    """The rows of a sparse matrix, [R, B] successors and probabilities."""
    kernel.sum_duplicates()
    kernel.eliminate_zeros()
    return slots(kernel.indptr, kernel.indices, kernel.data)


def slots(
    offsets: np.ndarray, successors: np.ndarray, probabilities: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Rows of different lengths as [R, B], filled up with probability zero."""
    counts = np.diff(offsets)
    shape = (len(counts), max(1, int(counts.max(initial=1))))
    if len(successors) == shape[0] * shape[1]:
        return successors.reshape(shape), probabilities.reshape(shape)
    row = np.repeat(np.arange(len(counts)), counts)
    slot = np.arange(len(successors)) - np.repeat(offsets[:-1], counts)
    s, p = np.zeros(shape, np.int32), np.zeros(shape)
    s[row, slot], p[row, slot] = successors, probabilities
    return s, p


def of_pairs(states: Any, actions: Any, kernel: Any, rewards: Any) -> Arrays:
    """From state-action pairs, QuantEcon's ``s_indices``, ``a_indices``, ``Q`` [L, S], ``R`` [L].

    The pairs may come in any order. A row of ``R`` of −inf is a pair that is not there.
    """

    s, a = numbers("states", states), numbers("actions", actions)
    for name, x in (("states", s), ("actions", a)):
        if x.dtype.kind not in "iu" or x.ndim != 1:
            raise UserError(f"{name}: shape {x.shape} of {x.dtype}, expected integers [L]")
        if len(x) and x.min() < 0:
            raise UserError(f"{name}: {x.min()}, expected numbers ≥ 0")
    r = floats("rewards", rewards)
    if r.ndim != 1 or not len(s) == len(a) == len(r) > 0:
        raise UserError(
            f"pairs: {len(s)} states, {len(a)} actions, rewards of shape {r.shape}, "
            "expected as many of each, at least one"
        )
    matrix = _matrix("kernel", kernel)
    if matrix.shape[0] != len(s) or matrix.shape[1] <= s.max():
        raise UserError(
            f"kernel: shape {matrix.shape}, expected ({len(s)}, S) with S above {s.max()}"
        )
    return _of_rows(matrix.shape[1], s, a, *_slots(matrix), r)


def _of_rows(
    states: int,
    s: np.ndarray,
    a: np.ndarray,
    successors: np.ndarray,
    probabilities: np.ndarray,
    rewards: np.ndarray,
) -> Arrays:
    """Tables from L rows, each of a pair (s, a); the pairs without a row are not there."""
    actions = int(a.max()) + 1
    shape, cells = (states, actions, successors.shape[1]), states * actions
    require(f"a table of {cells:,} pairs (s, a)", memory=cells * (12 * shape[2] + 8))
    s, a = s.astype(np.int64), a.astype(np.int64)
    twice = np.bincount(s * actions + a) > 1
    if twice.any():
        state, action = divmod(int(np.argmax(twice)), actions)
        raise UserError(f"pairs: state {state}, action {action} more than once, expected it once")
    to, p, r = np.zeros(shape, np.int32), np.zeros(shape), np.full(shape[:2], -np.inf)
    to[s, a], p[s, a], r[s, a] = successors, probabilities, rewards
    return {"successors": to, "probabilities": p, "rewards": r}


def of_toy_text(environment: Any) -> Arrays:
    """From a toy-text environment or its table ``P``, whose states may have different actions."""
    table = environment if isinstance(environment, Mapping) else _table_of(environment)
    states = len(table)
    try:
        outcomes = [
            (s, a, *outcome)
            for s in range(states)
            for a in (sorted(table[s]) if isinstance(table[s], Mapping) else range(len(table[s])))
            for outcome in table[s][a]
        ]
        s, a, p, to, r, ended = map(np.array, zip(*outcomes, strict=True))
        ended = ended.astype(bool)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise UserError(
            f"table: {error!r}, expected P[s][a] to list (probability, successor, reward, "
            "terminated) for s = 0, 1, … and its actions"
        ) from None
    for name, x in (("actions", a), ("successors", to)):
        if x.dtype.kind not in "iu" or x.min() < 0:
            raise UserError(f"table: {name} {x.ravel()[:3]}, expected integers ≥ 0")
    check_successors(to[:, None], states, lambda row: f"state {s[row]}, action {a[row]}")
    elsewhere = (to != s) | (r != 0)
    at_rest = np.bincount(s, elsewhere, states) == 0
    ends = ended & ~at_rest[to]
    if ends.any():  # one more state, where episodes end, whatever one does there
        every = np.unique(a)
        to = np.concatenate([np.where(ends, states, to), np.full(len(every), states)])
        s = np.concatenate([s, np.full(len(every), states)])
        a, p = np.concatenate([a, every]), np.concatenate([p, np.ones(len(every))])
        r, states = np.concatenate([r, np.zeros(len(every))]), states + 1
    first = np.flatnonzero((np.diff(s, prepend=-1) != 0) | (np.diff(a, prepend=-1) != 0))
    offsets = np.append(first, len(s))
    successors, probabilities = slots(offsets, to, floats("table", p))
    _, rewards = slots(offsets, to, floats("table", r))
    earned = expectation(probabilities, rewards)
    return _of_rows(states, s[first], a[first], successors, probabilities, earned)


def _table_of(environment: Any) -> Mapping[int, Any]:
    table = getattr(getattr(environment, "unwrapped", environment), "P", None)
    if not isinstance(table, Mapping):
        raise UserError(
            f"environment: {type(environment).__name__} has no transition table P, "
            "expected a toy-text environment such as FrozenLake-v1"
        )
    return table


def warn_of_axes(name: str, states: int, actions: int, taken: str) -> None:
    """Where A = S, nothing in the data shows the order of the axes: say which was assumed."""
    if states == actions > 1:
        line = f"{name}: {states} states and as many actions, taken as {taken}"
        warnings.warn(line, stacklevel=5)
