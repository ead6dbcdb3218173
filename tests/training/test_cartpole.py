"""Learning is real: CartPole-v1 with the shipped defaults."""

import pytest

from movi.runs.config import Config
from movi.training.train import train


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["dqn", "momentum-dqn", "c51"])
def test_four_of_five_seeds_reach_475_over_100_episodes(algorithm):
    means = [
        train(Config(algorithm, "CartPole-v1", seed=seed, evaluation_episodes=100)).evaluation.mean
        for seed in range(5)
    ]
    assert sum(mean >= 475 for mean in means) >= 4, means
