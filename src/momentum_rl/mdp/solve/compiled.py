"""Compiled sweeps over a whole MDP: backups, their certificate, modified policy iteration.

With a τ the optimum is q^τ_*, of the MDP whose reward has τ times the policy's entropy added: its
optimality operator has τ ln Σ exp(·/τ) in place of the maximum.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from momentum_rl.core.soft import Real, soft_maximum
from momentum_rl.mdp.operators import DeviceMDP, expected, reward_size, select, table_jit
from momentum_rl.mdp.solve.certificates import Aim, Bracket, bracket, rounding


def optimal_bracket(mdp: DeviceMDP, v: Array, backed_up: Array, tau: Real | None = None) -> Bracket:
    """The bracket of q* from any v [S] and its backup r + γ P v [S, A]; or of q^τ_*.

    The A terms exp(·) ≤ 1 of a soft maximum and their sum are off by (A + 8) 2⁻⁵² relatively.
    """
    d = _values(backed_up, tau) - v
    size, discount, unit = reward_size(mdp), mdp.discount[0, 0], rounding(mdp)
    if tau is None:
        return bracket(v, d, size, discount, unit, jnp)
    actions = mdp.rewards.shape[-1]
    near = bracket(v, d, size + tau * np.log(actions), discount, unit, jnp)
    more = tau * (actions + 8) * 2.0**-52 / (1 - discount)
    return near._replace(bound=near.bound + more, floor=near.floor + more)


def _values(q: Array, tau: Real | None) -> Array:
    return jnp.max(q, -1) if tau is None else soft_maximum(q, tau)


def backup(mdp: DeviceMDP, v: Array) -> Array:
    """The backup of every action, r + γ P v, [S, A]."""
    return mdp.rewards + mdp.discount * expected(mdp.successors, mdp.probabilities, v)


@partial(table_jit, static_argnames="partial_sweeps")
def improvements(
    mdp: DeviceMDP,
    v: Array,
    wanted: Aim,
    most: Array,
    partial_sweeps: int,
    tau: Real | None = None,
) -> tuple[Array, Array, Array, Array, Array, Array]:
    """One full sweep that certifies and improves, then a few sweeps of the greedy policy alone.

    With a τ there are none of these, for the greedy policy is not that of q^τ_*.
    From v [S], until the goal or for ``most`` improvements. The last v and what it proves: q, its
    greedy policy, the bound and its floor; and how many improvements were made.
    """

    def carried(v: Array, q: Array, n: Real) -> Any:
        near = optimal_bracket(mdp, v, q, tau)
        return v, q, near.bound > wanted.goal(near.floor, jnp), n

    def unfinished(carry: Any) -> Array:
        _, _, short, n = carry
        return short & (n < most)

    def improve(carry: Any) -> Any:
        v, q, _, n = carry
        policy = jnp.argmax(q, -1)
        rewards, successors, probabilities = (
            select(x, policy) for x in (mdp.rewards, mdp.successors, mdp.probabilities)
        )

        def evaluate(_: int, v: Array) -> Array:
            step = expected(successors[:, None], probabilities[:, None], v)[:, 0]
            return rewards + mdp.discount[:, 0] * step

        v = jax.lax.fori_loop(0, partial_sweeps, evaluate, _values(q, tau))
        return carried(v, backup(mdp, v), n + 1)

    v, q, _, n = jax.lax.while_loop(unfinished, improve, carried(v, backup(mdp, v), 0))
    shift, bound, floor = optimal_bracket(mdp, v, q, tau)
    q = q + shift
    return v, q, jnp.argmax(q, -1), bound, floor, n
