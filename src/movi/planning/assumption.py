"""The paper's check of Assumption 1: does E[P_{j+l:j+1} ε_j | F_{j−1}] vanish? (Section 7.1)

Given a Garnet, MoVI runs to iteration j − 1. From there it is restarted N times with fresh samples:
restart n makes its own error ε_{j,n} in iteration j and its own policies π_{j+1}, π_{j+2}, … after
it. The estimate is ε̄_{l,N} = max_{s,a} |1/N Σ_{n≤N} P_{j+l:j+1,n} ε_{j,n}(s, a)|.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from movi.errors import UserError, check_seed
from movi.mdp.model import FiniteMDP
from movi.mdp.operators import Union, union
from movi.planning.engine import Scheme, greedy, member_keys, start, thresholds
from movi.planning.errors import applied, sampled_iteration
from movi.planning.schemes import scheme
from movi.progress import bar

Array = Any


def assumption_check(
    mdps: FiniteMDP,
    *,
    iteration: int = 10,
    lengths: Sequence[int] = (0, 1, 2, 5, 10),
    restarts: int = 200,
    seed: int = 0,
    batch: int = 25,
    progress: bool = False,
) -> np.ndarray:
    """ε̄_{l,N} for every l of ``lengths``, N = 1..restarts and MDP, [L, N, M].

    One set of restarts gives all N and all l: the products are l matrix-vector products, each one
    more than the last, and the estimates are running means. ``batch`` MDPs are done at a time; it
    does not change the result.
    """
    if mdps.batch is None:
        raise UserError("mdps: a single MDP, expected a batch such as movi.garnet(count=100)")
    for name, value in (("iteration", iteration), ("restarts", restarts), ("batch", batch)):
        if value < 1:
            raise UserError(f"{name}: {value}, expected at least 1")
    if not lengths or min(lengths) < 0:
        raise UserError(f"lengths: {tuple(lengths)}, expected integers of at least 0")
    check_seed(seed)
    movi = scheme("movi")
    results = []
    with jax.enable_x64(True), bar("MDPs", mdps.batch, show=progress) as advance:
        # The history has keys of its own, so that no restart repeats its samples.
        past = member_keys(seed, mdps.batch)
        future = member_keys(seed + 1, mdps.batch, restarts)
        for begin in range(0, mdps.batch, batch):
            some = mdps[begin : begin + batch]
            members = slice(begin * restarts, (begin + len(some)) * restarts)
            one, many = union(some), union(some, restarts)
            limits = thresholds(some)
            tables = _history(
                one, _flat(limits, 1), past[begin : begin + batch], scheme=movi, last=iteration - 1
            )
            tables = {
                name: jnp.repeat(
                    table.reshape(1, len(some), some.states, some.actions), restarts, 1
                ).reshape(1, -1, some.actions)
                for name, table in tables.items()
            }
            products = _products(
                tables,
                many,
                _flat(limits, restarts),
                future[members],
                scheme=movi,
                iteration=iteration,
                longest=max(lengths),
            )
            shape = (len(some), restarts, some.states * some.actions)
            for_lengths = np.asarray(products)[list(lengths)].reshape(len(lengths), *shape)
            means = np.cumsum(for_lengths, 2) / np.arange(1, restarts + 1)[:, None]
            results.append(np.abs(means).max(-1))
            advance(len(some))
    return np.moveaxis(np.concatenate(results, 1), 1, 2)


def _flat(limits: np.ndarray, copies: int) -> np.ndarray:
    return np.repeat(limits, copies, 0).reshape(-1, *limits.shape[2:])


@partial(jax.jit, static_argnames=("scheme", "last"))
def _history(mdp: Union, limits: Array, keys: Array, *, scheme: Scheme, last: int) -> Any:
    """MoVI's tables after iterations 1..last."""

    def iteration(k: Array, tables: Any) -> Any:
        return sampled_iteration(scheme, tables, mdp, limits, keys, k, 1)[0]

    tables = start(scheme.algorithm, *mdp.rewards.shape)
    return jax.lax.fori_loop(1, last + 1, iteration, tables)


@partial(jax.jit, static_argnames=("scheme", "iteration", "longest"))
def _products(
    tables: Any,
    mdp: Union,
    limits: Array,
    keys: Array,
    *,
    scheme: Scheme,
    iteration: int,
    longest: int,
) -> Array:
    """P_{j+l:j+1} ε_j for l = 0..longest, [longest + 1, N, A]."""
    tables, error = sampled_iteration(scheme, tables, mdp, limits, keys, iteration, 1)

    def longer(carry: Any, k: Array) -> Any:
        tables, product = carry
        product = applied(mdp, greedy(scheme.algorithm, tables), product)  # π_k, of iteration k
        tables, _ = sampled_iteration(scheme, tables, mdp, limits, keys, k, 1)
        return (tables, product), product

    steps = iteration + jnp.arange(1, longest + 1)
    _, products = jax.lax.scan(longer, (tables, error), steps)
    return jnp.concatenate([error[None], products])
