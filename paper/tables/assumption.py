"""The check of Assumption 1, E[P_{j+l:j+1} ε_j | F_{j−1}] = 0, in two readings (Section 7.1).

One history of MoVI per MDP is common to both: tables after iteration j − 1 (q_{j−1}, h_{j−1}) and
after iteration j (q_j, h_j). What is then repeated N times, with fresh samples, differs:

    #             restarted from      the error, from the restart's first samples    first kernel
    #   printed   q_j, h_j            T̂_{π_j} q_j − T_{π_j} q_j                      of G(h_j)
    #   assumed   q_{j−1}, h_{j−1}    T̂_{π_j} q_{j−1} − T_{π_j} q_{j−1}              of its G(h_j)

*As printed* is Section 7.1 word for word: "we re-start MoVI from the same q_j", with
ε_j = T̂_{π_j} q_j − T_{π_j} q_j. Iterations j + 1, …, j + l are run again; the error has the samples
of the first of them. The policy π_{j+1} is the same in all restarts, chosen before the noise; from
π_{j+2} on policies have seen it.

*As assumed* is what Assumption 1 conditions on, F_{j−1}: iteration j itself is run again. Its h_j
contains ε_j/(j+1), so that already π_{j+1} has seen it.

Either way ε̄_{l,N} = max_{s,a} |1/N Σ_{n≤N} P_{j+l:j+1,n} ε_{j,n}(s, a)|, by l products of a kernel
and a vector.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from momentum_rl.errors import UserError, check_count, check_seed
from momentum_rl.mdp.checks import require_batch
from momentum_rl.mdp.model import FiniteMDP
from momentum_rl.mdp.operators import select
from momentum_rl.planning.engine import (
    Sampler,
    greedy,
    iterate,
    member_keys,
    sampler,
    scheme,
    start,
)
from momentum_rl.planning.theory import applied
from momentum_rl.plumbing.progress import display
from momentum_rl.plumbing.sizes import require

MOVI = scheme("movi")


class AssumptionCheck(NamedTuple):
    """Estimates for every l of the lengths, N = 1..restarts and MDP, [L, N, M]."""

    printed: np.ndarray
    """Estimates of ‖E[P_{j+l:j+1} ε_j]‖∞, restarted from q_j, h_j (the module's text)."""
    assumed: np.ndarray
    """Estimates of ‖E[P_{j+l:j+1} ε_j | F_{j−1}]‖∞, restarted from q_{j−1}, h_{j−1}."""
    one_more: np.ndarray
    """Estimates of ‖E[P_{j+l:j} ε_j | F_{j−1}]‖∞, from the same restarts as ``assumed``. E'_{k,l}
    contains it and Assumption 1 does not cover it."""
    fixed_printed: np.ndarray
    """Whether the mean behind ``printed`` is *proven* to be zero, [L, M]."""
    fixed_assumed: np.ndarray
    """Whether both means behind the others are (:func:`policies_fixed`), [L, M]."""


def assumption_check(
    mdps: FiniteMDP,
    *,
    iteration: int = 10,
    lengths: Sequence[int] = (0, 1, 2, 5, 10),
    restarts: int = 200,
    seed: int = 0,
    batch: int = 25,
    progress: bool = False,
) -> AssumptionCheck:
    """Both readings of the check at iteration j, from one history.

    One set of restarts gives all N and all l: each product is one more than the last, and the
    estimates are running means. ``batch`` MDPs are done at a time; it does not change the result.
    """
    members = require_batch(mdps)
    mdps.require_all_actions()
    for name, value in (("iteration", iteration), ("restarts", restarts), ("batch", batch)):
        check_count(name, value)
    if not lengths or min(lengths) < 0:
        raise UserError(f"lengths: {tuple(lengths)}, expected integers of at least 0")
    check_count("lengths", max(lengths), 0)
    check_seed(seed)
    cells = min(batch, members) * restarts * mdps.states * mdps.actions
    # A copy of the MDP and of its thresholds for every restart; the products of both readings and
    # of the kernel more, twice.
    each = 16 * mdps.branching + 3 * (16 * (max(lengths) + 1) + 24 * len(lengths))
    require(f"{restarts:,} restarts, l up to {max(lengths):,}", memory=cells * each)
    parts = []
    with jax.enable_x64(True), display("MDPs", members, show=progress) as shown:
        # The history has keys of its own, so that no restart repeats its samples.
        past = member_keys(seed, members)
        future = member_keys((seed + 1) % 2**63, members, restarts)
        for begin in range(0, members, batch):
            some, chosen = mdps[begin : begin + batch], past[begin : begin + batch]
            fresh = future[begin * restarts : (begin + len(some)) * restarts]
            before, after = _history(some, chosen, iteration)
            estimates = [
                _running(np.asarray(products)[list(lengths)], len(some), restarts)
                for products in _restarted(some, before, after, fresh, iteration, max(lengths))
            ]
            # As printed π_{j+1} is fixed, and l − 1 iterations come between it and π_{j+l}.
            fewer = [max(length - 1, 0) for length in lengths]
            proven = (
                policies_fixed(some, *_tables(some, after), iteration + 1, fewer),
                policies_fixed(some, *_tables(some, before), iteration, lengths),
            )
            parts.append((*estimates, *proven))
            shown.advance(len(some))
    return AssumptionCheck(*(np.concatenate(column, -1) for column in zip(*parts)))


def _tables(mdps: FiniteMDP, tables: Any) -> tuple[np.ndarray, np.ndarray]:
    """q and h, each [M, S, A]."""
    shape = mdps.rewards.shape
    return np.asarray(tables["q"]).reshape(shape), np.asarray(tables["h"]).reshape(shape)


def _running(products: np.ndarray, members: int, restarts: int) -> np.ndarray:
    """max_{s,a} |running mean over the restarts| of products [L, members · restarts · S, A]."""
    each = products.reshape(len(products), members, restarts, -1)
    means = np.cumsum(each, 2) / np.arange(1, restarts + 1)[:, None]
    return np.moveaxis(np.abs(means).max(-1), 1, 2)


def policies_fixed(
    mdps: FiniteMDP, q: np.ndarray, h: np.ndarray, iteration: int, lengths: Sequence[int]
) -> np.ndarray:
    """Whether no sample can change π_{j+1}, …, π_{j+l}, given q_{j−1} and h_{j−1}, [L, M].

    (j + l) h_{j+l−1} = j h_{j−1} + q_j + … + q_{j+l−1}. Two actions of a state differ in q_{j+i} by
    at most d_i = max_s (range of r(s, ·)) + γ R_{i−1}, where R_i = range(r) + γ R_{i−1} bounds the
    range of q_{j+i} and R_{−1} is the range of q_{j−1}. If in every state j times the gap between
    the two best actions of h_{j−1} exceeds d_0 + … + d_{l−1}, all these policies are π_j:
    P_{j+l:j+1} = P_{π_j}^l is known before ε_j, whose conditional mean is zero.

    Args:
      mdps: a batch of M.
      q: q_{j−1}, [M, S, A].
      h: h_{j−1}, [M, S, A].
      iteration: j.
      lengths: the values of l.
    """
    discount = np.broadcast_to(mdps.discount, (len(mdps),))
    if mdps.actions > 1:
        best = np.sort(h, -1)
        gap = iteration * (best[..., -1] - best[..., -2]).min(-1)
    else:
        gap = np.full(len(mdps), np.inf)
    over_all, over_actions = np.ptp(mdps.rewards, (-2, -1)), np.ptp(mdps.rewards, -1).max(-1)
    moved, spread, proven = np.zeros(len(mdps)), np.ptp(q, (-2, -1)), {0: np.ones(len(mdps), bool)}
    for length in range(1, max(lengths) + 1):
        moved = moved + over_actions + discount * spread
        spread = over_all + discount * spread
        proven[length] = gap > moved
    return np.stack([proven[length] for length in lengths])


def _history(mdps: FiniteMDP, keys: Array, j: int) -> tuple[Any, Any]:
    """MoVI's tables after iteration j − 1 and after iteration j, each [1, M S, A]."""
    drawn = sampler(mdps, keys)
    tables = start(MOVI.algorithm, *drawn.mdp.rewards.shape)
    before = _iterated(tables, drawn, jnp.asarray(1), jnp.asarray(j))
    return before, _iterated(before, drawn, jnp.asarray(j), jnp.asarray(j + 1))


@jax.jit
def _iterated(tables: Any, mdps: Sampler, first: Array, end: Array) -> Any:
    """The tables after iterations first, …, end − 1."""

    def iteration(k: Array, tables: Any) -> Any:
        return iterate(MOVI, tables, mdps.read(k, 1), mdps.mdp, k)

    return jax.lax.fori_loop(first, end, iteration, tables)


def _restarted(
    mdps: FiniteMDP, before: Any, after: Any, keys: Array, j: int, longest: int
) -> tuple[Array, Array, Array]:
    """The products of ``AssumptionCheck`` for l = 0..longest, each [longest + 1, M N S, A]."""
    copies = len(keys) // len(mdps)

    def repeated(table: Array) -> Array:
        each = table.reshape(1, len(mdps), mdps.states, mdps.actions)
        return jnp.repeat(each, copies, 1).reshape(1, -1, mdps.actions)

    before, after = jax.tree.map(repeated, (before, after))
    policy = greedy(MOVI.algorithm, before)  # π_j
    drawn = sampler(mdps, keys, copies)

    def run(tables: Any, first: int) -> Any:
        numbers = jnp.asarray(j), jnp.asarray(first)
        return _products(tables, policy, drawn, *numbers, longest=longest)

    start, printed = run(after, j + 1)  # iteration j + 1 is the first to be run again
    _, (assumed, one_more) = run(before, j)
    return jnp.concatenate([start[None], printed[0][:-1]]), assumed, one_more


@partial(jax.jit, static_argnames=("longest",))
def _products(
    tables: Any, policy: Array, mdps: Sampler, j: Array, first: Array, *, longest: int
) -> tuple[Array, tuple[Array, Array]]:
    """ε, and the products of ε and of P_{π_j} ε after each of the iterations first, first + 1, …

    ε = T̂_{π_j} q − T_{π_j} q, where q is the table that the restart begins with and T̂ has the
    samples of iteration ``first``. Iteration k multiplies by P_{π_k} if k > j, and changes the
    tables: P_{j+l:j+1} ε stands at row l if first = j, and at row l − 1 if first = j + 1.
    """
    v = select(tables["q"][0], policy)
    mdp = mdps.mdp
    error = mdp.discount * (mdps.read(first, 1)(v) - mdps.read(first, 0)(v))

    def iteration(carry: Any, k: Array) -> Any:
        tables, xs = carry
        chosen = greedy(MOVI.algorithm, tables)  # π_k
        xs = tuple(jnp.where(k > j, applied(mdp, chosen, x), x) for x in xs)
        tables = iterate(MOVI, tables, mdps.read(k, 1), mdps.mdp, k)
        return (tables, xs), xs

    begin = (tables, (error, applied(mdp, policy, error)))
    return error, jax.lax.scan(iteration, begin, first + jnp.arange(longest + 1))[1]
