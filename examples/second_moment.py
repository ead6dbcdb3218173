"""Momentum with a second moment, as Adam has: targets prefer averages that are large for their
spread. An algorithm that nobody published: only an example of what a target of one's own can be.

q → y = r + γ q⁻(s', a*), h → β h⁻ + (1 − β) y its average, and u → β u⁻ + (1 − β) y² the average of
squares; a* = argmax of h / √(u + ε). It acts greedily on h. (u's target is not affine in what it
reads at s', so that in a table it is right on samples only.)

    movi train second_moment:ALGORITHM --env CartPole-v1
    movi sweep second_moment.toml --trust second_moment --out sweep && movi report sweep
"""

import jax.numpy as jnp

import momentum_rl
from momentum_rl.core.targets import AVI

AVERAGED = momentum_rl.momentum(AVI, "second-moment")
EPSILON = 1.0


def scaled(next_values):
    """q(s', a*) with a* greedy for h / √(u + ε)."""
    h, u = next_values["h"][0], next_values["u"][0]
    return next_values["q"][0][jnp.argmax(h / jnp.sqrt(jnp.maximum(u, 0) + EPSILON))]


def squares(values, a, r, discount, v, beta):
    """β u + (1 − β) y²."""
    return beta * values["u"][0][a] + (1 - beta) * (r + discount * v) ** 2


q, h = AVERAGED.targets["q"], AVERAGED.targets["h"]
ALGORITHM = momentum_rl.Algorithm(
    "second-moment",
    {
        "q": momentum_rl.Target(scaled, q.backup),
        "h": momentum_rl.Target(scaled, h.backup),
        "u": momentum_rl.Target(scaled, squares),
    },
    preference="h",
    uses_beta=True,
)
