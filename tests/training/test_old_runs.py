"""Run directories of earlier versions are read and go on.

``run_of_0_1_0`` was made by version 0.1.0: Config("momentum-dqn", "CartPole-v1", steps=240,
iteration_steps=60, save_every=60, checkpoint_every=60, learning_starts=50, replay_capacity=120,
batch_size=8, hidden=(8,), final_episodes=2, beta_schedule="constant", beta=0.9,
shared_batch=True), interrupted after 151 steps.
"""

import shutil
from pathlib import Path

import numpy as np
import pytest

import momentum_rl
from momentum_rl.agents.algorithms import MomentumDQN
from momentum_rl.errors import UserError
from momentum_rl.runs.config import Config
from momentum_rl.runs.files import read_config, read_metrics
from momentum_rl.training.train import train

OLD = Path(__file__).parent / "run_of_0_1_0"


@pytest.fixture
def run(tmp_path):
    return Path(shutil.copytree(OLD, tmp_path / "run"))


def test_its_config_has_the_options_where_they_belong(run):
    config = read_config(run)
    assert config.options == MomentumDQN("constant", beta=0.9, shared_batch=True)
    assert (config.algorithm, config.hidden, config.steps) == ("momentum-dqn", (8,), 240)


def test_its_agent_acts(run):
    agent = momentum_rl.load(run)
    assert agent.acts_on == "h"
    assert agent.act(np.zeros(4, np.float32)) in (0, 1)


def test_it_goes_on_to_where_a_run_of_today_ends(run, tmp_path):
    config = read_config(run)
    result = train(config, run)
    assert (result.status, result.step) == ("finished", 240)
    today = train(config, tmp_path / "today")
    for old, new in zip(read_metrics(run), today.metrics):
        assert old.keys() <= new.keys()  # today's rows have more
        for name, value in old.items():
            expected = new[name] if value is None else pytest.approx(new[name], rel=1e-3)
            assert value == expected, name
    for name in ("q", "h"):
        x = np.linspace(-1, 1, 40, dtype=np.float32).reshape(10, 4)
        np.testing.assert_allclose(
            result.agent.values(x, name), today.agent.values(x, name), rtol=1e-3, atol=1e-4
        )


def test_it_does_not_go_on_with_other_options(run):
    config = read_config(run).replace(beta=0.5)
    with pytest.raises(UserError, match=r"another run: beta is 0.9 there and 0.5 here"):
        train(config, run)


def test_a_dqn_of_the_old_format_leaves_what_it_did_not_use_behind():
    text = (OLD / "config.json").read_text().replace("momentum-dqn", "dqn")
    config = Config.from_json(text)
    assert config.options.to_json() == {}
