"""Solve one MDP with one scheme, with a certificate."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from momentum_rl.core.algorithm import Algorithm
from momentum_rl.core.catalogue import label
from momentum_rl.core.options import Options
from momentum_rl.core.schedules import Schedule, Smoothing
from momentum_rl.core.soft import soft_maximum
from momentum_rl.core.targets import AVI
from momentum_rl.errors import UserError, check_count, check_seed, door
from momentum_rl.mdp.checks import require_single
from momentum_rl.mdp.model import FiniteMDP
from momentum_rl.mdp.operators import DeviceMDP, masked, on_device, table_jit
from momentum_rl.mdp.solve.certificates import Aim, check_tolerance, sweeps_needed
from momentum_rl.mdp.solve.compiled import optimal_bracket
from momentum_rl.mdp.solve.methods import Method
from momentum_rl.mdp.solve.solution import TOLERANCE, Solution, rounding_floor, solution
from momentum_rl.planning.engine import (
    Sampler,
    Scheme,
    bootstraps,
    check_affine,
    exactly,
    iterate,
    member_keys,
    policy,
    preference,
    sampler,
    start,
    state_values,
    update,
)
from momentum_rl.planning.engine import scheme as named
from momentum_rl.plumbing.progress import display

_CHUNK = 100  # iterations between two looks at the progress bar


@door
def solve(
    mdp: FiniteMDP,
    scheme: str | Algorithm | Options | None = None,
    *,
    method: Method = "auto",
    sampled: bool = False,
    samples: int = 1,
    iterations: int | None = None,
    tolerance: float | None = None,
    seed: int = 0,
    beta: Schedule | None = None,
    progress: bool = False,
) -> Solution:
    """Solve one MDP: by the method that suits it or, if one is named, by a scheme of the paper.

    It stops when a certificate reaches the tolerance, or early where float64 is proven to allow no
    better one. ``converged`` says whether the tolerance was reached, ``floor`` what could be.

    Args:
      mdp: the model.
      scheme: a name with options as in ``md-vi:lambda=0.01:tau=0.001``; options of
        `core.catalogue`; or an algorithm of your own. One with an entropy in its evaluation
        is certified against q^τ_*. With ``sampled``, ``iterations`` or ``beta`` alone it is avi.
      method: without a scheme: auto, vi, mpi, pi or ipi; see `momentum_rl.mdp.solve.methods`.
      sampled: sample successors instead of taking expectations over them.
      samples: how many per (s, a) and iteration, when sampled.
      iterations: at most this many (default: 10,000).
      tolerance: stop when the bound on ‖q − q*‖∞ is at most this. Default: 1e-6 for the exact
        scheme; a sampled one runs all its iterations unless a tolerance is given.
      seed: of the samples.
      beta: β_k of MoVI, SQL and algorithms of your own; k/(k+1) by default.
      progress: whether to draw a bar on a terminal.

    >>> import momentum_rl
    >>> solution = solve(momentum_rl.garnet(30, 4, 4, seed=0), "avi")
    >>> solution.converged, solution.bound <= 1e-6
    (True, True)
    """
    limit = 10_000 if iterations is None else iterations
    _check(mdp, limit, samples, tolerance, seed)
    if scheme is None and not sampled and iterations is None and beta is None:
        return solution(mdp, method=method, tolerance=tolerance)
    if method != "auto":
        raise UserError(f"method: {method!r}, expected none beside a scheme and its options")
    scheme = "avi" if scheme is None else scheme
    tolerance = TOLERANCE if tolerance is None and not sampled else tolerance
    chosen = named(scheme, beta)
    check_affine(chosen.algorithm, samples if sampled else 0)
    with jax.enable_x64(True), display("iterations", limit, show=progress) as shown:
        floor = rounding_floor(mdp)
        if sampled:
            drawn = sampler(mdp, member_keys(seed, 1))
            run = _run_sampled(drawn, chosen, samples, limit, tolerance, floor, shown.advance)
        else:
            run = _run_exact(on_device(mdp), chosen, limit, tolerance or 0.0, floor, shown.advance)
    converged = bool(tolerance is not None and run.bound <= tolerance)
    return Solution(
        q=run.q,
        policy=run.policy,
        bound=run.bound,
        iterations=run.iterations,
        converged=converged,
        tolerance=tolerance,
        scheme=label(scheme),
        floor=run.floor,
        mdp=mdp,
        tau=float(chosen.algorithm.tabular.tau),
    )


class _Run(NamedTuple):
    """What the iterations of a scheme gave."""

    q: np.ndarray
    """The certified values, [S, A]."""
    policy: np.ndarray
    """Actions [S], or probabilities [S, A]."""
    bound: float
    """A proven bound on the distance of q to its optimum."""
    iterations: int
    """How many there were."""
    floor: float
    """The highest that rounding is proven to put under any bound."""


def _run_exact(
    mdp: DeviceMDP,
    scheme: Scheme,
    limit: int,
    tolerance: float,
    floor: float,
    move: Callable[[int], None],
) -> _Run:
    """Exact iterations until their certificate reaches the tolerance, at most ``limit``."""
    tables: Any = masked(mdp, start(scheme.algorithm, *mdp.rewards.shape))
    wanted, bound, done, most = Aim(tolerance, True), np.inf, 0, float(limit)
    while done < most and not bound <= wanted.goal(floor, np):
        many = min(_CHUNK, limit - done)
        tables, count, v, near, lowest = _exact(
            tables, done + 1, mdp, wanted, floor, scheme=scheme, iterations=many
        )
        bound, floor = float(near), float(lowest)
        if scheme.algorithm is AVI and done == 0:
            # Twice as many as it takes without rounding: then rounding is in the way.
            left = sweeps_needed(bound, tolerance, float(mdp.discount[0, 0]))
            most = min(most, 2 * left + 2 * _CHUNK)
        move(int(count))
        done += int(count)
    policy = np.asarray(_policy(tables, scheme))
    del tables  # as large as what the certificate is about to need
    q, proven = _certificate(mdp, v, tau=scheme.algorithm.tabular.tau)
    return _Run(np.asarray(q), policy, float(proven), done, floor)


def _run_sampled(
    mdp: Sampler,
    scheme: Scheme,
    samples: int,
    limit: int,
    tolerance: float | None,
    floor: float,
    move: Callable[[int], None],
) -> _Run:
    """Sampled iterations: all of them, or until a certificate reaches the tolerance."""
    tables: Any = masked(mdp.mdp, start(scheme.algorithm, *mdp.mdp.rewards.shape))
    wanted = Aim(0.0 if tolerance is None else tolerance, True)
    bound, done = np.inf, 0
    while done < limit and not bound <= wanted.goal(floor, np):
        many = min(_CHUNK, limit - done)
        tables = _sampled(tables, done + 1, mdp, scheme=scheme, iterations=many, samples=samples)
        done += many
        if tolerance is not None or done == limit:
            q, proven = _best_certificate(scheme, tables, mdp.mdp, done)
            bound = float(proven)
        move(many)
    policy = np.asarray(_policy(tables, scheme))
    return _Run(np.asarray(q), policy, bound, done, floor)


@partial(table_jit, static_argnames=("scheme", "iterations"), donate_argnames="tables")
def _exact(
    tables: Any,
    first: Array,
    mdp: DeviceMDP,
    wanted: Aim,
    floor: Array,
    *,
    scheme: Scheme,
    iterations: int,
) -> tuple[Any, Array, Array, Array, Array]:
    """Iterate until certified: the tables, how many iterations, the last v, its bound, the floor.

    The floor is the highest that is proven yet.
    """
    read, algorithm = exactly(mdp), scheme.algorithm

    def unfinished(carry: Any) -> Array:
        _, count, _, bound, floor = carry
        return (count < iterations) & ~(bound <= wanted.goal(floor, jnp))

    def iteration(carry: Any) -> Any:
        tables, count, _, _, floor = carry
        now = update(algorithm, tables, read, mdp, scheme.rate(first + count))
        v = state_values(algorithm, now.read)
        # The sweep that updates the tables also certifies the values that it started from.
        backed_up = mdp.rewards + mdp.discount * state_values(algorithm, now.seen)
        near = optimal_bracket(mdp, v, backed_up, algorithm.tabular.tau or None)
        return now.tables, count + 1, v, near.bound, jnp.maximum(floor, near.floor)

    begin: Any = (tables, 0, jnp.zeros(mdp.rewards.shape[0]), jnp.inf, floor)
    return jax.lax.while_loop(unfinished, iteration, begin)


@partial(jax.jit, static_argnames=("scheme", "iterations", "samples"), donate_argnames="tables")
def _sampled(
    tables: Any, first: Array, mdp: Sampler, *, scheme: Scheme, iterations: int, samples: int
) -> Any:
    def iteration(i: Array, tables: Any) -> Any:
        return iterate(scheme, tables, mdp.read(first + i, samples), mdp.mdp, first + i)

    return jax.lax.fori_loop(0, iterations, iteration, tables)


@partial(jax.jit, static_argnums=1)
def _policy(tables: Any, scheme: Scheme) -> Array:
    actions = policy(scheme.algorithm, tables)
    return actions.astype(jnp.int32) if actions.ndim == 1 else actions


@partial(table_jit, static_argnames="tau")
def _certificate(mdp: DeviceMDP, v: Array, *, tau: float) -> tuple[Array, Array]:
    backed_up = mdp.rewards + mdp.discount * exactly(mdp)(v)
    near = optimal_bracket(mdp, v, backed_up, tau or None)
    return backed_up + near.shift, near.bound


def _best_certificate(
    scheme: Scheme, tables: Any, mdp: DeviceMDP, iterations: int
) -> tuple[Array, Array]:
    """The better of two: from what the targets read, and from the maximum of the acting table.

    MoVI's q_k carries the whole error of its last sample, while h_k averages errors out. Where h_k
    is a sum with weights 1, ρ, …, ρ^k, it is divided by theirs.
    """
    algorithm = scheme.algorithm
    average = preference(algorithm, tables)
    if algorithm.tabular.rho is not None:
        average = average * (1 - Smoothing(algorithm.tabular.rho)(iterations))
    tau = algorithm.tabular.tau
    top = soft_maximum(average, tau) if tau else jnp.max(average, -1)
    candidates = (state_values(algorithm, bootstraps(algorithm, tables)), top)
    certificates = (_certificate(mdp, v, tau=tau) for v in candidates)
    return min(certificates, key=lambda pair: float(pair[1]))


def _check(
    mdp: FiniteMDP, iterations: int, samples: int, tolerance: float | None, seed: int
) -> None:
    require_single(mdp)
    check_count("iterations", iterations)
    check_count("samples", samples)
    if tolerance is not None:
        check_tolerance(tolerance)
    check_seed(seed)
