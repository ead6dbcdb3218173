"""I − γ P_π as a sparse matrix, factored where that is cheap: grids, corridors, queues, blocks.

A sweep spreads values by one step, so that sweeps take forever where mixing is slow. A factor
solves such systems at once, unless it fills in, as it does for random successors, which mix fast.
"""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from momentum_rl.mdp.model import FiniteMDP

_FILL = 1 << 28  # entries that the factors of one system may need at most, by the estimate
_HUB = 32  # a state with more neighbours counts as a full row, not towards the bandwidth

Solver = Callable[..., np.ndarray]


def system(mdp: FiniteMDP, policy: np.ndarray) -> Any:
    """I − γ P_π, a sparse matrix [S, S]."""
    import scipy.sparse as sparse

    rows = np.repeat(np.arange(mdp.states), mdp.branching)
    columns = mdp.chosen(mdp.successors, policy).ravel()
    entries = (mdp.chosen(mdp.probabilities, policy).ravel(), (rows, columns))
    kernel = sparse.csr_array(entries, shape=(mdp.states, mdp.states))
    return (sparse.eye_array(mdp.states) - float(mdp.discount) * kernel).tocsc()


def solver(mdp: FiniteMDP, policy: np.ndarray) -> Solver | None:
    """``solve(b, trans="N")`` for (I − γ P_π) x = b, or its transpose ("T"); None if too costly.

    The matrix is diagonally dominant, so it is factored without pivoting, in an order that keeps
    the factors sparse. One step of refinement leaves a residual of a few units in the last place.
    """
    import scipy.sparse.linalg as linalg

    matrix = system(mdp, policy)
    if fill(matrix) > _FILL:
        return None
    try:
        factor: Any = linalg.splu(
            matrix,
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )
    except (RuntimeError, MemoryError):  # singular in float64 (γ next to 1), or too large
        return None

    def solve(b: np.ndarray, trans: Literal["N", "T"] = "N") -> np.ndarray:
        x = factor.solve(b, trans)
        used = matrix if trans == "N" else matrix.T
        return x + factor.solve(b - used @ x, trans)

    return solve


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
