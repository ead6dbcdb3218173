"""The study of "Leverage the Average" (Vieillard et al. 2020, appendix D): a grid of λ and τ.

Sampled MD-VI on Garnets for every pair of weights, with and without regularised evaluation, all on
the same samples and in one compiled program: λ and τ are arguments of it, not constants in it.
Beside each loss stands what the paper's theorem gives for it; for a plain evaluation, what it would
give.
"""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from momentum_rl.core.family import mirrored, weights
from momentum_rl.errors import UserError, check_count, check_seed
from momentum_rl.mdp.checks import require_batch
from momentum_rl.mdp.model import FiniteMDP
from momentum_rl.mdp.solve.regularised import certain_optimum
from momentum_rl.planning.engine import (
    Sampler,
    exactly,
    member_keys,
    policy,
    sampler,
    scheme,
    start,
    state_values,
    update,
)
from momentum_rl.planning.theory import (
    Losses,
    approximate_value_iteration,
    batch_losses,
    largest_value,
    trace,
)
from momentum_rl.plumbing.progress import display
from momentum_rl.plumbing.sizes import require
from paper.tables.family_bounds import averaged_errors

REFERENCES = ("avi", "sql", "movi")
"""What the grid's corner λ = τ = 0 stands for: AVI has neither weight, SQL and MoVI are the limits
λ → 0 at τ = 0 with a regularised and with a plain evaluation."""
EVALUATIONS = ("regularised", "plain")


class Row(NamedTuple):
    """One scheme of the study at the iterations that are evaluated; arrays [points, M]."""

    scheme: str
    """md-vi, or one of ``REFERENCES``."""
    evaluation: str
    """regularised or plain."""
    lam: float
    """λ."""
    tau: float
    """τ."""
    relative: np.ndarray
    """‖q^τ_* − q^τ_{π_k}‖₁ / ‖q^τ_*‖₁."""
    sup: np.ndarray
    """‖q^τ_* − q^τ_{π_k}‖∞."""
    bound: np.ndarray
    """What the theorem gives, or would give, for it."""


def sparse_rewards(mdps: FiniteMDP, seed: int, share: float = 0.1) -> FiniteMDP:
    """The MDPs with rewards uniform in (0, 1) at a share of the states, drawn without replacement.

    All actions of a state have the same; MDP i depends on (seed, i) alone.
    """
    many = max(1, round(share * mdps.states))
    rewards = np.zeros(mdps.rewards.shape)
    for i, mine in enumerate(rewards):
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(i, 1)))
        mine[rng.choice(mdps.states, many, replace=False)] = rng.uniform(0, 1, (many, 1))
    return FiniteMDP(mdps.successors, mdps.probabilities, rewards, mdps.discount)


def looked_at(iterations: int, points: int = 50) -> np.ndarray:
    """Which iterations are evaluated: at most ``points``, evenly spaced in log k, with both ends.

    >>> looked_at(800, 6).tolist()[::5], len(looked_at(800, 6))
    ([1, 800], 6)
    """
    return np.unique(np.geomspace(1, iterations, points).round().astype(int))


def study(
    mdps: FiniteMDP,
    lams: Sequence[float],
    taus: Sequence[float],
    iterations: int = 800,
    *,
    seed: int = 0,
    progress: bool = False,
) -> tuple[np.ndarray, list[Row]]:
    """The iterations that are evaluated, and a row of results for every scheme.

    Args:
      mdps: a batch.
      lams: values of λ.
      taus: values of τ. Pairs of zeros are left out: see ``REFERENCES``.
      iterations: K.
      seed: MDP m draws from (seed, m).
      progress: whether to draw a bar on a terminal.
    """
    members = require_batch(mdps)
    check_count("iterations", iterations)
    check_seed(seed)
    pairs = [(float(lam), float(tau)) for tau in taus for lam in lams if lam or tau]
    if not pairs:
        raise UserError("lambdas and taus: no pair above 0, expected at least one")
    for lam, tau in pairs:
        weights(lam, tau)
    cells = members * mdps.states * mdps.actions
    require(f"{len(pairs)} pairs", memory=8 * cells * (12 * len(pairs) + 3 * iterations))
    at = looked_at(iterations)
    optimal = {tau: certain_optimum(mdps, tau).q for _, tau in [(0.0, 0.0), *pairs]}
    total = len(EVALUATIONS) * len(at) + len(REFERENCES)
    with (
        ThreadPoolExecutor(os.cpu_count()) as pool,
        display("evaluations", total, show=progress) as shown,
    ):

        def row(name: str, how: str, lam: float, tau: float, loss: Losses, bound: Any) -> Row:
            size = np.abs(optimal[tau]).mean((-2, -1))
            return Row(name, how, lam, tau, loss.l1 / size, loss.sup, bound)

        rows = []
        for name in REFERENCES:
            run = trace(mdps, scheme(name), iterations, seed=seed)
            loss = batch_losses(mdps, optimal[0.0], run.policies[at - 1], pool)
            if name == "avi":
                bound = approximate_value_iteration(mdps, run)
            else:
                bound = averaged_errors(mdps, run, 0.0, unproven=True)
            how = "plain" if name == "movi" else "regularised"
            rows.append(row(name, how, 0.0, 0.0, loss, bound[at - 1]))
            shown.advance()
        for how in EVALUATIONS:
            losses: list[list[Losses]] = [[] for _ in pairs]
            sums = []
            for policies, error in _runs(mdps, pairs, at, how == "regularised", seed):
                for tau in dict.fromkeys(taus):
                    mine = [i for i, pair in enumerate(pairs) if pair[1] == tau]
                    if mine:
                        lost = batch_losses(mdps, optimal[tau], policies[mine], pool, float(tau))
                        for place, i in enumerate(mine):
                            losses[i].append(Losses(lost.l1[place], lost.sup[place]))
                sums.append(error)
                shown.advance()
            for i, (lam, tau) in enumerate(pairs):
                loss = Losses(*(np.stack(column) for column in zip(*losses[i])))
                error = np.stack([one[i] for one in sums])
                rows.append(row("md-vi", how, lam, tau, loss, _bound(mdps, lam, tau, at, error)))
    return at, rows


def _bound(
    mdps: FiniteMDP, lam: float, tau: float, at: np.ndarray, errors: np.ndarray
) -> np.ndarray:
    """The theorem's constants around its error term, ‖Σ ε_j‖ or Σ γ^{k−j} ‖E^β_j‖, [points, M]."""
    _, beta = weights(lam, tau)
    discount, n = mdps.discount, at[:, None]
    gap, entropy = 1 - discount, (tau or lam) * np.log(mdps.actions)
    v_max = largest_value(mdps) + entropy / gap
    if tau == 0:
        return (2 * errors + 4 * v_max) / (n * gap)
    k = np.arange(at[-1])
    # Σ_{j≤k} γ^{k−j} β^j, by its recursion
    series = np.empty((at[-1], len(discount)))
    series[0] = 1
    for i in k[1:]:
        series[i] = discount * series[i - 1] + beta**i
    return 2 / gap * errors + (1 + (1 - beta) / gap) * series[at - 1] * v_max


def _runs(
    mdps: FiniteMDP,
    pairs: Sequence[tuple[float, float]],
    at: np.ndarray,
    regularised: bool,
    seed: int,
) -> Any:
    """For each of these iterations n: π_n [pairs, M, S, A]; its bound's error term [pairs, M]."""
    members, shape = len(mdps), (len(pairs), len(mdps), mdps.states, mdps.actions)
    with jax.enable_x64(True):
        drawn = sampler(mdps, member_keys(seed, members))
        rows = drawn.mdp.rewards.shape
        both = np.array([weights(*pair) for pair in pairs])
        knobs = jnp.asarray(np.column_stack([both, [tau for _, tau in pairs]]))  # κ, β, τ
        one = start(mirrored(1.0, 1.0, 0.0, regularised), *rows)
        tables = jax.tree.map(lambda x: jnp.broadcast_to(x, (len(pairs), *x.shape)), one)
        average = jnp.zeros((len(pairs), *rows))
        state = tables, average, jnp.zeros((len(pairs), members))
    done = 0
    for n in at:
        with jax.enable_x64(True):
            state, policies, terms = _advance(
                state,
                jnp.asarray(done + 1),
                jnp.asarray(int(n)),
                drawn,
                knobs,
                regularised=regularised,
            )
        done = int(n)
        yield np.asarray(policies).reshape(shape), np.asarray(terms)


@partial(jax.jit, static_argnames="regularised", donate_argnames="state")
def _advance(
    state: Any, first: Array, last: Array, mdps: Sampler, knobs: Array, *, regularised: bool
) -> tuple[Any, Array, Array]:
    """Iterations first..last of all pairs; the policies of the last, and its bound's error term."""
    mdp, members = mdps.mdp, mdps.keys.shape[0]
    gamma = jnp.broadcast_to(mdp.discount[:, 0], mdp.rewards.shape[:1]).reshape(members, -1)[:, 0]
    exact = exactly(mdp)

    def iteration(k: Array, state: Any) -> Any:
        sampled = mdps.read(k, 1)

        def one(tables: Any, average: Array, term: Array, knob: Array) -> Any:
            kappa, beta, tau = knob
            algorithm = mirrored(kappa, beta, tau, regularised)
            updated = update(algorithm, tables, sampled, mdp, 0.0)
            seen, read = (state_values(algorithm, x) for x in (updated.seen, updated.read))
            error = mdp.discount * (seen - exact(read))
            average = beta * average + jnp.where(tau > 0, 1 - beta, 1.0) * error
            norm = jnp.max(jnp.abs(average.reshape(members, -1)), 1)
            term = jnp.where(tau > 0, gamma * term + norm, norm)
            return updated.tables, average, term

        tables, average, term = state
        return jax.vmap(one)(tables, average, term, knobs)

    def used(tables: Any, knob: Array) -> Array:
        return policy(mirrored(knob[0], knob[1], knob[2], regularised), tables)

    state = jax.lax.fori_loop(first, last, iteration, state)
    before = state[2]
    policies = jax.vmap(used)(state[0], knobs)
    state = iteration(last, state)
    # Theorem 1 bounds π_n with ε_1..ε_n, Theorem 2 with ε_1..ε_{n−1}.
    return state, policies, jnp.where(knobs[:, 2:] > 0, before, state[2])
