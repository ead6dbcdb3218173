"""The theory of Section 4 on a run: its errors and their sums, its true losses, and the bounds.

**Errors.** The error of iteration k is ε_k = (the sampled update) − (the exact update from the same
tables): T̂_{π_k} q_{k−1} − T_{π_k} q_{k−1} for AVI and MoVI. SQL and DPP are analysed as recursions
on ψ: for DPP the table is ψ_k, for SQL ψ_k = k q_k, so that its ε_k is k times the error of the
table.

**Losses.** ‖q* − q_{π_k}‖ at every iteration, exactly: each distinct policy is evaluated once.
Stochastic policies are judged in the MDP with τ times their entropy: ‖q^τ_* − q^τ_{π_k}‖.

**Bounds** on q* − q_{π_n}, each a function of a run and citing its statement. n = k + 1 counts
iterations. MoVI's statements bound the policy π_n *used in* iteration n, with the errors ε_1..ε_n.
AVI's bounds π_n with ε_1..ε_{n−1}. The statement for SQL and DPP, whose π_n is greedy with respect
to the table *after* n iterations, bounds our π_{n+1} with ε_1..ε_n. They take a batch of M MDPs and
return [K, M] (component-wise ones [K, M, S, A]), row n − 1 being iteration n. Each refuses a run of
a scheme or of a β_k that its statement is not proven for; ``unproven=True`` computes the formula
all the same.
"""

import functools
import operator
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from momentum_rl.core.schedules import Mean
from momentum_rl.errors import UserError, check_count, check_seed
from momentum_rl.mdp.checks import check_shape, require_batch
from momentum_rl.mdp.model import FiniteMDP
from momentum_rl.mdp.operators import DeviceMDP, expected, on_device, select
from momentum_rl.mdp.solve.exact import policy_values, resolvent, weighted_norm
from momentum_rl.mdp.solve.methods import DIRECT
from momentum_rl.mdp.solve.regularised import certain_optimum, stochastic_policy_value
from momentum_rl.planning.disturbances import (
    Disturbances,
    Given,
    check_average,
    disturbances,
    disturbed_start,
    disturbed_update,
)
from momentum_rl.planning.engine import Sampler, Scheme, member_keys, policy, sampler, start, update
from momentum_rl.plumbing.sizes import require

_SYSTEMS = 1 << 17  # entries of the linear systems in memory at a time, per thread


# Errors -------------------------------------------------------------------------------------------


class Trace(NamedTuple):
    """Everything the bounds need of a sampled run of K iterations on M MDPs, from zero."""

    scheme: Scheme
    """The scheme that ran."""
    policies: np.ndarray
    """π_1, …, π_{K+1}, [K + 1, M, S], or [K + 1, M, S, A] where they are soft: π_k is used in
    iteration k."""
    q: np.ndarray
    """q_0, …, q_K (ψ for DPP), [K + 1, M, S, A]."""
    errors: np.ndarray
    """ε_1, …, ε_K, [K, M, S, A]: of sampling, and those that were given."""
    average_errors: np.ndarray | None = None
    """η_0, …, η_K, [K + 1, M, S, A]; None where the average is exact."""


def trace(
    mdps: FiniteMDP,
    scheme: Scheme,
    iterations: int,
    *,
    seed: int = 0,
    samples: int = 1,
    errors: Given = None,
    average_errors: Given = None,
) -> Trace:
    """Run a scheme on a batch and keep every policy, table and error.

    ``errors`` and ``average_errors`` are ε_k and η_k beside those of sampling; ``samples = 0`` has
    no others (`momentum_rl.planning.disturbances`). Memory: 2 K M S A numbers, 3 with errors of the
    average. The samples are those of `compare_schemes` with the same seed.
    """
    members = require_batch(mdps)
    mdps.require_all_actions()
    check_count("iterations", iterations)
    check_count("samples", samples, 0)
    check_seed(seed)
    check_average((scheme,), average_errors)
    cells = members * mdps.states * mdps.actions
    require(f"{samples:,} samples of each (s, a)", memory=16 * samples * cells)
    require(f"{iterations:,} iterations", memory=64 * iterations * cells)
    with jax.enable_x64(True):
        policies, q, made, averaged = _trace(
            sampler(mdps, member_keys(seed, members)),
            disturbances(mdps, iterations, errors, average_errors),
            scheme=scheme,
            iterations=iterations,
            samples=samples,
        )
        shape = (-1, members, mdps.states, mdps.actions)
        return Trace(
            scheme,
            np.asarray(policies).reshape(-1, *shape[1:3], *policies.shape[2:]),
            np.asarray(q).reshape(shape),
            np.asarray(made).reshape(shape),
            None if averaged is None else np.asarray(averaged).reshape(shape),
        )


@functools.partial(jax.jit, static_argnames=("scheme", "iterations", "samples"))
def _trace(
    mdps: Sampler, errors: Disturbances, *, scheme: Scheme, iterations: int, samples: int
) -> tuple[Array, Array, Array, Array | None]:
    algorithm = scheme.algorithm
    name = algorithm.value_table
    tables, drawn = disturbed_start(scheme, start(algorithm, *mdps.mdp.rewards.shape), mdps, errors)

    def iteration(carry: Any, k: Array) -> Any:
        tables, drawn = carry
        used, beta = policy(algorithm, tables), scheme.rate(k)
        done, drawn = disturbed_update(
            scheme, tables, mdps.read(k, samples), mdps, k, errors, drawn
        )
        exact = update(algorithm, tables, mdps.read(k, 0), mdps.mdp, beta)
        error = done.new[name] - exact.new[name]
        error = error / (1 - beta) if algorithm.tabular.in_psi else error
        averaged = None if errors.average is None else drawn[1]
        return (done.tables, drawn), (used, done.tables[name][0], error, averaged)

    (last, _), (policies, q, made, averaged) = jax.lax.scan(
        iteration, (tables, drawn), jnp.arange(1, iterations + 1)
    )
    policies = jnp.concatenate([policies, policy(algorithm, last)[None]])
    q = jnp.concatenate([tables[name][:1], q])
    if averaged is not None and drawn[1] is not None:
        averaged = jnp.concatenate([drawn[1][None], averaged])
    return policies, q, made, averaged


def applied(mdp: DeviceMDP, policy: Array, x: Array) -> Array:
    """P_π x for x [N, A] or [N, A, J]: one matrix-vector product (J of them), no matrix."""
    if x.ndim == 2:
        return expected(mdp.successors, mdp.probabilities, select(x, policy))
    chosen = select(x, policy)  # [N, J]
    branches = range(mdp.successors.shape[-1])
    terms = (mdp.probabilities[..., b, None] * chosen[mdp.successors[..., b]] for b in branches)
    return functools.reduce(operator.add, terms)


def cumulative(errors: np.ndarray) -> np.ndarray:
    """E_k = −Σ_{j ≤ k} ε_j, for k = 1..K (first axis)."""
    return -np.cumsum(errors, 0)


class Residual(NamedTuple):
    """How far T_{π_{k+1}} h_k may be from h_k: lower ≤ T_{π_{k+1}} h_k − h_k ≤ upper.

    Rows k = 0..K − 1, that is iterations n = k + 1. Each side is a sum of three vectors, whose sup
    norms [K, M] are named.
    """

    upper: np.ndarray
    """U_k − h_k, [K, M, S, A]."""
    lower: np.ndarray
    """L_k − h_k, [K, M, S, A]."""
    above: Mapping[str, np.ndarray]
    """Of the upper side: the drift of q, the noise of q, the errors of h."""
    below: Mapping[str, np.ndarray]
    """Of the lower side: what is left of the start, the noise of q, the errors of h."""

    def supremum(self, mdps: FiniteMDP) -> np.ndarray:
        """‖q* − q_{π_n}‖∞ ≤ this, [K, M]: all norms, over 1 − γ."""
        return sum([*self.above.values(), *self.below.values()]) / (1 - mdps.discount)


def residual(mdps: FiniteMDP, run: Trace, *, unproven: bool = False) -> Residual:
    """The two-sided bound behind Theorem 1, for any β_k and for errors η_k of the average.

    With P_k for P_{π_k}, P_0 = P_1, β_0 = 0 and ε_0 = 0, and for k ≥ 1,

        X_0 = T_{π_1} q_0 − q_0,    R_k = γ P_k X_{k−1} − (I − γ P_k) ε_k,
        X_k = R_k − γ/(1 − β_k) (P_{k+1} − P_k) η_k,

        U_k − h_k = β_k (U_{k−1} − h_{k−1}) + (1 − β_k) C_k − (I − γ P_{k+1}) η_k,
        L_k − h_k = β_k (L_{k−1} − h_{k−1}) + (1 − β_k) R_k − (I − γ P_k) η_k,

    where R_0 = X_0 and C_k = T_{π_{k+1}} q_k − q_k. All of it is linear in the start X_0, in ε and
    in η, so each of them has a recursion of its own; `docs/theory.md` has the proof.
    """
    _check_proven("Theorem 1", run, ("movi",), unproven, any_beta=True)
    eta = np.zeros_like(run.q) if run.average_errors is None else run.average_errors
    rows, cells = len(run.errors), (-1, mdps.actions)
    policies, errors = _flat(run)
    q, eta = (x[:rows].reshape(rows, *cells) for x in (run.q, eta))
    with jax.enable_x64(True):
        upper, lower, norms = _residual(
            on_device(mdps), policies, q, errors, eta, _rates(run), members=len(mdps)
        )
    names = ("drift", "noise", "average"), ("start", "noise", "average")
    above, below = (
        dict(zip(some, column)) for some, column in zip(names, np.moveaxis(np.asarray(norms), 0, 2))
    )
    shape = run.errors.shape
    return Residual(
        np.asarray(upper).reshape(shape), np.asarray(lower).reshape(shape), above, below
    )


def _rates(run: Trace) -> np.ndarray:  # β_0 = 0, β_1, …, β_{K−1}
    return np.array([0.0, *(float(run.scheme.rate(k)) for k in range(1, len(run.errors)))])


@functools.partial(jax.jit, static_argnames="members")
def _residual(
    mdp: DeviceMDP,
    policies: Array,
    q: Array,
    errors: Array,
    eta: Array,
    rates: Array,
    *,
    members: int,
) -> tuple[Array, Array, Array]:
    def moved(policy: Array, *vectors: Array) -> list[Array]:  # γ P_π of each
        x = mdp.discount[..., None] * applied(mdp, policy, jnp.stack(vectors, -1))
        return [x[..., i] for i in range(len(vectors))]

    def iteration(carry: Any, now: Any) -> Any:
        before, error_before, xs, aboves, belows = carry  # π_k, ε_k, and sums by their source
        policy, error, q, eta, beta, first = now  # π_{k+1}, ε_{k+1}, q_k, η_k
        q_moved, eta_moved = moved(policy, q, eta)
        change = mdp.rewards + q_moved - q  # T_{π_{k+1}} q_k − q_k
        *xs, error_moved, eta_before = moved(before, *xs, error_before, eta)
        start = xs[0] + jnp.where(first, change, 0.0)
        noise = xs[1] - error_before + error_moved
        parts = start, noise, xs[2]  # R_k
        belows = [beta * sum_ + (1 - beta) * part for sum_, part in zip(belows, parts)]
        belows[2] += eta_before - eta
        xs = start, noise, xs[2] - (eta_moved - eta_before) / (1 - beta)  # X_k
        parts = (
            change + error,
            -error,
            jnp.zeros_like(error),
        )  # T q_k − q_k = q_{k+1} − q_k − ε_{k+1}
        aboves = [beta * sum_ + (1 - beta) * part for sum_, part in zip(aboves, parts)]
        aboves[2] += eta_moved - eta
        norms = jnp.abs(jnp.stack([*aboves, *belows])).reshape(2, 3, members, -1).max(-1)
        carry = policy, error, list(xs), aboves, belows
        return carry, (sum(aboves), sum(belows), norms)

    zero = jnp.zeros_like(mdp.rewards)
    zeros = [zero, zero, zero]
    inputs = policies, errors, q, eta, rates, jnp.arange(len(errors)) == 0
    return jax.lax.scan(iteration, (policies[0], zero, zeros, zeros, zeros), inputs)[1]


class WeightedNorms(NamedTuple):
    """Σ_{j<k} γ^j ‖E'_{k,j}‖ for n = 1..K with k = n − 1, [K, M]."""

    lp: np.ndarray
    """The sum in ‖·‖_{p,ν}."""
    sup: np.ndarray
    """The sum in ‖·‖∞."""
    p: float = 1.0
    """p of ``lp``; 1 in the paper."""


def _aged(mdp: DeviceMDP, aged: Array, policy: Array, error: Array) -> Array:
    """P_{i+j:i+1} x_i by age j = t − i, [N, A, J], moved on to t: x_t enters, the oldest leaves."""
    fresh = error - mdp.discount * applied(mdp, policy, error)
    return jnp.concatenate([fresh[..., None], applied(mdp, policy, aged)[..., :-1]], -1)


def _flat(run: Trace) -> tuple[np.ndarray, np.ndarray]:
    """π_1..π_K and ε_1..ε_K over the states of the union: [K, N] and [K, N, A]."""
    iterations, actions = len(run.errors), run.errors.shape[-1]
    return (run.policies[:-1].reshape(iterations, -1), run.errors.reshape(iterations, -1, actions))


def weighted_error_norms(
    mdps: FiniteMDP,
    run: Trace,
    *,
    p: float = 1.0,
    nu: np.ndarray | None = None,
    precision: float = 1e-8,
) -> WeightedNorms:
    """The sums of norms of the weighted errors E'_{k,j}, at every k, in ‖·‖_{p,ν} and ‖·‖∞.

    With x_i = (I − γ P_{π_i}) ε_i, E'_{k,j} loses P_{i+j:i+1} x_i, i = k − j, at each k: all ages j
    move on by one product with P_{π_k}. That is J products an iteration and 2 J vectors, where J
    is the smallest age with γ^J ≤ ``precision`` (or K): time K J S A B, memory 2 J S A, per MDP.
    For older ages the norm is bounded by Σ_i ‖x_i‖∞, whose share, (γ^J − γ^k)/(1 − γ) of it, is
    *added*: the result is an upper bound, above the exact sum by that share only. MDPs are done
    side by side, one thread per core: none of these products is large enough to be split itself.
    """
    if not 1 <= p < np.inf:
        raise UserError(f"p: {p}, expected a number of at least 1 (the sup norm is always given)")
    iterations, members = run.errors.shape[:2]
    discount = float(np.max(mdps.discount))
    if discount == 0:
        ages = 1
    else:
        ages = min(iterations, int(np.ceil(np.log(precision) / np.log(discount))))
    weights = np.full(run.errors.shape[2:], 1 / np.prod(run.errors.shape[2:])) if nu is None else nu

    def some(which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        begin, end = int(which[0]), int(which[-1]) + 1
        part = run._replace(policies=run.policies[:, begin:end], errors=run.errors[:, begin:end])
        with jax.enable_x64(True):  # a setting of the thread
            lp, sup = _weighted_error_norms(
                on_device(mdps[begin:end]),
                *_flat(part),
                np.asarray(weights),
                p=float(p),
                ages=max(1, ages),
                members=end - begin,
            )
            return np.asarray(lp), np.asarray(sup)

    threads = min(members, os.cpu_count() or 1)
    with ThreadPoolExecutor(threads) as pool:
        parts = list(pool.map(some, np.array_split(np.arange(members), threads)))
    lp, sup = (np.concatenate(column, 1) for column in zip(*parts))
    return WeightedNorms(lp, sup, float(p))


@functools.partial(jax.jit, static_argnames=("p", "ages", "members"))
def _weighted_error_norms(
    mdp: DeviceMDP,
    policies: Array,
    errors: Array,
    weights: Array,
    *,
    p: float,
    ages: int,
    members: int,
) -> tuple[Array, Array]:
    discount = jnp.broadcast_to(mdp.discount[:, 0], mdp.rewards.shape[:1])
    gamma = discount.reshape(members, -1)[:, 0]
    powers = gamma[:, None] ** jnp.arange(ages)  # [M, J]

    def per_member(x: Array) -> Array:
        return x.reshape(members, *weights.shape, *x.shape[2:])

    def iteration(carry: Any, now: Any) -> Any:
        aged, sums, sizes = carry
        policy, error, k = now
        tail = jnp.maximum(gamma**ages - gamma**k, 0) / (1 - gamma)  # of the ages J ≤ j < k
        magnitudes = jnp.abs(per_member(sums))
        sup = jnp.sum(powers * jnp.max(magnitudes, (1, 2)), -1)
        means = jnp.einsum("sa,msaj->mj", weights, magnitudes if p == 1 else magnitudes**p)
        lp = jnp.sum(powers * (means if p == 1 else means ** (1 / p)), -1)
        aged = _aged(mdp, aged, policy, error)
        more = sizes + jnp.max(jnp.abs(per_member(aged[..., 0])), (1, 2))
        return (aged, sums - aged, more), (lp + tail * sizes, sup + tail * sizes)

    zero = jnp.zeros((*mdp.rewards.shape, ages))
    first = (zero, zero, jnp.zeros(members))
    return jax.lax.scan(iteration, first, (policies, errors, jnp.arange(len(errors))))[1]


# Losses -------------------------------------------------------------------------------------------


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
    losses = _norms(mdp, differences(mdp, optimal_q, policies[first]))
    return Losses(losses.l1[place], losses.sup[place])


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


# Bounds -------------------------------------------------------------------------------------------


def largest_value(mdps: FiniteMDP) -> np.ndarray:
    """q_max = r_max / (1 − γ), per MDP."""
    return np.abs(mdps.rewards).max((-2, -1)) / (1 - mdps.discount)


def _check_proven(
    statement: str, run: Trace, schemes: Sequence[str], unproven: bool, any_beta: bool = False
) -> None:
    """Refuse a run that a statement is not about."""
    if unproven:
        return
    algorithm, beta = run.scheme
    name, rate = algorithm.name, f" with β_k = {beta}" if algorithm.uses_beta else ""
    if run.average_errors is not None:
        rate += " with errors of its average"
    plain = run.average_errors is None and (not algorithm.uses_beta or beta == Mean())
    if name not in schemes or not (plain or any_beta):
        expected = " or ".join(schemes)
        if "movi" in schemes and not any_beta:
            expected += " with β_k = k/(k+1) and an exact average"
        raise UserError(
            f"run: {statement} is not proven for {name}{rate}, expected {expected}; "
            "unproven=True computes it all the same"
        )


def theorem_1(
    mdps: FiniteMDP, run: Trace, optimal: np.ndarray | None = None, *, unproven: bool = False
) -> np.ndarray:
    """Theorem 1 (th:bound): q* − q_{π_n} ≤ this, component by component, [K, M, S, A].

    (I − γP_{π*})⁻¹ (U_k − h_k) − (I − γP_{π_n})⁻¹ (L_k − h_k), k = n − 1, with the vectors of
    :func:`residual`. For MoVI with any β_k < 1, and with errors of its average. With
    β_k = k/(k+1) and no such errors it is the paper's statement:

    1/n [(I − γP_{π*})⁻¹ (E_n + q_n − q_0)
         − (I − γP_{π_n})⁻¹ (Σ_{j<k} γ^j E'_{k,j} + Σ_{j≤k} γ^j P_{j:1}(T_{π_1} q_0 − q_0))]

    ``optimal`` are optimal policies [M, S], if known already.
    """
    sides = residual(mdps, run, unproven=unproven)
    if optimal is None:
        optimal = certain_optimum(mdps).policy
    result = np.empty(run.errors.shape)
    for m, mdp in enumerate(mdps):
        best = np.broadcast_to(optimal[m], run.policies[:-1, m].shape)
        result[:, m] = resolvent(mdp, best, sides.upper[:, m])
        result[:, m] -= resolvent(mdp, run.policies[:-1, m], sides.lower[:, m])
    return result


def beside_theorem_1(mdps: FiniteMDP, run: Trace) -> dict[str, np.ndarray]:
    """Columns over n = 1..K, means over the MDPs: β, the loss, Theorem 1 and what it is made of."""
    optimal, sides = certain_optimum(mdps), residual(mdps, run)
    with ThreadPoolExecutor() as pool:
        loss = batch_losses(mdps, optimal.q, run.policies[:-1], pool).sup
    columns = {
        "loss": loss,
        "theorem_1": theorem_1(mdps, run, optimal.policy).max((-2, -1)),
        "supremum": sides.supremum(mdps),
        **{f"{name}_above": norms for name, norms in sides.above.items()},
        **{f"{name}_below": norms for name, norms in sides.below.items()},
    }
    return {
        "iteration": np.arange(1, len(run.errors) + 1),
        "beta": _rates(run),
        **{name: column.mean(-1) for name, column in columns.items()},
    }


def corollary_1(
    mdps: FiniteMDP,
    run: Trace,
    norms: WeightedNorms,
    concentrability: Any,
    nu: Any = None,
    *,
    unproven: bool = False,
) -> np.ndarray:
    """Corollary 1 (th:bound-1mu): ‖q* − q_{π_n}‖_{p,μ} ≤ this, from q_0 = 0, for p of ``norms``.

    C^{1/p} / (n (1 − γ)) (‖E_n‖_{p,ν} + Σ_{j<k} γ^j ‖E'_{k,j}‖_{p,ν} + 2 q_max), with C from
    :func:`concentrability` of the same μ and ν (uniform ν by default). The paper states p = 1 and
    says that the ℓ_p form is derived similarly: with D = (1 − γ)(I − γP_π)⁻¹, whose rows are
    distributions, Jensen gives ‖D f‖_{p,μ}^p ≤ μ D |f|^p = d_{π,μ} |f|^p ≤ C ‖f‖_{p,ν}^p, and
    Minkowski adds up the terms. As C ≥ 1 it may stand before 2 q_max as well, as in the paper.
    """
    _check_proven("Corollary 1", run, ("movi",), unproven)
    errors = weighted_norm(cumulative(run.errors), norms.p, nu)
    return np.asarray(concentrability) ** (1 / norms.p) * _momentum(mdps, errors + norms.lp)


def supremum(
    mdps: FiniteMDP, run: Trace, norms: WeightedNorms, *, unproven: bool = False
) -> np.ndarray:
    """The sup-norm bound (eq:supremum): ‖q* − q_{π_n}‖∞ ≤ this, from q_0 = 0."""
    _check_proven("the sup-norm bound", run, ("movi",), unproven)
    return _momentum(mdps, weighted_norm(cumulative(run.errors), np.inf) + norms.sup)


def _momentum(mdps: FiniteMDP, errors: np.ndarray) -> np.ndarray:
    n = np.arange(1, len(errors) + 1)[:, None]
    return (errors + 2 * largest_value(mdps)) / (n * (1 - mdps.discount))


def approximate_value_iteration(
    mdps: FiniteMDP, run: Trace, *, unproven: bool = False
) -> np.ndarray:
    """AVI's bound (eq:vi-bound): ‖q* − q_{π_n}‖∞ ≤ 2γⁿ q_max + 2γ max_{j<n} ‖ε_j‖∞ / (1 − γ)²."""
    _check_proven("the bound of AVI", run, ("avi",), unproven)
    sizes = weighted_norm(run.errors, np.inf)
    largest = np.maximum.accumulate(np.concatenate([np.zeros_like(sizes[:1]), sizes[:-1]]))
    n, discount = np.arange(1, len(sizes) + 1)[:, None], mdps.discount
    return 2 * discount**n * largest_value(mdps) + 2 * discount * largest / (1 - discount) ** 2


def speedy_and_policy_programming(
    mdps: FiniteMDP, run: Trace, *, unproven: bool = False
) -> np.ndarray:
    """The bound of SQL and DPP (Section 6): ‖q* − q_{π_{n+1}}‖∞ ≤ this.

    2γ / (n (1 − γ)) (Σ_{j≤n} γ^{n−j} ‖E_j‖∞ + 8γ q_max / (1 − γ)).

    Read for the policy *used in* iteration n it is false: without errors and for small γ, an
    arbitrary first policy loses 2γ q_max, the bound is 16γ² q_max / (1 − γ)²; `docs/theory.md`.
    """
    _check_proven("the bound of SQL and DPP", run, ("sql", "dpp"), unproven)
    sizes = weighted_norm(cumulative(run.errors), np.inf)
    discounted, total = np.empty_like(sizes), np.zeros(sizes.shape[1])
    for j, size in enumerate(sizes):
        total = mdps.discount * total + size
        discounted[j] = total
    n, discount = np.arange(1, len(sizes) + 1)[:, None], mdps.discount
    constant = 8 * discount * largest_value(mdps) / (1 - discount)
    return 2 * discount / (n * (1 - discount)) * (discounted + constant)


def proposition_1(mdps: FiniteMDP, iterations: int, delta: float = 0.1) -> np.ndarray:
    """Proposition 1 (th:sc): under the assumption, ‖q* − q_{π_n}‖∞ ≤ this w.p. ≥ 1 − δ, [K, M].

    2 r_max / (1 − γ)² [1/n + 3/(1 − γ) √(2 ln(4|S||A|/δ) / n)]; a statement for each n, not for all
    n at once.
    """
    n, gap = np.arange(1, iterations + 1)[:, None], 1 - mdps.discount
    r_max = largest_value(mdps) * gap
    deviation = np.sqrt(2 * np.log(4 * mdps.states * mdps.actions / delta) / n)
    return 2 * r_max / gap**2 * (1 / n + 3 / gap * deviation)


def concentrability(mdp: FiniteMDP, mu: np.ndarray, nu: np.ndarray) -> float:
    """C = max_π ‖d_{π,μ} / ν‖∞ of one MDP, exactly; μ and ν are [S, A].

    For each (s, a), max_π d_{π,μ}(s, a) is the optimal value, from μ, of a visit to (s, a):
    S·A problems with the reward there, by policy iteration on all of them at once. Beyond
    ``DIRECT`` states :func:`concentrability_bound` is the stated upper bound to use instead.
    """
    states, actions, discount = mdp.states, mdp.actions, float(mdp.discount)
    for name, distribution in (("mu", mu), ("nu", nu)):
        check_shape(name, np.asarray(distribution), (states, actions))
    if states > DIRECT:
        return concentrability_bound(mdp, mu, nu)
    kernel, every = mdp.dense(), np.arange(states)
    largest = 0.0
    for a in range(actions):
        rewards = np.zeros((states, states, actions))  # problem s: a reward of one at (s, a)
        rewards[every, every, a] = 1
        policies = np.zeros((states, states), np.int64)
        policies[every, every] = a
        problem = every[:, None]
        while True:
            systems = np.eye(states) - discount * kernel[every, policies]
            earned = rewards[problem, every, policies][..., None]
            v = np.linalg.solve(systems, earned)[..., 0]
            q = rewards + discount * (v @ kernel.reshape(-1, states).T).reshape(rewards.shape)
            better = q.max(-1) > q[problem, every, policies] + 1e-12
            if not better.any():
                break
            policies = np.where(better, q.argmax(-1), policies)
        visits = (1 - discount) * (mu * q).sum((1, 2))
        largest = max(largest, float((visits / nu[:, a]).max()))
    return largest


def concentrability_bound(mdp: FiniteMDP, mu: np.ndarray, nu: np.ndarray) -> float:
    """An upper bound on C: d_{π,μ}(s, a) ≤ (1 − γ) μ(s, a) + γ max P(s|·,·), and ≤ 1."""
    flat = mdp.successors.reshape(-1, mdp.branching)
    rows = np.repeat(np.arange(len(flat)), mdp.branching)
    order = np.lexsort((flat.ravel(), rows))
    # A successor may be listed twice in a row: add those up before taking the maximum.
    keys = rows[order] * np.int64(mdp.states) + flat.ravel()[order]
    _, begins = np.unique(keys, return_index=True)
    sums = np.add.reduceat(mdp.probabilities.ravel()[order], begins)
    reach = np.zeros(mdp.states)
    np.maximum.at(reach, flat.ravel()[order][begins], sums)
    discount = float(mdp.discount)
    visits = np.minimum(1.0, (1 - discount) * mu + discount * reach[:, None])
    return float((visits / nu).max())
