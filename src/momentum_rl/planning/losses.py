"""‖q* − q_{π_k}‖ at every iteration, exactly: each distinct policy is evaluated once.

Stochastic policies are judged in the MDP with τ times their entropy: ‖q^τ_* − q^τ_{π_k}‖.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from momentum_rl.mdp import FiniteMDP, policy_values, weighted_norm
from momentum_rl.mdp.solve.methods import DIRECT
from momentum_rl.mdp.solve.regularised import stochastic_policy_value

_SYSTEMS = 1 << 17  # entries of the linear systems in memory at a time, per thread


class Losses(NamedTuple):
    """Norms of q* − q_π, one entry per policy that was asked for."""

    l1: np.ndarray
    """‖·‖_{1,μ} under the uniform distribution."""
    sup: np.ndarray
    """‖·‖_∞."""


def distinct_rows(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The indices of the distinct rows of [N, S], and for each row its place among them.

    By a 64-bit hash; should two different rows ever share it, by a full sort.
    """
    multipliers = np.random.default_rng(0).integers(1, 2**63, rows.shape[1], np.uint64) | 1
    hashes = np.zeros(len(rows), np.uint64)
    for column, multiplier in zip(rows.T, multipliers):
        hashes += (column.astype(np.uint64) + 1) * multiplier
        hashes ^= hashes >> np.uint64(29)
    _, first, place = np.unique(hashes, return_index=True, return_inverse=True)
    if not (rows[first[place]] == rows).all():
        _, first, place = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return first, place.reshape(-1)


def policy_losses(mdp: FiniteMDP, optimal_q: np.ndarray, policies: np.ndarray) -> Losses:
    """Norms of q* − q_π for policies [N, S] of one MDP."""
    first, place = distinct_rows(policies)
    differences = _direct if mdp.states <= DIRECT else _matrix_free
    found = _norms(mdp, differences(mdp, optimal_q, policies[first]))
    return Losses(found.l1[place], found.sup[place])


def stochastic_losses(
    mdp: FiniteMDP, optimal_q: np.ndarray, policies: np.ndarray, tau: float
) -> Losses:
    """Norms of q^τ_* − q^τ_π for stochastic policies [N, S, A] of one MDP; given q^τ_*."""
    differences = _stochastic_direct if mdp.states <= DIRECT else _stochastic_matrix_free
    return _norms(mdp, differences(mdp, optimal_q, policies, tau))


def _norms(mdp: FiniteMDP, differences: Iterator[np.ndarray]) -> Losses:
    absent = np.isneginf(mdp.rewards)
    share = (~absent).mean()  # of the actions that are there, over which the norm is the mean
    norms = []
    for difference in differences:
        if share < 1:
            difference = np.where(absent, 0.0, difference)
        norms.append((weighted_norm(difference) / share, weighted_norm(difference, np.inf)))
    return Losses(*(np.concatenate(column) for column in zip(*norms)))


def _direct(mdp: FiniteMDP, optimal_q: np.ndarray, policies: np.ndarray) -> Iterator[np.ndarray]:
    """q* − q_π, [n, S, A], some policies at a time, by linear systems.

    They are solved for the difference itself, (I − γ P_π)(v* − v_π) = v* − q*(·, π), so that the
    loss of a nearly optimal policy does not drown in the rounding of two large numbers. Few systems
    at a time, in one buffer: they stay in the cache. Systems and products are those of one policy
    each: BLAS chooses a product's kernel by its shape, so one product for all of them would round
    by how many they are.
    """
    discounted = mdp.discount * mdp.dense().reshape(-1, mdp.states)  # γ P, a row per (s, a)
    minus = -discounted
    every = np.arange(mdp.states)
    gaps = (optimal_q.max(1, keepdims=True) - optimal_q).reshape(-1)
    rows = every * mdp.actions + policies  # [N, S]: which row of γ P each state follows
    step = max(1, _SYSTEMS // mdp.states**2)
    buffer = np.empty((min(step, len(rows)), mdp.states, mdp.states))
    for begin in range(0, len(rows), step):
        some = rows[begin : begin + step]
        systems = np.take(minus, some, 0, out=buffer[: len(some)], mode="clip")
        systems[:, every, every] += 1
        difference = np.linalg.solve(systems, gaps[some][..., None])
        yield (discounted @ difference).reshape(-1, mdp.states, mdp.actions)


def _stochastic_direct(
    mdp: FiniteMDP, optimal_q: np.ndarray, policies: np.ndarray, tau: float
) -> Iterator[np.ndarray]:
    """q^τ_* − q^τ_π, [n, S, A], as `_direct`: (I − γ P_π)(v_* − v_π) = v_* − ⟨π, q_*⟩ − τ H(π).

    The right side is ⟨π, v_* − q_* + τ ln π⟩ ≥ 0, that is τ KL(π ‖ π^τ_*).
    """
    kernel = mdp.discount * mdp.dense()
    gaps = optimal_q.max(1, keepdims=True) - optimal_q
    if tau > 0:
        gaps = gaps + tau * np.log(np.exp(-gaps / tau).sum(1, keepdims=True))
    identity, flat = np.eye(mdp.states), kernel.reshape(-1, mdp.states)
    step = max(1, _SYSTEMS // mdp.states**2)
    for begin in range(0, len(policies), step):
        pi = policies[begin : begin + step]
        lost = np.where(pi > 0, gaps, 0.0)
        if tau > 0:
            lost += tau * np.log(pi, out=np.zeros_like(pi), where=pi > 0)
        moves = np.einsum("nsa,sat->nst", pi, kernel)
        right = (pi * lost).sum(-1)[..., None]
        difference = np.linalg.solve(identity - moves, right)
        yield (flat @ difference).reshape(-1, mdp.states, mdp.actions)


def _stochastic_matrix_free(
    mdp: FiniteMDP, optimal_q: np.ndarray, policies: np.ndarray, tau: float
) -> Iterator[np.ndarray]:
    with np.errstate(invalid="ignore"):
        for pi in policies:
            yield (optimal_q - stochastic_policy_value(mdp, pi, tau, 1e-10)[1])[None]


def _matrix_free(
    mdp: FiniteMDP, optimal_q: np.ndarray, policies: np.ndarray
) -> Iterator[np.ndarray]:
    """q* − q_π, [1, S, A], one policy at a time, for MDPs too large for linear systems."""
    with np.errstate(invalid="ignore"):  # −inf − (−inf) where there is no action
        for policy in policies:
            yield (optimal_q - policy_values(mdp, policy))[None]


def batch_losses(
    mdps: FiniteMDP,
    optimal_q: np.ndarray,
    policies: np.ndarray,
    pool: ThreadPoolExecutor,
    tau: float | None = None,
) -> Losses:
    """Norms for policies [..., M, S] of a batch of M MDPs, [..., M]; MDPs in parallel.

    With a τ they are stochastic, [..., M, S, A]. The linear solver releases the interpreter's lock,
    so threads are enough.
    """
    axes = 2 if tau is None else 3
    shape = policies.shape[: 1 - axes]
    rows = policies.reshape(-1, *policies.shape[-axes:])

    def one(m: int) -> Losses:
        if tau is None:
            return policy_losses(mdps[m], optimal_q[m], rows[:, m])
        return stochastic_losses(mdps[m], optimal_q[m], rows[:, m], tau)

    each = list(pool.map(one, range(rows.shape[1])))
    return Losses(
        np.stack([x.l1 for x in each], -1).reshape(shape),
        np.stack([x.sup for x in each], -1).reshape(shape),
    )
