"""Garnets: the random MDPs of the paper's experiments (Section 7.1)."""

import numpy as np

from momentum_rl.errors import UserError, check_count, check_seed, door
from momentum_rl.mdp.memory import aligned
from momentum_rl.mdp.model import FiniteMDP, adopted
from momentum_rl.plumbing.sizes import require

_ROWS = 1 << 17  # drawn at a time: part of what a seed means, so never to be changed


@door
def garnet(
    states: int = 30,
    actions: int = 4,
    branching: int = 4,
    *,
    discount: float = 0.9,
    seed: int = 0,
    count: int | None = None,
) -> FiniteMDP:
    """A Garnet(N_S, N_A, N_B), or ``count`` of them.

    For every (s, a), N_B distinct successors uniformly without replacement, with the N_B spacings
    of N_B − 1 sorted uniforms as probabilities; rewards uniform in (−1, 1), one per *state*.

    MDP i of a batch depends on (seed, i) alone, so a larger batch begins with the smaller one.

    >>> garnet(30, 4, 4, seed=1, count=100)
    FiniteMDP(100 × 30 states, 4 actions, 4 successors, discount 0.9)
    """
    sizes = {"states": states, "actions": actions, "branching": branching, "count": count}
    for name, value in sizes.items():
        check_count(name, value)
    if branching > states:
        raise UserError(f"branching: {branching}, expected at most the number of states, {states}")
    check_seed(seed)
    members = 1 if count is None else count
    cells = members * states * actions
    # Validating them takes as much again as the arrays themselves.
    require(f"{cells:,} pairs (s, a)", memory=2 * cells * (12 * branching + 8))
    shape = (members, states * actions, branching)
    successors, probabilities = aligned(shape, np.int32), aligned(shape, np.float64)
    rewards = aligned((members, states, actions), np.float64)
    for i in range(members):
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(i,)))
        for begin in range(0, states * actions, _ROWS):
            rows = slice(begin, begin + _ROWS)
            _fill(rng, states, successors[i, rows], probabilities[i, rows])
        rewards[i] = rng.uniform(-1, 1, (states, 1))
    lead = () if count is None else (count,)
    return adopted(
        successors.reshape(*lead, states, actions, branching),
        probabilities.reshape(*lead, states, actions, branching),
        rewards.reshape(*lead, states, actions),
        np.full(lead, discount),
    )


def _fill(
    rng: np.random.Generator, states: int, successors: np.ndarray, probabilities: np.ndarray
) -> None:
    """Draw rows in place."""
    rows, branching = successors.shape
    # Floyd's algorithm on all rows at once: a uniform subset without rejection. Its order is not
    # uniform, which is no matter: the spacings assigned to it below are exchangeable.
    for slot, last in enumerate(range(states - branching, states)):
        pick = np.floor(rng.random(rows) * (last + 1)).astype(np.int32)
        taken = (successors[:, :slot] == pick[:, None]).any(1)
        successors[:, slot] = np.where(taken, last, pick)
    cuts = rng.random((rows, branching - 1))
    cuts.sort(axis=1)
    probabilities[:] = np.diff(cuts, axis=1, prepend=0.0, append=1.0)
