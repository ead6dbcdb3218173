"""Equal parts share one program; anything else does not."""

import jax
import numpy as np
import pytest

import momentum_rl
from momentum_rl.agents.learner import LearnerState
from momentum_rl.plumbing.compilation import shared
from momentum_rl.spaces import ObservationSpace, Spaces
from momentum_rl.training.build import configured_learner
from momentum_rl.training.host_loop import HostLearner

SPACES = Spaces(ObservationSpace((3,), "float32"), actions=2)
CONFIG = momentum_rl.Config(
    "momentum-dqn", "CartPole-v1", hidden=(4,), steps=1_000, options={"kappa": 50}
)


def test_parts_that_cannot_be_hashed_are_made_anew():
    made = shared(lambda parts: [*parts])
    assert made([1, 2]) == made([1, 2]) == [1, 2]
    assert made([1, 2]) is not made([1, 2])
    assert made((1, 2)) is made((1, 2))


def test_a_mistake_in_the_making_is_said_every_time():
    @shared
    def make(n):
        raise TypeError(f"not {n}")

    for _ in range(2):
        with pytest.raises(TypeError, match="not 3"):
            make(3)


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 9},
        {"steps": 2_000},
        {"replay_capacity": 54_321},
        {"epsilon_final": 0.3},
        {"env": "x"},
    ],
    ids=str,
)
def test_runs_that_learn_alike_have_one_learner(change):
    assert configured_learner(CONFIG.replace(**change), SPACES) is configured_learner(
        CONFIG, SPACES
    )


@pytest.mark.parametrize(
    "change",
    [
        {"learning_rate": 2e-3},
        {"optimiser": "sgd"},
        {"optimiser_epsilon": 1e-3},
        {"loss": "huber"},
        {"hidden": (5,)},
        {"kappa": 60},
        {"beta_schedule": "constant"},
        {"reward_clip": 2.0},
        {"algorithm": "momentum-double-dqn"},
    ],
    ids=str,
)
def test_runs_that_learn_otherwise_do_not(change):
    assert configured_learner(CONFIG.replace(**change), SPACES) is not configured_learner(
        CONFIG, SPACES
    )


def test_seeds_share_the_programs_and_nothing_else():
    learner = configured_learner(CONFIG, SPACES).learner
    one, other, again = (HostLearner(learner, seed) for seed in (0, 1, 0))

    def leaves(state: LearnerState) -> list[np.ndarray]:
        return [np.array(leaf) for leaf in jax.tree.leaves(state.online)]

    assert all((a == b).all() for a, b in zip(leaves(one.state), leaves(again.state)))
    assert any((a != b).any() for a, b in zip(leaves(one.state), leaves(other.state)))
    before = leaves(again.state)
    one.sync()  # takes the buffers of its own state over
    assert all((a == b).all() for a, b in zip(before, leaves(again.state)))
