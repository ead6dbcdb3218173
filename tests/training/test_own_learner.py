"""Runs are what they say: recorded under their algorithm's name, continued by their own learner."""

from dataclasses import dataclass, replace

import flax.linen as nn
import jax.numpy as jnp
import optax
import pytest

from momentum_rl.agents import registry
from momentum_rl.core.options import Options
from momentum_rl.core.targets import AVI, Algorithm, Target, greedy_value, momentum
from momentum_rl.errors import UserError
from momentum_rl.runs.config import Config
from momentum_rl.runs.files import read_config
from momentum_rl.training.train import train

FIELDS = {
    "steps": 120,
    "iteration_steps": 60,
    "checkpoint_every": 40,
    "learning_starts": 20,
    "replay_capacity": 60,
    "batch_size": 4,
    "hidden": (4,),
    "final_episodes": 0,
}
HOST = Config("momentum-dqn", "CartPole-v1", **FIELDS)
FUSED = Config("momentum-dqn", "gymnax/CartPole-v1", **FIELDS)
OWN = momentum(AVI, "own-momentum")


@dataclass(frozen=True)
class NoBeta(Options):
    def algorithm(self):
        return OWN


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


def begun(config, out, **parts):
    """A run that has its first half."""
    train(config.replace(steps=60, kappa=3), out, **parts)


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


def test_a_run_that_has_ended_is_not_the_result_of_another_learner(tmp_path):
    run, config = tmp_path / "run", HOST.replace(steps=60)
    train(config, run, optimiser=optax.adam(1e-3))
    with pytest.raises(UserError, match="trained with another algorithm, network, optimiser or"):
        train(config, run, optimiser=optax.sgd(9.0))
    assert train(config, run, optimiser=optax.adam(1e-3)).loop is None


def test_an_algorithm_of_ones_own_keeps_the_options_that_were_given(tmp_path):
    config = HOST.replace(beta_schedule="constant", beta=0.9, steps=60)
    assert train(config, algorithm=OWN).metrics[-1]["beta"] == 0.9
    with pytest.raises(UserError, match="own-dqn has no 'beta"):
        train(config, algorithm=replace(AVI, name="own-dqn"))


def test_options_without_beta_for_an_algorithm_with_one_are_refused():
    with pytest.raises(UserError, match=r"depends on β, but its options have none; .*Averaging"):
        train(HOST.replace(algorithm="no-beta"), algorithm=NoBeta)


def test_networks_are_given_for_each_or_none():
    with pytest.raises(UserError, match="network: of q, expected one for each of q, h"):
        train(HOST, network={"q": Relu()})


def test_a_support_that_is_too_narrow_is_logged_and_warned_of(caplog):
    options = {"atoms": 5, "v_min": -0.5, "v_max": 0.5}
    for config in (HOST, FUSED):
        changed = replace(config, algorithm="momentum-c51", options=options)
        assert train(changed).metrics[-1]["clipped_q"] > 0.5
        assert caplog.text.count("beyond v_min or v_max, expected < 1 %") == 1
        caplog.clear()
    wide = replace(changed, options={"atoms": 5, "v_min": -1e6, "v_max": 1e6})
    assert train(wide).metrics[-1]["clipped_q"] == 0
    assert "beyond v_min or v_max" not in caplog.text


def test_a_minibatch_of_too_many_atoms_is_said_before_anything_is_written(tmp_path):
    changed = replace(HOST, algorithm="c51", options={"atoms": 2_000_000})
    with pytest.raises(UserError, match="minibatch of 4: "):
        train(changed, tmp_path / "run")
    assert not (tmp_path / "run").exists()


class StateView(nn.Module):
    """Zeros of some shape for each observation."""

    shape: tuple

    @nn.compact
    def __call__(self, x):
        bias = self.param("bias", nn.initializers.zeros, self.shape)
        return jnp.zeros((len(x), *self.shape)) + bias


@pytest.mark.parametrize(
    ("algorithm", "network", "says"),
    [
        ("dqn", StateView((3,)), r"q gives \(1, 3\) for one state, expected \(1, 2\)"),
        ("dqn", StateView(()), r"q gives \(1,\) for one state, expected \(1, 2\)"),
        ("dqn", StateView((2, 1)), r"q gives \(1, 2, 1\) for one state, expected \(1, 2\)"),
        ("c51", StateView((2,)), r"q gives \(1, 2\) for one state, expected \(1, 2, 201\)"),
        (
            "momentum-dqn",
            {"q": StateView((1,)), "h": StateView((2,))},
            r"q gives \(1, 1\) for one state, expected \(1, 2\)",
        ),
    ],
)
@pytest.mark.parametrize("config", [HOST, FUSED], ids=["host", "fused"])
def test_a_network_that_has_not_a_value_for_each_action_is_refused(
    config, algorithm, network, says, tmp_path
):
    """Before: three values for two actions trained, and the agent always took the third."""
    with pytest.raises(UserError, match=f"network: {says}"):
        train(config.replace(algorithm=algorithm), tmp_path / "run", network=network)
    assert not (tmp_path / "run").exists()
    if algorithm == "dqn":
        run = train(config.replace(algorithm="dqn"), network=StateView((2,)))
        assert run.status == "finished"
