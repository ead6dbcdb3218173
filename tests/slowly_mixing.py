"""Problems on which news travels slowly, and their answers another way, beyond float64."""

import numpy as np
import scipy.sparse as sparse
import scipy.sparse.linalg as linalg

from momentum_rl.mdp.model import FiniteMDP

MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))


def grid(size, discount, walls=0.0, seed=0, step=-1.0):
    """A slippery grid (.8 ahead, .1 to either side), ``step`` per step, the last cell absorbing."""
    blocked = np.random.default_rng(seed).random((size, size)) < walls
    blocked[0, 0] = blocked[-1, -1] = False
    here = np.arange(size * size)
    to = np.empty((size * size, 4), int)
    for a, (down, right) in enumerate(MOVES):
        i, j = here // size + down, here % size + right
        open_ = (i >= 0) & (i < size) & (j >= 0) & (j < size)
        open_[open_] = ~blocked[i[open_], j[open_]]
        to[:, a] = np.where(open_, i * size + j, here)
    successors = np.stack([to, np.roll(to, 1, 1), np.roll(to, -1, 1)], 2)
    rewards = np.full(to.shape, step)
    successors[-1], rewards[-1] = size * size - 1, 0
    return FiniteMDP(successors, np.tile([0.8, 0.1, 0.1], (*to.shape, 1)), rewards, discount)


def corridor(length, discount):
    """Back or on, −1 per step; the last state is the end. n steps away: −(1 − γⁿ)/(1 − γ)."""
    here = np.arange(length)
    to = np.stack([np.maximum(here - 1, 0), np.minimum(here + 1, length - 1)], 1)
    rewards = np.full((length, 2), -1.0)
    to[-1], rewards[-1] = length - 1, 0
    return FiniteMDP(*two_slots(to, to, 0.0), rewards, discount)


def two_cycle(states, discount):
    """Half of the states lead to the other half, which leads back: the period is 2."""
    rng = np.random.default_rng(0)
    half = states // 2
    to = np.concatenate([rng.integers(half, states, (half, 4)), rng.integers(0, half, (half, 4))])
    rewards = np.where(np.arange(states)[:, None] < half, 1, -1) * (1 + rng.random((states, 2)))
    return FiniteMDP(*two_slots(to[:, :2], to[:, 2:], 0.5), rewards, discount)


def nearly_decomposable(states, discount, blocks=3, leak=1e-5):
    """Random within a block, which is left for the next one with a small probability."""
    rng = np.random.default_rng(0)
    size = states // blocks
    block = np.arange(states) // size
    inside = block[:, None] * size + rng.integers(0, size, (states, 2))
    outside = (inside + size) % states
    rewards = block[:, None] + rng.random((states, 2))
    return FiniteMDP(*two_slots(inside, outside, leak), rewards, discount)


def two_slots(likely, other, probability):
    """Successors and probabilities [S, A, 2] of going to ``other`` now and then."""
    successors = np.stack([likely, other], -1)
    return successors, np.tile([1 - probability, probability], (*likely.shape, 1))


def _backup(mdp, v):
    """r + γ P v beyond float64 (as far as the machine has more)."""
    p, gamma = mdp.probabilities.astype(np.longdouble), np.longdouble(mdp.discount)
    return mdp.rewards + gamma * (p * v[mdp.successors]).sum(-1)


def policy_matrix(mdp, policy):
    """P_π, sparse [S, S]."""
    every = np.arange(mdp.states)
    entries = mdp.probabilities[every, policy].ravel()
    places = (np.repeat(every, mdp.branching), mdp.successors[every, policy].ravel())
    return sparse.coo_array((entries, places), shape=(mdp.states, mdp.states)).tocsc()


def resolved(mdp, policy, x):
    """(I − γ P_π)⁻¹ x, [S, A], by a sparse factor, refined with residuals beyond float64."""
    every = np.arange(mdp.states)
    kernel = policy_matrix(mdp, policy)
    factor = linalg.splu((sparse.eye_array(mdp.states) - float(mdp.discount) * kernel).tocsc())
    w = np.zeros(mdp.states, np.longdouble)
    for _ in range(4):
        z = _backup(mdp, w) - mdp.rewards + x
        w = w + factor.solve((z[every, policy] - w).astype(np.float64))
    return _backup(mdp, w) - mdp.rewards + x


def optimal(mdp, policy):
    """q* by policy iteration from a policy, each evaluated as above."""
    every = np.arange(mdp.states)
    while True:
        q = resolved(mdp, policy, mdp.rewards)
        better = q.max(1) - q[every, policy] > 1e-14 * (1 + np.abs(q).max())
        if not better.any():
            return q
        policy = np.where(better, q.argmax(1), policy)
