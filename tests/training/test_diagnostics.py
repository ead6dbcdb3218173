"""The five diagnostic environments, and the one-state one: learned values against closed forms."""

import numpy as np
import pytest

from momentum_rl.runs.config import Config
from momentum_rl.training.train import train
from tests.training.diagnostics import DIAGNOSTICS, GAMMA, OneState, RandomReturn, vector
from tests.training.learned import ATOMS, FAST, HALF, SETTINGS, algorithms, check_learned


@pytest.mark.parametrize(("algorithm", "options"), algorithms(FAST))
@pytest.mark.parametrize(
    ("environment", "observations", "values"),
    DIAGNOSTICS,
    ids=[environment.__name__ for environment, _, _ in DIAGNOSTICS],
)
def test_learned_values_are_the_closed_form(environment, observations, values, algorithm, options):
    config = Config(algorithm, "diagnostic", **SETTINGS, options=options)
    result = train(config, environment=vector([environment]))
    check_learned(result, observations, values, options)


@pytest.mark.parametrize(
    ("algorithm", "options"),
    [("c51", ATOMS), ("momentum-c51", {**ATOMS, **HALF}), ("qr-dqn", {"quantiles": 4})],
)
def test_the_distribution_of_a_random_return_is_the_closed_form(algorithm, options):
    """Half of the mass at −1 and half at 1, and a step before at ∓γ.

    The quantile at the level τ < ½ of such a return, by Huber's loss with its bend at 1, is where
    (1 − τ) d = τ for its distance d from −1: the slope of the other half's loss is 1.
    """
    slowly = {**SETTINGS, "steps": 3_000, "batch_size": 128, "learning_rate": 1e-3}
    config = Config(algorithm, "diagnostic", **slowly, options=options)
    agent = train(config, environment=vector([RandomReturn])).agent
    x = np.array([[0.0], [1.0]], np.float32)
    for name in agent.params:
        np.testing.assert_allclose(agent.values(x, name), np.zeros((2, 2)), atol=0.15)
        learned = agent.distribution(x, name)
        if algorithm == "qr-dqn":
            low = [-1 + tau / (1 - tau) for tau in (1 / 8, 3 / 8)]
            expected = np.array([*low, -low[1], -low[0]])
            np.testing.assert_allclose(learned[1], np.stack([expected] * 2), atol=0.2)
            continue
        for place, size in ((0, GAMMA), (1, 1.0)):
            for side in (-size, size):
                near = np.abs(agent.kinds[name].atoms - side) < 0.26
                np.testing.assert_allclose((learned[place] * near).sum(-1), 0.5, atol=0.12)


@pytest.mark.parametrize(
    ("algorithm", "n_step"), [("dqn", 1), ("momentum-dqn", 1), ("momentum-dqn", 3)]
)
@pytest.mark.parametrize(
    ("length", "truncate", "value"),
    [(3, True, 1 / (1 - 0.5)), (1, False, 1.0)],
    ids=["truncated", "terminated"],
)
def test_truncation_bootstraps_and_termination_does_not(algorithm, n_step, length, truncate, value):
    fields = {**SETTINGS, "gamma": 0.5, "sync_period": 20, "n_step": n_step}
    config = Config(algorithm, "one", **fields)
    result = train(config, environment=vector([lambda: OneState(length, truncate)]))
    np.testing.assert_allclose(result.agent.values(np.zeros(1, np.float32)), value, atol=0.1)
