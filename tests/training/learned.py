"""What an algorithm has to have learned in the diagnostic environments, and by which settings."""

import numpy as np
import pytest

from momentum_rl.agents.registry import names
from momentum_rl.core.values import Categorical, Quantile
from tests.training.diagnostics import GAMMA

SETTINGS = {
    "steps": 1_500,
    "iteration_steps": 500,
    "learning_starts": 100,
    "replay_capacity": 2_000,
    "batch_size": 32,
    "update_period": 1,
    "sync_period": 50,
    "epsilon_warmup": 1_500,
    "final_episodes": 0,
    "hidden": (32,),
    "loss": "squared",
    "learning_rate": 1e-2,
    "gamma": GAMMA,
}


# The average takes its time to agree that equal actions are equal, the more so the larger α.
HALF = {"beta_schedule": "constant", "beta": 0.5}
SOONER = {"alpha": 0.5, **HALF}
# Every value of the diagnostics is an atom, and no return leaves the support.
ATOMS = {"atoms": 41, "v_min": -2.0, "v_max": 2.0}
OPTIONS = {
    "momentum-munchausen-dqn": SOONER,
    "c51": ATOMS,
    "momentum-c51": {**ATOMS, **HALF},  # mixed with where it began, by the schedule for longer
    "qr-dqn": {"quantiles": 11},
    "momentum-qr-dqn": {"quantiles": 11},
}
FAST = ("dqn", "momentum-dqn", "deep-sql", "deep-dpp", "momentum-munchausen-dqn", "momentum-c51")


def algorithms(fast):
    """Every algorithm of values with its options; those that are not fast go to the slow suite."""
    cases = [(name, OPTIONS.get(name, {})) for name in names() if not name.endswith("sac")] + [
        ("deep-dpp", {"eta": 10.0}),
        ("deep-dpp", {"eta": 10.0, "form": "boltzmann"}),
        ("momentum-dqn", {"h_target": "network"}),
        ("momentum-c51", {**ATOMS, "h_value": "number"}),
    ]
    return [
        pytest.param(
            name,
            options,
            id="-".join([name, *map(str, options.values())]),
            marks=() if name in fast and options == OPTIONS.get(name, {}) else pytest.mark.slow,
        )
        for name, options in cases
    ]


def check_learned(result, observations, values, options):
    """The values of every network, and what acts, against the closed form of the algorithm."""
    assert result.status == "finished"
    x, values = np.array(observations, np.float32)[:, None], np.array(values, float)
    best, algorithm = np.max(values, axis=1), result.agent.about["algorithm"]
    for name in result.agent.params:
        learned = result.agent.values(x, name)
        if algorithm == "deep-dpp":
            # ψ tends to v* at the greedy actions, and to −∞ at the others.
            np.testing.assert_allclose(learned.max(axis=1), best, atol=0.1)
            chosen = np.take_along_axis(values, learned.argmax(axis=1)[:, None], axis=1)[:, 0]
            np.testing.assert_array_equal(chosen, best)
        elif algorithm.endswith("munchausen-dqn"):
            # Other actions have α l₀ less: their gap exceeds 1, so that τ ln π is clipped at l₀.
            less = options.get("alpha", 0.9) * (values < best[:, None])
            np.testing.assert_allclose(learned, values - less, atol=0.1)
        else:
            np.testing.assert_allclose(learned, values, atol=0.1)
            check_distribution(result.agent, name, x, values)


def check_distribution(agent, name, x, values):
    """Returns are certain: all quantiles are equal, and all mass is at one atom (or beside it)."""
    kind, distribution = agent.kinds.get(name), agent.distribution(x, name)
    if isinstance(kind, Quantile):
        np.testing.assert_allclose(
            distribution, np.repeat(values[..., None], kind.n, -1), atol=0.15
        )
    elif isinstance(kind, Categorical):
        near = np.abs(kind.atoms - values[..., None]) < 0.16
        assert np.all((distribution * near).sum(-1) > 0.9)
        np.testing.assert_allclose(distribution.sum(-1), 1, atol=1e-5)
