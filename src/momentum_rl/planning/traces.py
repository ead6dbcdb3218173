"""The errors of a sampled run, exactly, and how the theory adds them up (Section 4).

The error of iteration k is ε_k = (the sampled update) − (the exact update from the same tables):
T̂_{π_k} q_{k−1} − T_{π_k} q_{k−1} for AVI and MoVI. SQL and DPP are analysed as recursions on ψ: for
DPP the table is ψ_k, for SQL ψ_k = k q_k, so that its ε_k is k times the error of the table.
"""

import functools
import operator
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from momentum_rl.errors import UserError, check_count, check_seed
from momentum_rl.mdp.checks import require_batch
from momentum_rl.mdp.model import FiniteMDP
from momentum_rl.mdp.operators import DeviceMDP, expected, on_device, select
from momentum_rl.planning.engine import Sampler, Scheme, member_keys, policy, sampler, start, update


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
    """ε_1, …, ε_K, [K, M, S, A]."""


def trace(
    mdps: FiniteMDP, scheme: Scheme, iterations: int, *, seed: int = 0, samples: int = 1
) -> Trace:
    """Run a scheme on a batch and keep every policy, table and error.

    Memory: 2 K M S A numbers. The samples are those of `compare_schemes` with the same seed.
    """
    members = require_batch(mdps)
    mdps.require_all_actions()
    check_count("iterations", iterations)
    check_seed(seed)
    with jax.enable_x64(True):
        policies, q, errors = _trace(
            sampler(mdps, member_keys(seed, members)),
            scheme=scheme,
            iterations=iterations,
            samples=samples,
        )
        shape = (members, mdps.states)
        return Trace(
            scheme,
            np.asarray(policies).reshape(-1, *shape, *policies.shape[2:]),
            np.asarray(q).reshape(-1, *shape, mdps.actions),
            np.asarray(errors).reshape(-1, *shape, mdps.actions),
        )


@functools.partial(jax.jit, static_argnames=("scheme", "iterations", "samples"))
def _trace(
    mdps: Sampler, *, scheme: Scheme, iterations: int, samples: int
) -> tuple[Array, Array, Array]:
    algorithm = scheme.algorithm
    first = start(algorithm, *mdps.mdp.rewards.shape)

    def iteration(tables: Any, k: Array) -> Any:
        used = policy(algorithm, tables)
        tables, error = sampled_iteration(scheme, tables, mdps, k, samples)
        return tables, (used, tables[algorithm.value_table][0], error)

    last, (policies, q, errors) = jax.lax.scan(iteration, first, jnp.arange(1, iterations + 1))
    policies = jnp.concatenate([policies, policy(algorithm, last)[None]])
    return policies, jnp.concatenate([first[algorithm.value_table][:1], q]), errors


def sampled_iteration(
    scheme: Scheme, tables: Any, mdps: Sampler, k: Array, samples: int = 1
) -> tuple[Any, Array]:
    """Iteration k on samples: the tables after it, and its error ε_k, [N, A]."""
    algorithm, beta = scheme.algorithm, scheme.rate(k)
    made, exact = (update(algorithm, tables, mdps.read(k, m), mdps.mdp, beta) for m in (samples, 0))
    error = made.new[algorithm.value_table] - exact.new[algorithm.value_table]
    return made.tables, error / (1 - beta) if algorithm.tabular.in_psi else error


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


class ErrorSums(NamedTuple):
    """What Theorem 1 and its norms need of a MoVI run, for n = 1..K with k = n − 1."""

    weighted: np.ndarray
    """Σ_{j<k} γ^j E'_{k,j}, [K, M, S, A]."""
    initial: np.ndarray
    """Σ_{j≤k} γ^j P_{j:1}(T_{π_1} q_0 − q_0), [K, M, S, A]."""


def error_sums(mdps: FiniteMDP, run: Trace) -> ErrorSums:
    """The two vectors of Theorem 1, by recursions of three matrix-vector products per iteration.

    Exchanging the sums, Σ_{j<k} γ^j E'_{k,j} = −Σ_{t≤k} y_t with
    y_t = γ P_{π_t} y_{t−1} + (I − γ P_{π_t}) ε_t: time K, memory for the results only.
    """
    with jax.enable_x64(True):
        weighted, initial = _error_sums(
            on_device(mdps), *_flat(run), run.q[0].reshape(-1, mdps.actions)
        )
        shape = run.errors.shape
        return ErrorSums(np.asarray(weighted).reshape(shape), np.asarray(initial).reshape(shape))


@jax.jit
def _error_sums(mdp: DeviceMDP, policies: Array, errors: Array, q0: Array) -> tuple[Array, Array]:
    def residual(policy: Array, q: Array) -> Array:  # T_π q − q
        return mdp.rewards + mdp.discount * applied(mdp, policy, q) - q

    def iteration(carry: Any, now: Any) -> Any:
        y, total, z, initial = carry
        policy, error = now
        given = total, initial  # those of k = n − 1, before this iteration's error
        y = mdp.discount * applied(mdp, policy, y) + error
        y = y - mdp.discount * applied(mdp, policy, error)
        z = mdp.discount * applied(mdp, policy, z)
        return (y, total - y, z, initial + z), given

    zero = jnp.zeros_like(q0)
    z0 = residual(policies[0], q0)
    return jax.lax.scan(iteration, (zero, zero, z0, z0), (policies, errors))[1]


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


def weighted_errors(mdps: FiniteMDP, run: Trace, k: int) -> np.ndarray:
    """E'_{k,j} for j = 0..k−1, [k, M, S, A]: k² matrix-vector products, 2 k vectors."""
    check_count("k", k, 1, len(run.errors))
    with jax.enable_x64(True):
        policies, errors = _flat(run)
        result = _weighted_errors(on_device(mdps), policies[:k], errors[:k], k=k)
        return np.moveaxis(np.asarray(result), -1, 0).reshape(k, *run.errors.shape[1:])


@functools.partial(jax.jit, static_argnames="k")
def _weighted_errors(mdp: DeviceMDP, policies: Array, errors: Array, *, k: int) -> Array:
    def iteration(carry: Any, now: Any) -> Any:
        aged, sums = carry
        policy, error = now
        aged = _aged(mdp, aged, policy, error)
        return (aged, sums - aged), None

    zero = jnp.zeros((*mdp.rewards.shape, k))
    return jax.lax.scan(iteration, (zero, zero), (policies, errors))[0][1]
