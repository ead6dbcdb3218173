"""The five diagnostic environments with an action in [−1, 1]: what SAC learns, in closed form.

With the temperature α the best policy has the density exp(q(s, ·)/α)/∫, and a state is worth
α ln ∫ exp(q(s, a)/α) da: where no action is better that is q + α ln 2, and where q = ±a actions are
±(coth(1/α) − α) on average. A squashed Gaussian comes within 0.02 of both.
"""

import math

import gymnasium as gym
import numpy as np
import pytest

from momentum_rl.runs.config import Config
from momentum_rl.runs.presets import preset_fields
from momentum_rl.spaces import Box, ObservationSpace, Spaces
from momentum_rl.training.train import train
from tests.training.diagnostics import GAMMA, Diagnostic, vector
from tests.training.jax_diagnostics import coin, episodic, zero

ALPHA = 0.5
SETTINGS = {
    **preset_fields("sac"),
    "steps": 2_000,
    "iteration_steps": 500,
    "learning_starts": 100,
    "epsilon_warmup": 1_000,
    "replay_capacity": 2_000,
    "batch_size": 64,
    "hidden": (32,),
    "learning_rate": 1e-2,
    "gamma": GAMMA,
    "final_episodes": 0,
    "checkpoint_every": 0,
}
OPTIONS = {"temperature": ALPHA, "polyak": 0.05}
AVERAGING = {**OPTIONS, "beta_schedule": "constant", "beta": 0.5}
SPACES = Spaces(ObservationSpace((1,), "float32"), Box((-1.0,), (1.0,), (1,)))
AFTER = GAMMA * (1 + ALPHA * math.log(2))
MEAN = 1 / math.tanh(1 / ALPHA) - ALPHA

# by name: where it starts, r(x, t, a), steps, (x, q(x, a) for a of −0.5, 0, 0.5, E a) of each x
CASES = {
    "constant": (zero, lambda x, t, a: 1.0, 1, [(0.0, [1, 1, 1], 0)]),
    "observation": (coin, lambda x, t, a: x, 1, [(-1.0, [-1] * 3, 0), (1.0, [1] * 3, 0)]),
    "two steps": (
        zero,
        lambda x, t, a: 1.0 * (t == 1),
        2,
        [(0.0, [AFTER] * 3, 0), (1.0, [1] * 3, 0)],
    ),
    "action": (zero, lambda x, t, a: a, 1, [(0.0, [-0.5, 0, 0.5], MEAN)]),
    "both": (
        coin,
        lambda x, t, a: a * x,
        1,
        [(-1.0, [0.5, 0, -0.5], -MEAN), (1.0, [-0.5, 0, 0.5], MEAN)],
    ),
}


def host(first, reward, steps):
    """The case as Gymnasium has it."""

    class Continuous(Diagnostic):
        action_space = gym.spaces.Box(-1, 1, (1,), np.float32)
        length = steps

        def first(self):
            return self.coin() if first is coin else 0.0

        def reward(self, action):
            return float(reward(self.x, self.t, action[0]))

    return vector([Continuous])


def fused(first, reward, steps):
    """The case in JAX."""
    return episodic(first, lambda x, t, a: reward(x, t, a[0]), steps)._replace(spaces=SPACES)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    ("algorithm", "make"),
    [
        ("sac", host),
        pytest.param("momentum-sac", host, marks=pytest.mark.slow),
        pytest.param("momentum-sac", fused, marks=pytest.mark.slow),
        pytest.param("sac", fused, marks=pytest.mark.slow),
    ],
)
def test_values_and_actions_are_the_closed_form(algorithm, make, case):
    first, reward, steps, expected = CASES[case]
    options = OPTIONS if algorithm == "sac" else AVERAGING
    config = Config(algorithm, "diagnostic", **SETTINGS, options=options)
    result = train(config, environment=make(first, reward, steps))
    assert result.status == "finished"
    agent, actions = result.agent, np.array([[-0.5], [0], [0.5]], np.float32)
    for x, values, mean in expected:
        seen = np.full((3, 1), x, np.float32)
        for name in {"q", "h"} & agent.params.keys():
            outputs = agent.networks[name].apply({"params": agent.params[name]}, seen, actions)
            wanted = np.broadcast_to(np.array(values, float)[:, None], outputs.shape)
            np.testing.assert_allclose(outputs, wanted, atol=0.15)
        drawn = agent.act(np.full((4_000, 1), x, np.float32), key=0)
        np.testing.assert_allclose(drawn.mean(), mean, atol=0.15)
