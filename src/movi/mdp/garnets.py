"""Garnets: the random MDPs of the paper's experiments (Section 7.1)."""

import numpy as np

from movi.errors import UserError
from movi.mdp.model import FiniteMDP


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
    numbers = {"states": states, "actions": actions, "branching": branching}
    numbers |= {} if count is None else {"count": count}
    for name, value in numbers.items():
        if value < 1:
            raise UserError(f"{name}: {value}, expected at least 1")
    if branching > states:
        raise UserError(f"branching: {branching}, expected at most the number of states, {states}")
    if seed < 0:
        raise UserError(f"seed: {seed}, expected at least 0")
    if states >= 2**31:
        raise UserError(f"states: {states}, expected fewer than 2**31")
    if count is None:
        return FiniteMDP(*_one(states, actions, branching, seed, 0), discount)
    members = [_one(states, actions, branching, seed, i) for i in range(count)]
    successors, probabilities, rewards = (np.stack(column) for column in zip(*members))
    return FiniteMDP(successors, probabilities, rewards, np.full(count, discount))


def _one(
    states: int, actions: int, branching: int, seed: int, index: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(index,)))
    rows = states * actions
    successors = np.empty((rows, branching), np.int32)
    # Floyd's algorithm on all rows at once: a uniform subset without rejection. Its order is not
    # uniform, which is no matter: the spacings assigned to it below are exchangeable.
    for slot, last in enumerate(range(states - branching, states)):
        pick = (rng.random(rows) * (last + 1)).astype(np.int32)
        taken = (successors[:, :slot] == pick[:, None]).any(1)
        successors[:, slot] = np.where(taken, last, pick)
    cuts = rng.random((rows, branching - 1))
    cuts.sort(axis=1)
    probabilities = np.diff(cuts, axis=1, prepend=0.0, append=1.0)
    rewards = np.repeat(rng.uniform(-1, 1, (states, 1)), actions, 1)
    shape = (states, actions, branching)
    return successors.reshape(shape), probabilities.reshape(shape), rewards
