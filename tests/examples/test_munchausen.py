"""The documented example of a target of one's own, from outside the package."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from movi.training.config import Config
from movi.training.train import train

FILE = Path(__file__).parents[2] / "examples" / "munchausen.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("munchausen", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def test_the_example_is_at_most_thirty_lines():
    assert len(FILE.read_text().splitlines()) <= 30


def test_its_target_is_the_papers_written_out_in_numpy(example):
    q, q2, tau = np.array([0.3, 0.31, -1.0]), np.array([1.0, 0.98, 0.5]), example.TAU
    p, p2 = softmax(q / tau), softmax(q2 / tau)
    for a in range(3):
        expected = (
            0.7
            + 0.9 * np.clip(tau * np.log(p[a]), -1, 0)
            + 0.9 * (p2 * (q2 - tau * np.log(p2))).sum()
        )
        target = example.MUNCHAUSEN_DQN.targets["q"]
        found = target({"q": q[None]}, np.int32(a), 0.7, 0.9, {"q": q2[None]}, 0.0)
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_it_trains_saves_and_acts_like_any_other(example, tmp_path):
    import movi

    config = Config(
        "munchausen-dqn",
        "CartPole-v1",
        steps=300,
        learning_starts=100,
        hidden=(16,),
        evaluation_episodes=1,
    )
    result = train(config, tmp_path / "run", algorithm=example.MUNCHAUSEN_DQN)
    assert result.status == "finished"
    assert movi.load(tmp_path / "run").about["algorithm"] == "munchausen-dqn"
