"""Runs of several schemes on many MDPs with common random numbers, compiled, in chunks."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from momentum_rl.mdp.model import FiniteMDP
from momentum_rl.mdp.operators import masked, table_jit
from momentum_rl.planning.engine import (
    Sampler,
    Scheme,
    check_affine,
    iterate,
    member_keys,
    policy,
    sampler,
    start,
)


class Chunk(NamedTuple):
    """Some consecutive iterations of a run."""

    first: int
    """The iteration k of the first row."""
    policies: tuple[Array, ...]
    """π_k of each scheme, the policy *used in* iteration k: actions [K, members, S], or
    probabilities [K, members, S, A] where it is soft."""


@partial(table_jit, static_argnames=("schemes", "iterations", "samples"), donate_argnames="tables")
def _chunk(
    tables: Any,
    first: Array,
    mdps: Sampler,
    *,
    schemes: tuple[Scheme, ...],
    iterations: int,
    samples: int,
) -> tuple[Any, tuple[Array, ...]]:
    small = jnp.uint8 if mdps.mdp.rewards.shape[1] <= 256 else jnp.int32

    def compact(policies: Array) -> Array:
        return policies.astype(small) if policies.ndim == 1 else policies

    def iteration(tables: Any, k: Array) -> tuple[Any, tuple[Array, ...]]:
        read = mdps.read(k, samples)
        policies = tuple(compact(policy(s.algorithm, t)) for s, t in zip(schemes, tables))
        tables = tuple(iterate(s, t, read, mdps.mdp, k) for s, t in zip(schemes, tables))
        return tables, policies

    tables, policies = jax.lax.scan(iteration, tables, first + jnp.arange(iterations))
    members = mdps.keys.shape[0]
    return tables, tuple(p.reshape(iterations, members, -1, *p.shape[2:]) for p in policies)


def run(
    mdp: FiniteMDP,
    schemes: Sequence[Scheme],
    iterations: int,
    *,
    seed: int = 0,
    copies: int = 1,
    samples: int = 1,
    chunk: int = 500,
) -> Iterator[Chunk]:
    """Yield the policies of iterations 1..K of every scheme, ``chunk`` iterations at a time.

    All schemes see the same sampled successors. ``copies`` runs every MDP with as many independent
    seeds; ``samples = 0`` is the exact scheme. Neither chunk sizes nor how many MDPs run together
    change a result. A chunk's arrays may still be in computation when it is yielded, so that a
    caller can work on one while the next is computed.
    """
    for scheme in schemes:
        check_affine(scheme.algorithm, samples)
    with jax.enable_x64(True):
        mdps = sampler(mdp, member_keys(seed, mdp.batch or 1, copies), copies)
        shape = mdps.mdp.rewards.shape
        tables = tuple(masked(mdps.mdp, start(s.algorithm, *shape)) for s in schemes)
    for first in range(1, iterations + 1, chunk):
        with jax.enable_x64(True):
            tables, policies = _chunk(
                tables,
                jnp.asarray(first),
                mdps,
                schemes=tuple(schemes),
                iterations=min(chunk, iterations + 1 - first),
                samples=samples,
            )
        yield Chunk(first, policies)
