"""Compiled sweeps over a whole MDP: backups, their certificate, modified policy iteration."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from momentum_rl.core.soft import Real
from momentum_rl.mdp.operators import (
    DeviceMDP,
    best,
    chosen,
    expected,
    greedy_index,
    reward_size,
    table_jit,
)
from momentum_rl.mdp.solve.certificates import Aim, Bracket, bracket, rounding


def optimal_bracket(mdp: DeviceMDP, v: Array, backed_up: Array) -> Bracket:
    """The bracket of q* from any v [S] and its backup r + γ P v [S, A] (or [L])."""
    d = best(mdp, backed_up, v.shape[0]) - v
    return bracket(v, d, reward_size(mdp), mdp.discount[0, 0], rounding(mdp), jnp)


def backup(mdp: DeviceMDP, v: Array) -> Array:
    """The backup of every action, r + γ P v, [S, A] (or [L])."""
    discount = mdp.discount if mdp.owners is None else mdp.discount[0, 0]
    return mdp.rewards + discount * expected(mdp.successors, mdp.probabilities, v)


@partial(table_jit, static_argnames="partial_sweeps")
def improvements(
    mdp: DeviceMDP, v: Array, wanted: Aim, most: Array, partial_sweeps: int
) -> tuple[Array, Array, Array, Array, Array, Array]:
    """One full sweep that certifies and improves, then a few sweeps of the greedy policy alone.

    From v [S], until the goal or for ``most`` improvements. The last v and what it proves: q, its
    greedy policy as an index, the bound and its floor; and how many improvements were made.
    """

    def carried(v: Array, q: Array, n: Real) -> Any:
        near = optimal_bracket(mdp, v, q)
        return v, q, near.bound > wanted.goal(near.floor, jnp), n

    def unfinished(carry: Any) -> Array:
        _, _, short, n = carry
        return short & (n < most)

    def improve(carry: Any) -> Any:
        v, q, _, n = carry
        policy = greedy_index(mdp, q, v.shape[0])
        rewards, successors, probabilities = (
            chosen(mdp, x, policy) for x in (mdp.rewards, mdp.successors, mdp.probabilities)
        )

        def evaluate(_: int, v: Array) -> Array:
            step = expected(successors[:, None], probabilities[:, None], v)[:, 0]
            return rewards + mdp.discount[:, 0] * step

        v = jax.lax.fori_loop(0, partial_sweeps, evaluate, best(mdp, q, v.shape[0]))
        return carried(v, backup(mdp, v), n + 1)

    v, q, _, n = jax.lax.while_loop(unfinished, improve, carried(v, backup(mdp, v), 0))
    shift, bound, floor = optimal_bracket(mdp, v, q)
    q = q + shift
    return v, q, greedy_index(mdp, q, v.shape[0]), bound, floor, n
