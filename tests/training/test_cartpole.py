"""Learning is real: CartPole-v1 with the shipped defaults, and C51 with the published ones."""

import pytest

from momentum_rl.runs.config import Config
from momentum_rl.runs.presets import preset_fields
from momentum_rl.training.train import train


@pytest.mark.slow
@pytest.mark.parametrize(
    ("algorithm", "preset"),
    [("dqn", "control"), ("momentum-dqn", "control"), ("c51", "c51-cleanrl")],
)
def test_four_of_five_seeds_reach_475_over_100_episodes(algorithm, preset):
    own = {**preset_fields(preset), "final_episodes": 100}
    means = [
        train(Config(algorithm, "CartPole-v1", seed=seed, **own)).evaluation.mean
        for seed in range(5)
    ]
    assert sum(mean >= 475 for mean in means) >= 4, means
