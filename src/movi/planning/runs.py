"""Runs of several schemes on many MDPs with common random numbers, compiled, in chunks."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from movi.mdp.model import FiniteMDP
from movi.mdp.operators import Union, compiled, masked, union
from movi.planning.engine import (
    Read,
    Scheme,
    advance,
    backups,
    bootstraps,
    check_affine,
    exactly,
    from_samples,
    held,
    member_keys,
    policy,
    sample,
    start,
    thresholds,
)

Array = Any


class Chunk(NamedTuple):
    """Some consecutive iterations of a run.

    Attributes:
      first: the iteration k of the first row.
      policies: π_k of each scheme, the policy *used in* iteration k: actions [K, members, S], or
        probabilities [K, members, S, A] where it is soft.
    """

    first: int
    policies: tuple[Array, ...]


def iterate(scheme: Scheme, tables: Any, read: Read, mdp: Union, k: Array) -> dict[str, Array]:
    """Iteration k of one scheme: its tables after it."""
    algorithm, rate = scheme.algorithm, scheme.rate(k)
    tables = held(algorithm, tables, read, mdp, rate)
    seen = {name: jax.tree.map(read, v) for name, v in bootstraps(algorithm, tables).items()}
    return advance(tables, backups(algorithm, tables, seen, mdp, rate))


@partial(compiled, static_argnames=("schemes", "iterations", "samples"), donate_argnames="tables")
def _chunk(
    tables: Any,
    first: Array,
    mdp: Union,
    limits: Array,
    keys: Array,
    *,
    schemes: tuple[Scheme, ...],
    iterations: int,
    samples: int,
) -> tuple[Any, tuple[Array, ...]]:
    small = jnp.uint8 if mdp.rewards.shape[1] <= 256 else jnp.int32

    def compact(policies: Array) -> Array:
        return policies.astype(small) if policies.ndim == 1 else policies

    def iteration(tables: Any, k: Array) -> tuple[Any, tuple[Array, ...]]:
        read = from_samples(sample(mdp, limits, keys, k, samples)) if samples else exactly(mdp)
        policies = tuple(compact(policy(s.algorithm, t)) for s, t in zip(schemes, tables))
        tables = tuple(iterate(s, t, read, mdp, k) for s, t in zip(schemes, tables))
        return tables, policies

    tables, policies = jax.lax.scan(iteration, tables, first + jnp.arange(iterations))
    members = keys.shape[0]
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
        device = union(mdp, copies)
        members = (mdp.batch or 1) * copies
        limits = np.repeat(thresholds(mdp).reshape(mdp.batch or 1, -1), copies, 0)
        limits = jax.device_put(limits.reshape(*device.rewards.shape, mdp.branching - 1))
        keys = member_keys(seed, mdp.batch or 1, copies)
        states = members * mdp.states
        tables = tuple(masked(device, start(s.algorithm, states, mdp.actions)) for s in schemes)
    for first in range(1, iterations + 1, chunk):
        with jax.enable_x64(True):
            tables, policies = _chunk(
                tables,
                jnp.asarray(first),
                device,
                limits,
                keys,
                schemes=tuple(schemes),
                iterations=min(chunk, iterations + 1 - first),
                samples=samples,
            )
        yield Chunk(first, policies)
