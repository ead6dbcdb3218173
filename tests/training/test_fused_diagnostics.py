"""The diagnostic environments in the fused loop: learned values against closed forms."""

import numpy as np
import pytest

from momentum_rl.runs.config import Config
from momentum_rl.training.train import train
from tests.training.jax_diagnostics import JAX_DIAGNOSTICS, one_state
from tests.training.learned import SETTINGS, algorithms, check_learned


@pytest.mark.parametrize(("algorithm", "options"), algorithms(("dqn", "momentum-dqn")))
@pytest.mark.parametrize(
    ("environment", "observations", "values"),
    [case[1:] for case in JAX_DIAGNOSTICS],
    ids=[case[0] for case in JAX_DIAGNOSTICS],
)
def test_learned_values_are_the_closed_form(environment, observations, values, algorithm, options):
    config = Config(algorithm, "diagnostic", **SETTINGS, options=options)
    result = train(config, environment=environment)
    check_learned(result, observations, values, options)


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
    result = train(config, environment=one_state(length, truncate))
    np.testing.assert_allclose(result.agent.values(np.zeros(1, np.float32)), value, atol=0.1)
