"""Beyond the paper: which β is best for an average that has errors of its own?

MoVI from samples, whose h gets Gaussian errors η_k of a given share of q's noise in every
iteration: the loss of its policies under many constant β, under β_k = k/(k+1), and under what
follows from the law of `momentum_rl.planning.averaging`.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from momentum_rl.core.schedules import Capped, Mean
from momentum_rl.errors import UserError
from momentum_rl.mdp.families import Maze
from momentum_rl.mdp.model import FiniteMDP
from momentum_rl.mdp.solve.regularised import certain_optimum
from momentum_rl.planning.averaging import best_beta
from momentum_rl.planning.engine import (
    Sampler,
    greedy,
    member_keys,
    sampler,
    scheme,
    start,
    update,
)
from momentum_rl.planning.theory import batch_losses, trace
from paper.tables.family import sparse_rewards

FORGETTING = 0.99
"""Of what the measured β has seen, what it keeps in an iteration: one setting for all problems."""
EVERY = 5
"""Iterations between two policies that are judged."""


def problems(
    garnets: Mapping[float, FiniteMDP], discount: float, seed: int
) -> dict[str, FiniteMDP]:
    """Garnets by γ; and with one γ, the same with sparse rewards, and mazes."""
    named = {f"Garnets γ = {gamma:g}": mdps for gamma, mdps in garnets.items()}
    some = garnets[discount]
    mazes = Maze(size=5, discount=discount, seed=seed).batch(len(some))
    sparse = sparse_rewards(some, seed)
    return {**named, f"sparse γ = {discount:g}": sparse, f"mazes γ = {discount:g}": mazes}


class Noise(NamedTuple):
    """How q fluctuates in the last part of a run with an exact average."""

    variance: float
    """a: its variance about its mean."""
    new: float
    """Half the mean square of q_k − q_{k−1}: the part of it that is new in each iteration."""


def noise(mdps: FiniteMDP, iterations: int, settled: int, seed: int) -> Noise:
    """Measured on MoVI with β_k = k/(k+1) and no errors of h."""
    q = trace(mdps, scheme("movi"), iterations, seed=seed).q[settled:]
    return Noise(float(q.var(0).mean()), float((np.diff(q, axis=0) ** 2).mean() / 2))


class Columns(NamedTuple):
    """What is run side by side, with common samples and common η_k / σ_η."""

    ratios: list[float]
    """σ_η / σ_q."""
    names: list[str]
    """The constant β, or law, new, mean, capped or measured."""
    rates: np.ndarray
    """β_k, [K, C]; −1 where it is measured."""


def columns(
    betas: Sequence[float], ratios: Sequence[float], noise: Noise, iterations: int
) -> Columns:
    """Every schedule at every size of the errors of h."""
    k = np.arange(1, iterations + 1)
    mean = np.array([Mean()(int(i)) for i in k])
    names: list[str] = []
    rates: list[np.ndarray] = []
    for ratio in ratios:
        own = ratio**2 * noise.variance
        law, new = best_beta(noise.variance, own), best_beta(noise.new, own)
        limited = mean if law == 1 else np.array([Capped(Mean(), law)(int(i)) for i in k])
        schedules: Mapping[str, Any] = {
            **{f"{beta:g}": beta for beta in betas},
            "law": mean if law == 1 else law,  # without errors the law says 1, as the mean tends to
            "new": mean if new == 1 else new,
            "mean": mean,
            "capped": limited,
            "measured": -1.0,
        }
        names += schedules
        rates += [np.broadcast_to(rate, k.shape) for rate in schedules.values()]
    each = len(names) // len(ratios)
    return Columns(np.repeat(ratios, each).tolist(), names, np.stack(rates, 1))


@partial(jax.jit, static_argnames="members")
def _policies(
    mdps: Sampler, keys: Array, sizes: Array, rates: Array, *, members: int
) -> tuple[Array, Array]:
    """The policies of iterations 1..K, [K, C, N], and the last β of each column."""
    of, normal = scheme("movi").algorithm, jax.random.normal
    shape = mdps.mdp.rewards.shape
    cells = (shape[0] // members, shape[1])
    tables = {name: jnp.stack([x] * len(sizes)) for name, x in start(of, *shape).items()}

    def iteration(carry: Any, now: Any) -> Any:
        tables, gain, moved, own, seen = carry
        k, rate = now
        # The measured β: a Kalman filter's gain, from q's steps and h's errors so far.
        ratio = jnp.where(seen > 1, 2 * own / jnp.maximum(moved, 1e-300), 0.0)
        gain = (gain + ratio) / (1 + gain + ratio)
        beta = jnp.where(rate < 0, 1 - gain, rate)
        read = mdps.read(k, 1)
        drawn = jax.vmap(lambda key: normal(jax.random.fold_in(key, k), cells))(keys)
        drawn = drawn.reshape(shape)

        def step(tables: Any, beta: Array, size: Array) -> Any:
            used = greedy(of, tables)
            after = update(of, tables, read, mdps.mdp, beta).tables
            change = after["q"][0] - tables["q"][0]
            after["h"] = after["h"] + size * drawn
            return after, used, (change**2).mean(), ((size * drawn) ** 2).mean()

        tables, used, change, error = jax.vmap(step)(tables, beta, sizes)
        moved, own, seen = (
            FORGETTING * x + y for x, y in ((moved, change), (own, error), (seen, 1))
        )
        return (tables, gain, moved, own, seen), used.astype(jnp.uint8)

    zero = jnp.zeros(len(sizes))
    carry = (tables, zero + 1, zero, zero, 0.0)
    (_, gain, *_), used = jax.lax.scan(iteration, carry, (jnp.arange(1, len(rates) + 1), rates))
    return used, jnp.where(rates[-1] < 0, 1 - gain, rates[-1])


def losses_by_beta(
    mdps: FiniteMDP,
    betas: Sequence[float],
    ratios: Sequence[float],
    iterations: int,
    settled: int,
    *,
    seed: int = 0,
) -> list[dict[str, Any]]:
    """A row for every schedule and size: its mean loss from ``settled`` on, and on the way."""
    if not 0 < settled < iterations:
        raise UserError(f"settled: {settled}, expected between 0 and the iterations, {iterations}")
    size = noise(mdps, iterations, settled, seed + 1)
    side = columns(betas, ratios, size, iterations)
    with jax.enable_x64(True):
        used, last = _policies(
            sampler(mdps, member_keys(seed, len(mdps))),
            member_keys(seed + 2, len(mdps)),
            np.sqrt(size.variance) * np.array(side.ratios),
            side.rates,
            members=len(mdps),
        )
    used = np.asarray(used).reshape(iterations, len(side.names), len(mdps), -1)
    best = certain_optimum(mdps).q

    def loss(policies: np.ndarray) -> np.ndarray:  # [n, C, M, S] to [C], its mean
        with ThreadPoolExecutor() as pool:
            return batch_losses(mdps, best, policies.astype(np.int64), pool).l1.mean((0, 2))

    marks = [mark for mark in (10, 20, 50, 100, 200, 500, 1000, 2000) if 2 * mark < iterations]
    spans = [(mark, 2 * mark) for mark in marks]
    means = [i for i, name in enumerate(side.names) if name == "mean"]
    settled_loss = loss(used[settled::EVERY])
    rows = [
        {
            "schedule": name,
            "ratio": ratio,
            "beta": beta,
            "from": settled,
            "to": iterations,
            "loss": x,
        }
        for name, ratio, beta, x in zip(side.names, side.ratios, np.asarray(last), settled_loss)
    ]
    for begin, end in spans:
        step = max(1, (end - begin) // 20)
        for i, x in zip(means, loss(used[begin:end:step][:, means])):
            rows.append({**rows[i], "from": begin, "to": end, "loss": x})
    return rows
