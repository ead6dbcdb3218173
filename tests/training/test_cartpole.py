"""Learning is real: CartPole-v1 with the shipped defaults, and C51 with CleanRL's."""

from pathlib import Path

import pytest

from momentum_rl.runs.config import Config
from momentum_rl.runs.presets import preset_fields
from momentum_rl.runs.sweep import read_sweep_file
from momentum_rl.training.train import train

CLEANRL = Path(__file__).parents[2] / "paper" / "evidence" / "12-cartpole.toml"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("algorithm", "preset"),
    [("dqn", "control"), ("momentum-dqn", "control")],
)
def test_four_of_five_seeds_reach_475_over_100_episodes(algorithm, preset):
    fields = {**preset_fields(preset), "final_episodes": 100}
    check_learning(Config(algorithm, "CartPole-v1", **fields))


@pytest.mark.slow
def test_c51_learns_with_cleanrls_settings():
    """As the model cards of its published agents print them."""
    (cell,) = read_sweep_file(CLEANRL).cells
    config = cell.config
    assert (config.options.atoms, config.options.v_min, config.options.v_max) == (101, -100, 100)
    assert (config.hidden, config.batch_size, config.optimiser) == ((120, 84), 128, "adam")
    for step, epsilon in {0: 1.0, 125_000: 0.525, 250_000: 0.05, 500_000: 0.05}.items():
        assert float(config.epsilon_schedule(step)) == pytest.approx(epsilon, abs=1e-6)
    check_learning(config)


def check_learning(config):
    means = [train(config.replace(seed=seed)).evaluation.mean for seed in range(5)]
    assert sum(mean >= 475 for mean in means) >= 4, means
