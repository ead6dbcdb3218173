"""Runs are what they say: recorded under their algorithm's name, continued by their own learner."""

import flax.linen as nn
import jax.numpy as jnp
import optax
import pytest

from movi.agents import registry
from movi.errors import UserError
from movi.targets import AVI, Algorithm, Target, greedy_value, momentum
from movi.training.config import Config
from movi.training.run_files import read_config
from movi.training.train import train

FIELDS = {
    "steps": 120,
    "iteration_steps": 60,
    "checkpoint_every": 40,
    "learning_starts": 20,
    "replay_capacity": 60,
    "batch_size": 4,
    "hidden": (4,),
    "evaluation_episodes": 0,
}
HOST = Config("momentum-dqn", "CartPole-v1", **FIELDS)
FUSED = Config("momentum-dqn", "gymnax/CartPole-v1", **FIELDS)
OWN = momentum(AVI, "own-momentum")


@pytest.fixture(autouse=True)
def _restored(monkeypatch):
    monkeypatch.setattr(registry, "_REGISTERED", dict(registry._REGISTERED))


@pytest.mark.parametrize("config", [HOST, FUSED], ids=["host", "fused"])
def test_a_run_is_recorded_under_the_name_of_the_algorithm_that_it_trains(config, tmp_path):
    result = train(config, tmp_path / "run", algorithm=OWN)
    assert read_config(tmp_path / "run").algorithm == "own-momentum"
    assert result.agent.about["algorithm"] == "own-momentum"


def test_an_algorithm_under_the_name_of_another_is_refused(tmp_path):
    impostor = Algorithm("dqn", {"q": Target(greedy_value, AVI.targets["q"].backup)})
    with pytest.raises(UserError, match="'dqn' is one of this package's, expected another name"):
        train(HOST.replace(algorithm="dqn"), tmp_path / "run", algorithm=impostor)
    assert not (tmp_path / "run").exists()


class Tanh(nn.Module):
    """Of the shapes of the config's network, with another activation."""

    @nn.compact
    def __call__(self, x):
        return nn.Dense(2)(jnp.tanh(nn.Dense(4)(x)))


class Relu(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(2)(nn.relu(nn.Dense(4)(x)))


def begun(config, out, **own):
    """A run that has its first half."""
    train(config.replace(steps=60, kappa=3), out, **own)


def halved(r):
    def backup(values, a, reward, discount, v, beta):
        return r * reward + discount * v

    return Algorithm("halved", {"q": Target(greedy_value, backup)})


@pytest.mark.parametrize("config", [HOST, FUSED], ids=["host", "fused"])
@pytest.mark.parametrize(
    ("first", "then"),
    [
        ({"optimiser": optax.adam(1e-3)}, {"optimiser": optax.adam(1e-2)}),
        ({"network": Relu()}, {"network": Tanh()}),
        ({"optimiser": optax.adam(1e-3)}, {}),
    ],
    ids=["optimiser", "network", "the config's optimiser"],
)
def test_a_run_does_not_go_on_with_another_learner_of_the_same_shapes(
    config, first, then, tmp_path
):
    run = tmp_path / "run"
    begun(config, run, **first)
    before = (run / "metrics.jsonl").read_bytes()
    with pytest.raises(UserError, match="trained with another algorithm, network, optimiser or"):
        train(config.replace(kappa=3), run, **then)
    assert (run / "metrics.jsonl").read_bytes() == before
    assert train(config.replace(kappa=3), run, **first).step == 120


def test_a_run_does_not_go_on_with_another_algorithm_of_the_same_name(tmp_path):
    config = HOST.replace(algorithm="halved")
    train(config.replace(steps=60), tmp_path / "run", algorithm=halved(0.5))
    with pytest.raises(UserError, match="trained with another algorithm"):
        train(config, tmp_path / "run", algorithm=halved(0.25))


def test_a_run_of_an_algorithm_that_nobody_knows_is_one_line(tmp_path):
    train(HOST.replace(steps=60), tmp_path / "run", algorithm=OWN)
    registry._REGISTERED.pop("own-momentum")
    with pytest.raises(UserError, match="'own-momentum', expected one of dqn"):
        train(read_config(tmp_path / "run"), tmp_path / "run")
