"""Munchausen-DQN (Vieillard, Pietquin, Geist 2020): a target of your own through the public API.

y = r + α [τ log π(a|s)]_{l0}^0 + γ Σ_b π(b|s') (q(s', b) − τ log π(b|s')),  π = softmax(q⁻ / τ).
"""

import jax
import jax.numpy as jnp

from movi.agents import Algorithm, Target
from movi.training.config import Config
from movi.training.train import train

ALPHA, TAU, FLOOR = 0.9, 0.03, -1.0


def soft_value(next_values):
    """Σ π (q − τ log π) = τ log Σ exp(q / τ), of the newest lagged copy."""
    return TAU * jax.nn.logsumexp(next_values["q"][0] / TAU)


def munchausen(values, a, r, discount, v, beta):
    """The target, given v(s')."""
    log_policy = TAU * jax.nn.log_softmax(values["q"][0] / TAU)[a]
    return r + ALPHA * jnp.clip(log_policy, FLOOR, 0.0) + discount * v


MUNCHAUSEN_DQN = Algorithm("munchausen-dqn", {"q": Target(soft_value, munchausen)})

if __name__ == "__main__":
    print(train(Config("munchausen-dqn", "CartPole-v1"), algorithm=MUNCHAUSEN_DQN).evaluation)
