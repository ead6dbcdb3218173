"""v_π where sweeps are slow: linear systems I − γ P_π.

A sweep spreads values by one step, so that sweeps take forever where mixing is slow. A system can
be `factored` at once (grids, corridors, blocks), in an order that keeps the factors sparse, unless
they fill in, as they do for random successors, which mix fast. `evaluate` is for systems of any
size: a Krylov method, preconditioned in the order of values. From a state, a good policy mostly
leads to better ones, so that, sorted by value, the matrix is nearly triangular. Elimination in that
order is what sweeps from the goal outwards would do, and hardly fills in: an incomplete factor of
it, whose size is bounded beforehand, leaves BiCGSTAB one to five steps where the problem has a
direction (mazes). Where it has none it mixes, and needs few steps without any factor; or it has no
order of values but one in space (inventories, queues), and is factored at once.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from momentum_rl.mdp.model import FiniteMDP

_FILL = 1 << 28  # entries that the factors of one system may need at most, by the estimate
_HUB = 32  # a state with more neighbours counts as a full row, not towards the bandwidth
_DROP = 1e-4  # entries of the incomplete factor below this share of their column are dropped
_INCOMPLETE = 10.0  # it has at most this many times the entries of the matrix
_DOWNHILL = 0.6  # least share of the probability leaving a state that leads to better ones
_STEPS = 60  # of BiCGSTAB, of one correction
_CORRECTIONS = 6

Solver = Callable[[np.ndarray], np.ndarray]


def system(
    mdp: FiniteMDP,
    policy: np.ndarray,
    order: np.ndarray | None = None,
    discount: float | None = None,
) -> Any:
    """I − γ P_π with states in this order, a sparse matrix [S, S] in CSC."""
    import scipy.sparse as sparse

    states, slots = mdp.states, mdp.branching + 1
    gamma = float(mdp.discount) if discount is None else discount
    order = np.arange(states, dtype=np.int32) if order is None else order
    rank = np.empty(states, np.int32)
    rank[order] = np.arange(states, dtype=np.int32)
    columns, entries = np.empty((states, slots), np.int32), np.empty((states, slots))
    columns[:, 0], entries[:, 0] = np.arange(states), 1.0
    columns[:, 1:] = rank[mdp.chosen(mdp.successors, policy)[order]]
    entries[:, 1:] = -gamma * mdp.chosen(mdp.probabilities, policy)[order]
    starts = np.arange(states + 1, dtype=np.int64) * slots
    matrix: Any = sparse.csr_array((entries.ravel(), columns.ravel(), starts), (states, states))
    matrix.sum_duplicates()
    return matrix.tocsc()


def factored(matrix: Any, **options: Any) -> Solver:
    """``solve(b)``; one step of refinement leaves a residual of a few units in the last place."""
    import scipy.sparse.linalg as linalg

    factor: Any = linalg.splu(matrix, permc_spec="MMD_AT_PLUS_A", **options)

    def solve(b: np.ndarray) -> np.ndarray:
        x = factor.solve(b)
        return np.asarray(x + factor.solve(b - matrix @ x))

    return solve


def solver(mdp: FiniteMDP, policy: np.ndarray) -> Solver | None:
    """I − γ P_π, `factored`; None if that is too costly.

    The matrix is diagonally dominant, so it is factored without pivoting.
    """
    matrix = system(mdp, policy)
    if fill(matrix) > _FILL:
        return None
    try:
        return factored(matrix, diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    except (RuntimeError, MemoryError):  # singular in float64 (γ next to 1), or too large
        return None


def fill(matrix: Any) -> int:
    """How many entries the factors have at most, in the order of Cuthill and McKee.

    Elimination fills a row from its first entry on. Minimum degree, which is used, does better;
    what counts is that a system without a good order is recognised before it is factored.
    """
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    pattern = matrix.tocsr()
    pattern = pattern + pattern.T
    hubs = np.diff(pattern.indptr) > _HUB
    rest = pattern[~hubs][:, ~hubs].tocsr()
    order = reverse_cuthill_mckee(rest, symmetric_mode=True)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    entries = rest.tocoo()
    row, column = place[entries.row], place[entries.col]
    first = np.arange(len(order))
    np.minimum.at(first, row, column)
    width = int((np.arange(len(order)) - first).sum()) + len(order)
    return 2 * (width + int(hubs.sum()) * matrix.shape[0])


class Evaluation(NamedTuple):
    """An approximate v_π."""

    v: np.ndarray
    """The values, [S]."""
    residual: float
    """max |r_π + γ P_π v − v|, as computed."""


def evaluate(
    mdp: FiniteMDP,
    policy: np.ndarray,
    v: Any,
    goal: float,
    ranking: np.ndarray | None = None,
) -> Evaluation:
    """v_π from a guess v, until its residual is at most the goal, or no further.

    ``ranking`` says which states come first (the lowest); by default those with the highest v.
    """
    import scipy.sparse.linalg as linalg

    v = np.asarray(v)
    rewards = mdp.chosen(mdp.rewards, policy)
    order = np.argsort(-v if ranking is None else ranking, kind="stable")
    matrix = system(mdp, policy, order)
    ordered, x = rewards[order], v[order]
    residual = ordered - matrix @ x
    best, least = x, float(np.abs(residual).max())
    if least > goal:
        factor = _preconditioner(matrix)
        for _ in range(_CORRECTIONS):
            # The residual's own scale: a tolerance relative to it loses no digit to v's.
            step, _ = linalg.bicgstab(
                matrix, residual, rtol=1e-8, atol=0.1 * goal, maxiter=_STEPS, M=factor
            )
            x = x + step
            residual = ordered - matrix @ x
            now = float(np.abs(residual).max())
            if not now < 0.5 * least:
                break
            best, least = x, now
            if least <= goal:
                break
    result = np.empty(mdp.states)
    result[order] = best
    if least > goal and (solve := solver(mdp, policy)):
        result = solve(rewards)
        least = float(np.abs(rewards - system(mdp, policy) @ result).max())
    return Evaluation(result, least)


def _preconditioner(matrix: Any) -> Any:
    """An incomplete factor; None where the order shows no direction."""
    import scipy.sparse.linalg as linalg

    if _downhill(matrix) < _DOWNHILL:
        return None
    try:
        factor = linalg.spilu(
            matrix,
            drop_tol=_DROP,
            fill_factor=_INCOMPLETE,
            permc_spec="NATURAL",
            diag_pivot_thresh=0.0,
        )
    except (RuntimeError, MemoryError):  # singular in float64, or too large
        return None
    return linalg.LinearOperator(matrix.shape, factor.solve)


def _downhill(matrix: Any) -> float:
    """The share of the probability leaving a state that leads to those before it."""
    columns = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    leaving = matrix.indices != columns
    mass = -matrix.data[leaving]
    total = mass.sum()
    return float(mass[(matrix.indices > columns)[leaving]].sum() / total) if total > 0 else 0.0


def distances(mdp: FiniteMDP, goals: np.ndarray) -> np.ndarray:
    """From every state, the least number of steps to the goals along actions' likeliest successors.

    [S] integers; one more than the largest where no such steps lead to them.
    """
    import scipy.sparse as sparse
    from scipy.sparse.csgraph import breadth_first_order

    states = mdp.states
    owners = np.repeat(np.arange(states), mdp.actions)
    successors = mdp.successors.reshape(-1, mdp.branching)
    elsewhere = successors != owners[:, None]
    likely = np.where(elsewhere, mdp.probabilities.reshape(successors.shape), -1.0).argmax(1)
    to = successors[np.arange(len(successors)), likely]
    # Backwards, and from one more state that leads to all goals.
    sources = np.concatenate([to, np.full(len(goals), states, to.dtype)])
    targets = np.concatenate([owners, goals])
    ones = np.ones(len(sources), np.int8)
    graph: Any = sparse.csr_array((ones, (sources, targets)), shape=(states + 1, states + 1))
    order, before = breadth_first_order(graph, states)
    # How often one steps back to reach the root: twice as far each time.
    level, back = np.zeros(states + 1, np.int32), np.full(states + 1, states)
    back[order[1:]] = before[order[1:]]
    level[order[1:]] = 1
    while (back[order] != states).any():
        level += level[back]
        back = back[back]
    steps = int(level.max())
    result = np.full(states + 1, steps, np.int32)
    result[order] = level[order] - 1
    return result[:-1]
