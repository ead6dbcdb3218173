"""v_π where sweeps are slow: a Krylov method on I − γ P_π, preconditioned in the order of values.

From a state, a good policy mostly leads to better ones. Sorted by value, best first, I − γ P_π is
therefore nearly triangular, whatever the problem: elimination in that order is what sweeps from the
goal outwards would do, and hardly fills in. An incomplete factor of it, whose size is bounded
beforehand, leaves BiCGSTAB one to five steps where the problem has a direction (mazes); where it
has none it mixes, and the method needs few steps without any factor. Where states lead to states
with numbers close to their own (inventories, queues), the matrix is a band: it is eliminated.
"""

from typing import Any, NamedTuple

import numpy as np

from momentum_rl.mdp.model import FiniteMDP

_DROP = 1e-4  # entries of the factor below this share of their column are dropped
_FILL = 10.0  # the factor has at most this many times the entries of the matrix
_WORK = 200.0  # multiplications of an elimination for each entry of the matrix
_ROWS = 1 << 18  # pairs (s, a) that are looked at in one go
_DOWNHILL = 0.6  # least share of the probability leaving a state that leads to better ones
_STEPS = 60  # of BiCGSTAB, of one correction
_CORRECTIONS = 6


class Evaluation(NamedTuple):
    """An approximate v_π."""

    v: np.ndarray
    """The values, [S]."""
    residual: float
    """max |r_π + γ P_π v − v|, as computed."""


def ordered_system(mdp: FiniteMDP, policy: np.ndarray, order: np.ndarray) -> Any:
    """I − γ P_π with states in this order, a sparse matrix [S, S] in CSC."""
    import scipy.sparse as sparse

    states, slots = mdp.states, mdp.branching + 1
    rank = np.empty(states, np.int32)
    rank[order] = np.arange(states, dtype=np.int32)
    columns, entries = np.empty((states, slots), np.int32), np.empty((states, slots))
    columns[:, 0], entries[:, 0] = np.arange(states), 1.0
    columns[:, 1:] = rank[mdp.chosen(mdp.successors, policy)[order]]
    entries[:, 1:] = -float(mdp.discount) * mdp.chosen(mdp.probabilities, policy)[order]
    starts = np.arange(states + 1, dtype=np.int64) * slots
    matrix: Any = sparse.csr_array((entries.ravel(), columns.ravel(), starts), (states, states))
    matrix.sum_duplicates()
    return matrix.tocsc()


def evaluate(
    mdp: FiniteMDP,
    policy: np.ndarray,
    v: Any,
    goal: float,
    own: np.ndarray | None = None,
    ranking: np.ndarray | None = None,
) -> Evaluation:
    """v_π from a guess v, until its residual is at most the goal, or no further.

    ``own`` are other rewards, [S], than those of the policy. ``ranking`` says which states come
    first (the lowest); by default those with the highest v.
    """
    import scipy.sparse.linalg as linalg

    v = np.asarray(v)
    rewards = mdp.chosen(mdp.rewards, policy) if own is None else own
    direct = _banded(mdp, policy, rewards)
    if direct is not None:
        return direct
    order = np.argsort(-v if ranking is None else ranking, kind="stable")
    matrix = ordered_system(mdp, policy, order)
    rewards, x = rewards[order], v[order]
    residual = rewards - matrix @ x
    best, least = x, float(np.abs(residual).max())
    if least > goal:
        factor = _factor(matrix)
        for _ in range(_CORRECTIONS):
            # The residual's own scale: a tolerance relative to it loses no digit to v's.
            step, _ = linalg.bicgstab(
                matrix, residual, rtol=1e-8, atol=0.1 * goal, maxiter=_STEPS, M=factor
            )
            x = x + step
            residual = rewards - matrix @ x
            now = float(np.abs(residual).max())
            if not now < 0.5 * least:
                break
            best, least = x, now
            if least <= goal:
                break
    result = np.empty(mdp.states)
    result[order] = best
    return Evaluation(result, least)


def close_by(mdp: FiniteMDP) -> bool:
    """Whether every policy is evaluated by eliminating a band; see `_banded`."""
    successors = mdp.successors.reshape(-1, mdp.branching)
    probabilities, pairs = mdp.probabilities.reshape(successors.shape), len(successors)
    below = above = 0
    for begin in range(0, pairs, _ROWS):  # a model without a band mostly shows it at once
        some = slice(begin, begin + _ROWS)
        numbers = np.arange(begin, min(begin + _ROWS, pairs))
        owners = mdp.owners()[some] if mdp.ragged else numbers // mdp.rewards.shape[1]
        reach = _reach(np.where(probabilities[some] > 0, successors[some] - owners[:, None], 0))
        below, above = max(below, reach[0]), max(above, reach[1])
        if below + above >= mdp.states or not _narrow(mdp, below, above):
            return False
    return True


def _narrow(mdp: FiniteMDP, below: int, above: int) -> bool:
    """Whether a band of so many diagonals is worth eliminating, by its memory and its work."""
    rows, entries = 2 * below + above + 1, mdp.branching + 1
    return rows <= _FILL * entries and below * (below + above) <= _WORK * entries


def _reach(away: np.ndarray) -> tuple[int, int]:
    """How far down and up transitions lead."""
    return max(-int(away.min()), 0), max(int(away.max()), 0)


def _banded(mdp: FiniteMDP, policy: np.ndarray, rewards: np.ndarray) -> Evaluation | None:
    """v_π by elimination, if states lead to states with numbers close to their own; else None.

    So it is with stocks, queues and ages. In general the band would fill the memory; here it has at
    most ``_FILL`` times the entries of the matrix.
    """
    from scipy.linalg import lapack

    states, index = mdp.states, mdp.index(policy)
    at: Any = index if mdp.ragged else (np.arange(states), index)
    to, p = mdp.successors[at], mdp.probabilities[at]
    numbers = np.arange(states, dtype=to.dtype)[:, None]
    away = np.where(p > 0, to - numbers, 0)
    below, above = _reach(away)
    rows = 2 * below + above + 1
    if not _narrow(mdp, below, above):
        return None
    # LAPACK's layout by columns: entry (s, s') is in column s', row below + above + s − s'.
    places = (numbers + away).astype(np.int64) * rows + (below + above - away)
    entries = -float(mdp.discount) * p
    band: np.ndarray = np.bincount(places.ravel(), entries.ravel(), minlength=rows * states)
    band[below + above :: rows] += 1.0
    factor, pivots, info = lapack.dgbtrf(band.reshape(states, rows).T, below, above, overwrite_ab=1)
    if info != 0:  # singular in float64
        return None
    x = np.zeros(states)
    for _ in range(2):  # the second removes the rounding of the first
        residual = rewards - x + float(mdp.discount) * (p * x[to]).sum(-1)
        x = x + lapack.dgbtrs(factor, below, above, residual, pivots)[0]
    residual = rewards - x + float(mdp.discount) * (p * x[to]).sum(-1)
    return Evaluation(x, float(np.abs(residual).max())) if np.isfinite(x).all() else None


def _factor(matrix: Any) -> Any:
    """An incomplete factor as a preconditioner; None where the order shows no direction."""
    import scipy.sparse.linalg as linalg

    columns = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    leaving = matrix.indices != columns
    mass = -matrix.data[leaving]
    downhill = mass[(matrix.indices > columns)[leaving]].sum()
    if not downhill >= _DOWNHILL * mass.sum():
        return None
    try:
        found = linalg.spilu(
            matrix, drop_tol=_DROP, fill_factor=_FILL, permc_spec="NATURAL", diag_pivot_thresh=0.0
        )
    except (RuntimeError, MemoryError):  # singular in float64, or too large
        return None
    return linalg.LinearOperator(matrix.shape, found.solve)


def distances(mdp: FiniteMDP, goals: np.ndarray) -> np.ndarray:
    """From every state, the least number of steps to the goals along actions' likeliest successors.

    [S] integers; one more than the largest where no such steps lead to them.
    """
    import scipy.sparse as sparse
    from scipy.sparse.csgraph import breadth_first_order

    states = mdp.states
    owners = mdp.owners() if mdp.ragged else np.repeat(np.arange(states), mdp.rewards.shape[1])
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
