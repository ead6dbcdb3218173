"""The tiny environments of ``diagnostics.py`` as JAX-native ones."""

import jax
import jax.numpy as jnp

from momentum_rl.envs.jax_env import JaxEnvironment, JaxOutcome
from momentum_rl.spaces import ObservationSpace, Spaces
from tests.training.diagnostics import GAMMA

SPACES = Spaces(ObservationSpace((1,), "float32"), 2)


def episodic(first, reward, length=1, truncate=False, after=lambda t: t):
    """Starts at ``first(key)``; then the observation is ``after`` of the time."""

    def begin(key):
        x = jnp.float32(first(key))
        return (x, jnp.int32(0)), x[None]

    def step(key, state, action):
        x, t = state
        gain = jnp.float32(reward(x, t, action))
        t = t + 1
        end = t == length
        x = jnp.float32(after(t))
        again, observation = begin(key)
        new = jax.tree.map(lambda a, b: jnp.where(end, a, b), again, (x, t))
        outcome = JaxOutcome(
            observation=jnp.where(end, observation, x[None]),
            next_observation=x[None],
            reward=gain,
            terminated=end & (not truncate),
            truncated=end & truncate,
        )
        return new, outcome

    return JaxEnvironment(SPACES, begin, step)


def coin(key):
    return jax.random.rademacher(key, ()).astype(jnp.float32)


def zero(key):
    return 0.0


CONSTANT = episodic(zero, lambda x, t, a: 1.0)
OBSERVATION = episodic(coin, lambda x, t, a: x)
TWO_STEPS = episodic(zero, lambda x, t, a: t == 1, length=2)
ACTION = episodic(zero, lambda x, t, a: jnp.where(a == 1, 1.0, -1.0))
BOTH = episodic(coin, lambda x, t, a: jnp.where((a == 1) == (x > 0), 1.0, -1.0))

# name, environment, observations, q* at each
JAX_DIAGNOSTICS = [
    ("constant", CONSTANT, [0.0], [[1, 1]]),
    ("observation", OBSERVATION, [-1.0, 1.0], [[-1, -1], [1, 1]]),
    ("two-steps", TWO_STEPS, [0.0, 1.0], [[GAMMA, GAMMA], [1, 1]]),
    ("action", ACTION, [0.0], [[-1, 1]]),
    ("both", BOTH, [-1.0, 1.0], [[1, -1], [-1, 1]]),
]


def one_state(length, truncate):
    """One state, reward 1 for ever; cut or ended after ``length`` steps."""
    return episodic(zero, lambda x, t, a: 1.0, length, truncate, after=lambda t: 0 * t)
