"""Solve one MDP with one scheme, with a certificate."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from movi.errors import UserError, check_seed
from movi.mdp import FiniteMDP
from movi.mdp.certificates import (
    Aim,
    check_tolerance,
    sweeps_needed,
)
from movi.mdp.functions import FunctionMDP
from movi.mdp.operators import Union, compiled, masked, union
from movi.mdp.regularised import regularised_bracket
from movi.mdp.solutions import TOLERANCE, Solution, rounding_floor, solution
from movi.planning.engine import (
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
    preference,
    sample,
    start,
    thresholds,
)
from movi.planning.options import Options
from movi.planning.runs import iterate
from movi.planning.schemes import label
from movi.planning.schemes import scheme as named
from movi.progress import bar
from movi.schedules import Schedule, Smoothing
from movi.targets import Algorithm, soft_maximum

Array = Any
_CHUNK = 100  # iterations between two looks at the progress bar


def solve(
    mdp: FiniteMDP | FunctionMDP,
    scheme: str | Algorithm | Options | None = None,
    *,
    method: str = "auto",
    sampled: bool = False,
    samples: int = 1,
    iterations: int | None = None,
    tolerance: float | None = None,
    seed: int = 0,
    beta: Schedule | None = None,
    progress: bool = False,
) -> Any:
    """Solve one MDP: by the method that suits it or, if one is named, by a scheme of the paper.

    It stops when a certificate reaches the tolerance, or early where float64 is proven to allow no
    better one. ``converged`` says whether the tolerance was reached; if not, ``floor`` and
    ``needed`` say what would be.

    Args:
      mdp: the model; one of a function that is not stored gives a `FunctionSolution`.
      scheme: avi, movi, sql, dpp or one of their family, with options as in
        ``md-vi:lambda=0.01:tau=0.001``; options of `movi.planning.options`; or an algorithm of your
        own. One with an entropy in its evaluation is certified against q^τ_*. Without a scheme, but
        with ``sampled``, ``iterations`` or ``beta``, it is avi.
      method: without a scheme: auto, vi, mpi, pi or ipi; see `movi.mdp.methods`.
      sampled: sample successors instead of taking expectations over them.
      samples: how many per (s, a) and iteration, when sampled.
      iterations: at most this many (default: 10,000).
      tolerance: stop when the bound on ‖q − q*‖∞ is at most this. Default: 1e-6 for the exact
        scheme; a sampled one runs all its iterations unless a tolerance is given.
      seed: of the samples.
      beta: β_k of MoVI, SQL and algorithms of your own; k/(k+1) by default.
      progress: whether to draw a bar on a terminal.

    >>> import movi
    >>> solution = solve(movi.garnet(30, 4, 4, seed=0), "avi")
    >>> solution.converged, solution.bound <= 1e-6
    (True, True)
    >>> solve(movi.garnet(30, 4, 4, seed=0)).scheme
    'pi'
    """
    if isinstance(mdp, FunctionMDP):
        return mdp.solve(tolerance=TOLERANCE if tolerance is None else tolerance)
    limit = 10_000 if iterations is None else iterations
    _check(mdp, limit, samples, tolerance, seed)
    if scheme is None and not sampled and iterations is None and beta is None:
        return solution(mdp, method=method, tolerance=tolerance)
    if method != "auto":
        raise UserError(f"method: {method!r}, expected none beside a scheme and its options")
    scheme = "avi" if scheme is None else scheme
    if tolerance is None and not sampled:
        tolerance = TOLERANCE
    chosen = named(scheme, beta)
    check_affine(chosen.algorithm, samples if sampled else 0)
    wanted = Aim(0.0 if tolerance is None else float(tolerance), True)
    floor, discount = rounding_floor(mdp), float(mdp.discount)
    contracts = chosen.algorithm.name == "avi" and not sampled
    history: list[np.ndarray] = []  # the bound of every iteration, or of every chunk when sampled
    with jax.enable_x64(True), bar("iterations", limit, show=progress) as move:
        device = union(mdp)
        limits = jax.device_put(thresholds(mdp.padded())) if sampled else None
        keys = member_keys(seed, 1)
        tables: Any = masked(device, start(chosen.algorithm, mdp.states, mdp.actions))
        done, bound, most = 0, np.inf, float(limit)
        while done < most and not bound <= wanted.goal(floor, np):
            many = min(_CHUNK, limit - done)
            common = {"scheme": chosen, "iterations": many}
            if sampled:
                tables = _sampled(tables, done + 1, device, limits, keys, samples=samples, **common)
                made = many
                if tolerance is not None or done + many == limit:
                    q, bound = _best_certificate(chosen, tables, device, done + many)
                    history.append(np.full(many, float(bound)))
            else:
                tables, made, v, bounds, lowest = _exact(
                    tables, done + 1, device, wanted, floor, **common
                )
                made, floor = int(made), float(lowest)
                history.append(np.asarray(bounds)[:made])
                bound = history[-1][-1]
                if contracts and done == 0:
                    # Twice as many as it takes without rounding: then rounding is in the way.
                    at_most = sweeps_needed(float(bounds[0]), wanted.tolerance, discount)
                    most = min(most, 2 * at_most + _CHUNK)
            bound = float(bound)
            move(made)
            done += made
        policy = np.asarray(_policy(tables, chosen))
        if not sampled:
            del tables  # as large as what the certificate is about to need
            q, proven = _certificate(device, v, tau=chosen.algorithm.tau)
            bound = float(proven)
        converged = bool(tolerance is not None and bound <= tolerance)
        needed = None
        if tolerance is not None and not converged and floor <= tolerance:
            needed = iterations_needed(np.concatenate(history), tolerance)
            if contracts:  # then the worst case is known, too
                worst = done + int(sweeps_needed(bound, tolerance, discount))
                needed = worst if needed is None else min(needed, worst)
            if done < limit:
                needed = None
        return Solution(
            q=_by_pair(mdp, np.asarray(q)),
            policy=policy,
            bound=bound,
            iterations=done,
            converged=converged,
            tolerance=tolerance,
            scheme=label(scheme),
            floor=floor,
            needed=needed,
            mdp=mdp,
            tau=float(chosen.algorithm.tau),
        )


def iterations_needed(bounds: np.ndarray, goal: float) -> int | None:
    """When the bounds of iterations 1..K will reach the goal, by the way they fell.

    Their logarithm falls in proportion to k where a contraction rules (AVI), to ln k where an
    average does (MoVI, SQL, DPP: 1/k). Of the falls from K/4 to K/2 and from K/2 to K the second
    is twice the first in the one case, and the same in the other. None if they don't fall.
    """
    k = len(bounds)
    if k < 4:
        return None
    early, middle, last = np.log(bounds[[k // 4 - 1, k // 2 - 1, k - 1]])
    if not last < middle:
        return None
    rest = last - np.log(goal)
    if middle < early and middle - last < np.sqrt(2) * (early - middle):
        power = np.log(k) + rest * np.log(k / (k // 2)) / (middle - last)
        needed = np.exp(min(power, 50.0))
    else:
        needed = k + rest * (k - k // 2) / (middle - last)
    return int(np.ceil(needed)) if needed < 1e15 else None  # centuries are no estimate


def _by_pair(mdp: FiniteMDP, table: np.ndarray) -> np.ndarray:
    """A table [S, A] in the layout of the MDP."""
    return table[mdp.owners(), mdp.choices] if mdp.ragged else table


def _first(algorithm: Algorithm, seen: Any) -> Array:
    """A scheme's estimate of the states' values: what its targets read first; see `targets`."""
    return algorithm.kind("q").expectation(jax.tree.leaves(seen)[0])


@partial(compiled, static_argnames=("scheme", "iterations"), donate_argnames="tables")
def _exact(
    tables: Any,
    first: Array,
    mdp: Union,
    wanted: Aim,
    floor: Array,
    *,
    scheme: Scheme,
    iterations: int,
) -> tuple[Any, Array, Array, Array, Array]:
    """Iterate until certified: the tables, how many iterations, the last v, the bounds, the floor.

    The floor is the highest that is proven yet.
    """
    read, algorithm = exactly(mdp), scheme.algorithm

    def unfinished(carry: Any) -> Array:
        _, made, _, bounds, floor = carry
        reached = bounds[jnp.maximum(made - 1, 0)] <= wanted.goal(floor, jnp)
        return (made < iterations) & ~reached

    def iteration(carry: Any) -> Any:
        tables, made, _, bounds, floor = carry
        rate = scheme.rate(first + made)
        tables = held(algorithm, tables, read, mdp, rate)
        seen = jax.tree.map(read, read_here := bootstraps(algorithm, tables))
        new = backups(algorithm, tables, seen, mdp, rate)
        v = _first(algorithm, read_here)
        # The sweep that updates the tables also certifies the values that it started from.
        backed_up = mdp.rewards + mdp.discount * _first(algorithm, seen)
        found = regularised_bracket(mdp, v, backed_up, algorithm.tau)
        bounds = bounds.at[made].set(found.bound)
        floor = jnp.maximum(floor, found.floor)
        return advance(tables, new), made + 1, v, bounds, floor

    v, bounds = jnp.zeros(mdp.rewards.shape[0]), jnp.full(iterations, jnp.inf)
    return jax.lax.while_loop(unfinished, iteration, (tables, 0, v, bounds, floor))


@partial(jax.jit, static_argnames=("scheme", "iterations", "samples"), donate_argnames="tables")
def _sampled(
    tables: Any,
    first: Array,
    mdp: Union,
    limits: Array,
    keys: Array,
    *,
    scheme: Scheme,
    iterations: int,
    samples: int,
) -> Any:
    def iteration(i: Array, tables: Any) -> Any:
        read = from_samples(sample(mdp, limits, keys, first + i, samples))
        return iterate(scheme, tables, read, mdp, first + i)

    return jax.lax.fori_loop(0, iterations, iteration, tables)


@partial(jax.jit, static_argnums=1)
def _policy(tables: Any, scheme: Scheme) -> Array:
    own = policy(scheme.algorithm, tables)
    return own.astype(jnp.int32) if own.ndim == 1 else own


@partial(compiled, static_argnames="tau")
def _certificate(mdp: Union, v: Array, *, tau: float) -> tuple[Array, Array]:
    backed_up = mdp.rewards + mdp.discount * exactly(mdp)(v)
    found = regularised_bracket(mdp, v, backed_up, tau)
    return backed_up + found.shift, found.bound


def _best_certificate(
    scheme: Scheme, tables: Any, mdp: Union, iterations: int
) -> tuple[Array, Array]:
    """The better of two: from what the targets read, and from the maximum of the acting table.

    MoVI's q_k carries the whole error of its last sample, while h_k averages errors out. Where h_k
    is a sum with weights 1, ρ, …, ρ^k, it is divided by theirs.
    """
    algorithm = scheme.algorithm
    average = preference(algorithm, tables)
    if algorithm.rho is not None:
        average = average * (1 - Smoothing(algorithm.rho)(iterations))
    tau = algorithm.tau
    top = soft_maximum(average, tau) if tau else jnp.max(average, -1)
    candidates = (_first(algorithm, bootstraps(algorithm, tables)), top)
    certificates = (_certificate(mdp, v, tau=tau) for v in candidates)
    return min(certificates, key=lambda pair: float(pair[1]))


def _check(
    mdp: FiniteMDP, iterations: int, samples: int, tolerance: float | None, seed: int
) -> None:
    if mdp.batch is not None:
        raise UserError("mdp: a batch, expected one MDP; solve its members one by one")
    for name, value in (("iterations", iterations), ("samples", samples)):
        if value < 1:
            raise UserError(f"{name}: {value}, expected at least 1")
    if tolerance is not None:
        check_tolerance(tolerance)
    check_seed(seed)
