"""The paper's comparison of schemes on Garnets (Section 7.1, fig:movi-bound and fig:adp)."""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from momentum_rl.core.catalogue import label
from momentum_rl.core.options import Options
from momentum_rl.core.schedules import Schedule
from momentum_rl.core.targets import Algorithm
from momentum_rl.errors import UserError, check_count, check_seed, door
from momentum_rl.mdp.checks import require_batch
from momentum_rl.mdp.model import FiniteMDP
from momentum_rl.mdp.operators import masked, table_jit
from momentum_rl.mdp.solve.regularised import certain_optimum
from momentum_rl.planning.disturbances import (
    Disturbances,
    Given,
    check_average,
    disturbances,
    disturbed_start,
    disturbed_update,
)
from momentum_rl.planning.engine import (
    Sampler,
    Scheme,
    check_affine,
    member_keys,
    policy,
    sampler,
    scheme,
    start,
)
from momentum_rl.planning.theory import batch_losses
from momentum_rl.plumbing.progress import display
from momentum_rl.plumbing.sizes import require

_ROWS = 1 << 24  # policy entries per chunk
ROW = 500  # bytes of a row of the table, with its numbers as texts
SAMPLE = 16  # bytes of a sample: the random number, the successor, its value


class Comparison(NamedTuple):
    """‖q* − q_{π_k}‖ for k = 1..K of every scheme on every MDP.

    A scheme whose evaluation has an entropy in it is judged by the optimum that it tends to, and so
    by the value that has it, too: ‖q^τ_* − q^τ_{π_k}‖.
    """

    schemes: tuple[str, ...]
    """The names of the schemes, with options that are not the default."""
    l1: np.ndarray
    """[schemes, K, M], the 1-norm under the uniform distribution."""
    sup: np.ndarray
    """[schemes, K, M], the sup norm."""
    taus: tuple[float, ...] = ()
    """τ of the optimum of each scheme; 0 is q*."""


@door
def compare_schemes(
    mdps: FiniteMDP,
    schemes: Sequence[str | Algorithm | Options] = ("avi", "movi", "sql", "dpp"),
    *,
    iterations: int = 10_000,
    seed: int = 0,
    samples: int = 1,
    beta: Schedule | None = None,
    errors: Given = None,
    average_errors: Given = None,
    chunk: int | None = None,
    progress: bool = False,
) -> Comparison:
    """Run sampled schemes with common samples and measure every policy's loss exactly.

    Args:
      mdps: a batch of MDPs, for instance ``momentum_rl.garnet(count=100)``.
      schemes: names, with options as in ``md-vi:lambda=0.01:tau=0.001``; options of
        `momentum_rl.core.catalogue`; or algorithms of your own.
      iterations: K.
      seed: MDP m draws from (seed, m).
      samples: m, the samples per (s, a) and iteration (1 in the paper); 0 is the exact scheme.
      beta: β_k of MoVI, SQL and algorithms of your own; k/(k+1) by default.
      errors: ε_k beside those of sampling, the same for all schemes: "gaussian:0.1", an array, a
        function (`momentum_rl.planning.disturbances`).
      average_errors: η_k, of the schemes that have an average.
      chunk: iterations computed at a time; it does not change the result.
      progress: whether to draw a bar on a terminal.

    >>> import momentum_rl
    >>> result = compare_schemes(momentum_rl.garnet(count=3), iterations=50)
    >>> result.l1.shape
    (4, 50, 3)
    """
    for name, value, least in (("iterations", iterations, 1), ("samples", samples, 0)):
        check_count(name, value, least)
    check_count("chunk", chunk)
    check_seed(seed)
    members = require_batch(mdps)
    if len(schemes) == 0:
        raise UserError("schemes: none, expected at least one")
    chosen = tuple(scheme(which, beta) for which in schemes)
    if chunk is None:
        chunk = max(1, min(500, _ROWS // (len(chosen) * members * mdps.states)))
    points = len(chosen) * iterations
    require(f"{iterations:,} iterations", memory=points * (16 * members + ROW))
    cells = members * mdps.states * mdps.actions
    require(f"{samples:,} samples of each (s, a)", memory=samples * cells * SAMPLE)
    taus = tuple(float(s.algorithm.tabular.tau) for s in chosen)
    optimal_q = {tau: certain_optimum(mdps, tau).q for tau in dict.fromkeys((0.0, *taus))}
    l1 = np.empty((len(chosen), iterations, members))
    sup = np.empty_like(l1)
    given = (errors, average_errors)
    chunks = run(mdps, chosen, iterations, given, seed=seed, samples=samples, chunk=chunk)
    with (
        display("iterations", iterations, show=progress) as shown,
        ThreadPoolExecutor(os.cpu_count()) as pool,
    ):
        ahead = next(chunks, None)
        while ahead is not None:
            # The device computes the next chunk while the host evaluates this one's policies.
            now, ahead = ahead, next(chunks, None)
            rows = slice(now.first - 1, now.first - 1 + len(now.policies[0]))
            # Greedy policies all at once: schemes share some of them.
            greedy = [i for i, actions in enumerate(now.policies) if actions.ndim == 3]
            if greedy:
                policies = np.stack([now.policies[i] for i in greedy])
                losses = batch_losses(mdps, optimal_q[0.0], policies, pool)
                l1[greedy, rows], sup[greedy, rows] = losses.l1, losses.sup
            for i in set(range(len(chosen))) - set(greedy):
                policies, tau = np.asarray(now.policies[i]), taus[i]
                losses = batch_losses(mdps, optimal_q[tau], policies, pool, tau)
                l1[i, rows], sup[i, rows] = losses.l1, losses.sup
            shown.advance(rows.stop - rows.start)
    return Comparison(tuple(map(label, schemes)), l1, sup, taus)


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
    errors: Disturbances,
    *,
    schemes: tuple[Scheme, ...],
    iterations: int,
    samples: int,
) -> tuple[Any, tuple[Array, ...]]:
    small = jnp.uint8 if mdps.mdp.rewards.shape[1] <= 256 else jnp.int32

    def compact(policies: Array) -> Array:
        return policies.astype(small) if policies.ndim == 1 else policies

    def iteration(carry: Any, k: Array) -> tuple[Any, tuple[Array, ...]]:
        read = mdps.read(k, samples)
        policies = tuple(compact(policy(s.algorithm, t)) for s, (t, _) in zip(schemes, carry))
        carry = tuple(
            (done.tables, drawn)
            for done, drawn in (
                disturbed_update(s, t, read, mdps, k, errors, before)
                for s, (t, before) in zip(schemes, carry)
            )
        )
        return carry, policies

    tables, policies = jax.lax.scan(iteration, tables, first + jnp.arange(iterations))
    members = mdps.keys.shape[0]
    return tables, tuple(p.reshape(iterations, members, -1, *p.shape[2:]) for p in policies)


def run(
    mdp: FiniteMDP,
    schemes: Sequence[Scheme],
    iterations: int,
    given: tuple[Given, Given] = (None, None),
    *,
    seed: int = 0,
    samples: int = 1,
    chunk: int = 500,
) -> Iterator[Chunk]:
    """Yield the policies of iterations 1..K of every scheme, ``chunk`` iterations at a time.

    All schemes see the same sampled successors, and the same errors beside sampling's, ``given`` as
    those of the value and of the average; ``samples = 0`` is the exact scheme. Neither chunk
    sizes nor how many MDPs run together change a result. A chunk's arrays may still be in
    computation when it is yielded, so that a caller can work on one while the next is computed.
    """
    for one in schemes:
        check_affine(one.algorithm, samples)
    check_average(tuple(schemes), given[1])
    with jax.enable_x64(True):
        mdps = sampler(mdp, member_keys(seed, mdp.batch or 1))
        shape = mdps.mdp.rewards.shape
        errors = disturbances(mdp, iterations, *given)
        tables = tuple(
            disturbed_start(s, masked(mdps.mdp, start(s.algorithm, *shape)), mdps, errors)
            for s in schemes
        )
    for first in range(1, iterations + 1, chunk):
        with jax.enable_x64(True):
            tables, policies = _chunk(
                tables,
                jnp.asarray(first),
                mdps,
                errors,
                schemes=tuple(schemes),
                iterations=min(chunk, iterations + 1 - first),
                samples=samples,
            )
        yield Chunk(first, policies)
