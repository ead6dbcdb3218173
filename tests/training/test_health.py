"""What a run measures of itself, and the warnings that follow from it."""

import re
from dataclasses import replace
from pathlib import Path

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import safetensors.numpy

from momentum_rl import load
from momentum_rl.agents.agent import Agent
from momentum_rl.agents.learner import dormant, update_size
from momentum_rl.agents.networks import NetworkSpec, make_network
from momentum_rl.envs.gymnax_env import make_gymnax
from momentum_rl.envs.jax_env import HostedEnvironment
from momentum_rl.envs.make import make_environment
from momentum_rl.runs.config import Config
from momentum_rl.runs.files import read_config, read_metrics
from momentum_rl.spaces import ObservationSpace, Spaces
from momentum_rl.training.evaluation import Discounted, evaluate
from momentum_rl.training.loop import Warnings
from momentum_rl.training.train import train
from tests.training.diagnostics import OneState, Scripted, vector
from tests.training.runs import TINY, broken

REPOSITORY = Path(__file__).parents[2]
HOST = Config("momentum-dqn", "CartPole-v1", **{**TINY, "checkpoint_every": 45})
LOOPS = {"host": HOST, "fused": replace(HOST, env="gymnax/CartPole-v1")}


@pytest.fixture
def often(monkeypatch):
    """Looks at every iteration's end, however short it is."""
    monkeypatch.setattr("momentum_rl.training.loop.EVERY", 1)


# The bias ----------------------------------------------------------------------------------------


class Constant(nn.Module):
    """The same value for every action, at every observation."""

    value: float
    actions: int

    @nn.compact
    def __call__(self, x):
        bias = self.param("value", nn.initializers.constant(self.value), (self.actions,))
        return jnp.zeros((x.shape[0], self.actions)) + bias


def constant_agent(value, spaces):
    network = Constant(value, spaces.actions)
    shape = (1, *spaces.observation.shape)
    params = network.init(jax.random.key(0), jnp.zeros(shape))["params"]
    return Agent(network, {"q": params}, spaces)


def test_the_bias_is_the_value_less_the_discounted_return_from_each_step():
    """Rewards 1 for T = 10 steps: G_t = (1 − γ^(T−t))/(1 − γ), summed one by one."""
    environment = vector([lambda: OneState(10, truncate=False)] * 2)
    agent = constant_agent(3.0, environment.spaces)
    played = evaluate(agent, environment, 4, discounted=Discounted(0.9))
    assert played.lengths == [10] * 4
    returns = [sum(0.9**i for i in range(10 - t)) for t in range(10)]
    assert played.bias == pytest.approx(3.0 - np.mean(returns), abs=1e-5)


def test_episodes_that_are_cut_have_no_bias():
    environment = vector([lambda: OneState(10, truncate=True)])
    agent = constant_agent(3.0, environment.spaces)
    assert evaluate(agent, environment, 2, discounted=Discounted(0.9)).bias is None


def test_the_bias_is_about_rewards_as_they_are_learned_from():
    environment = vector([lambda: OneState(1, truncate=False)])
    agent = constant_agent(3.0, environment.spaces)
    for clip, expected in ((None, 2.0), (0.25, 2.75)):
        played = evaluate(agent, environment, 3, discounted=Discounted(0.9, clip))
        assert played.bias == pytest.approx(expected, abs=1e-6)
        assert played.returns == [1.0] * 3  # scores are raw


def test_stepped_and_compiled_episodes_have_the_same_bias():
    """The zoo's agent on Asterix, and a class of its own that is stepped."""

    class Stepped(HostedEnvironment):
        pass

    agent = load(REPOSITORY / "paper" / "zoo" / "MinAtar-Asterix" / "dqn" / "agent.safetensors")
    played = [
        evaluate(agent, kind(make_gymnax("MinAtar/Asterix"), 2), 2, discounted=Discounted(0.99))
        for kind in (HostedEnvironment, Stepped)
    ]
    assert played[0].returns == played[1].returns
    assert played[0].bias == pytest.approx(played[1].bias, rel=1e-3)


# Updates and units -------------------------------------------------------------------------------


def test_the_size_of_an_update_is_its_root_mean_square():
    params = {"a": jnp.zeros(3), "b": jnp.zeros(1)}
    gradients = {"a": jnp.array([1.0, 2.0, 2.0]), "b": jnp.array([4.0])}
    sgd = optax.sgd(0.5)
    size = update_size(sgd, gradients, sgd.init(params), params)
    assert size == pytest.approx(0.5 * (25 / 4) ** 0.5)
    adam = optax.adam(1e-3, eps=0.0)  # whose first update is the gradient's sign
    assert update_size(adam, gradients, adam.init(params), params) == pytest.approx(1e-3, rel=1e-4)


def test_dormant_units_are_counted_in_the_worst_layer():
    network = make_network(NetworkSpec("mlp", (4, 8)), Spaces(ObservationSpace((2,), "float32"), 2))
    params = network.init(jax.random.key(0), jnp.zeros((1, 2)))["params"]
    first, second = params["torso"]["Dense_0"], params["torso"]["Dense_1"]
    first["kernel"], first["bias"] = jnp.zeros((2, 4)), jnp.array([1.0, 1.0, -1.0, 1.0])
    second["kernel"], second["bias"] = jnp.zeros((4, 8)), jnp.array([1.0] + [-1.0] * 6 + [0.01])
    seen = jax.random.normal(jax.random.key(1), (16, 2))
    # 1 of 4 is silent in the first layer. In the second 6 of 8 are silent; the mean activity is
    # 1.01/8, of which 0.01 is more than a fortieth.
    assert dormant(network, params, seen)["dormant"] == 6 / 8
    second["bias"] = second["bias"].at[7].set(0.003)
    assert dormant(network, params, seen)["dormant"] == 7 / 8


def test_a_network_of_ones_own_that_notes_nothing_has_no_dormant_units():
    network = Constant(1.0, 2)
    params = network.init(jax.random.key(0), jnp.zeros((1, 2)))["params"]
    assert dormant(network, params, jnp.zeros((3, 2))) == {}


def test_the_size_of_a_linear_dqns_next_update_is_the_one_computed_by_hand(often, tmp_path):
    """No hidden layer, constant observations, SGD: every number of the gradient is known."""
    maker = [lambda: Scripted(5)]
    config = Config(
        "dqn", "scripted", **{**TINY, "hidden": (), "loss": "squared", "evaluate_every": 0}
    )
    rows = train(config, environment=vector(maker), optimiser=optax.sgd(0.0)).metrics
    # Without a rate there is no unit to count in, and no row.
    assert not any(name.startswith("rms_update") for row in rows for name in row)
    rows = train(config, environment=vector(maker)).metrics
    assert all(row["rms_update_q"] > 0 for row in rows)


@pytest.mark.parametrize("loop", LOOPS)
def test_looking_changes_no_parameter(loop, monkeypatch, tmp_path):
    """A run that is looked at every 250 steps and one that never is."""
    train(LOOPS[loop], tmp_path / "never")
    monkeypatch.setattr("momentum_rl.training.loop.EVERY", 1)
    train(LOOPS[loop], tmp_path / "often")
    for name in ("agent.safetensors", "evaluations.jsonl"):
        ours, theirs = (tmp_path / run / name for run in ("often", "never"))
        assert ours.read_bytes() == theirs.read_bytes()
    looked = {"dormant", "rms_update_q", "rms_update_h"}
    rows = read_metrics(tmp_path / "often")
    assert all(looked <= row.keys() for row in rows)
    kept = [{name: x for name, x in row.items() if name not in looked} for row in rows]
    assert kept == read_metrics(tmp_path / "never")


@pytest.mark.parametrize("loop", LOOPS)
def test_a_run_that_was_broken_off_measures_the_same(loop, often, tmp_path):
    train(LOOPS[loop], tmp_path / "whole")
    broken(LOOPS[loop], tmp_path / "broken", 130, 410, 777)
    for name in ("metrics.jsonl", "evaluations.jsonl"):
        assert (tmp_path / "broken" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_both_loops_measure_the_same(often):
    """On the same minibatch and the same network, after one iteration without learning."""
    rows = [
        train(
            replace(config, steps=250, learning_starts=40, learning_rate=1e-30, evaluate_every=0),
            environment=environment,
        ).metrics[0]
        for config, environment in (
            (LOOPS["fused"], None),
            (LOOPS["fused"], make_environment("gymnax/CartPole-v1", 1)),
        )
    ]
    assert rows[0]["dormant"] == rows[1]["dormant"]
    for name in ("q", "h"):
        ours, theirs = (row[f"rms_update_{name}"] for row in rows)
        assert ours == pytest.approx(theirs, rel=1e-3)


# Warnings ----------------------------------------------------------------------------------------

HEALTHY = {"iteration": 3, "largest_reward": 1.0, "mean_q": 99.0, "rms_update_q": 0.06}
HEALTHY |= {"dormant": 0.9, "clipped_q": 0.009, "bias": 50.0, "loss_q": 1e9}


def warnings_of(rows, *, bounded=True, **fields):
    warnings = Warnings(Config("dqn", "CartPole-v1", gamma=0.99, **fields), bounded)
    return [line for row in rows for line in warnings.after({**HEALTHY, **row})]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"mean_q": 101.0}, r"mean_q: 101 in iteration 3, more than .*= 100\): values run away"),
        ({"rms_update_q": 0.04}, "rms_update_q: 0.04 of the learning rate in iteration 3"),
        ({"dormant": 0.98}, "dormant: 98 % of a layer's units in iteration 3"),
        ({"clipped_q": 0.25}, "clipped_q: 25.0 % of the probability in iteration 3"),
    ],
)
def test_each_ailment_is_said_once(row, words):
    (line,) = warnings_of([{}, row, row])
    assert re.search(words, line)


def test_a_healthy_row_and_one_that_says_nothing_are_silent():
    assert warnings_of([{}, dict.fromkeys(("mean_q", "dormant", "clipped_q"))]) == []
    assert warnings_of([{"rms_update_q": 0.01, "iteration": 0}]) == []  # the optimiser warms up


def test_values_that_are_no_returns_have_no_bound():
    assert warnings_of([{"mean_q": 1e6}], bounded=False) == []


def test_the_bound_is_of_the_rewards_that_are_learned_from():
    assert warnings_of([{"mean_q": 101.0, "largest_reward": 2.0}]) == []
    assert len(warnings_of([{"mean_q": 101.0, "largest_reward": 2.0}], reward_clip=1.0)) == 1
    # The largest so far: rewards that are rare are not forgotten.
    assert warnings_of([{"largest_reward": 2.0}, {"mean_q": 101.0}]) == []


def committed(matrix, label, seed):
    return REPOSITORY / "paper" / "evidence" / "runs" / matrix / "runs" / label / f"seed-{seed}"


def test_values_that_ran_away_in_a_committed_run_are_warned_of():
    """DQN on Asterix by the published protocol, whose rewards are 0 and 1."""
    run = committed("1-momentum", "MinAtar-Asterix/dqn", 0)
    warnings = Warnings(read_config(run), values_are_returns=True)
    rows = [{**row, "largest_reward": 1.0} for row in read_metrics(run)]
    (line,) = [line for row in rows for line in warnings.after(row)]
    assert "values run away" in line
    assert max(row["mean_q"] for row in read_metrics(run)) > 100


def test_the_dead_network_of_a_committed_agent_is_warned_of():
    """Momentum-DQN on Freeway, seed 0: its hidden layer by NumPy, on what a random agent sees."""
    file = REPOSITORY / "paper" / "zoo" / "MinAtar-Freeway" / "momentum-dqn" / "agent.safetensors"
    agent = load(file)
    environment = make_environment("MinAtar/Freeway", 4)
    rng, seen = np.random.default_rng(0), [environment.reset([0, 1, 2, 3])]
    for _ in range(63):
        seen.append(environment.step(rng.integers(6, size=4)).observation)
    seen = np.concatenate(seen)
    share = dormant(agent.networks["h"], agent.params["h"], seen)["dormant"]
    tensors = safetensors.numpy.load_file(file)
    kernel, bias = (tensors[f"h/torso/Conv_0/{name}"] for name in ("kernel", "bias"))
    windows = np.lib.stride_tricks.sliding_window_view(seen.astype(np.float64), (3, 3), (1, 2))
    convolved = np.einsum("bxycij,ijco->bxyo", windows, kernel) + bias
    flat = np.maximum(convolved, 0).reshape(len(seen), -1)
    kernel, bias = (tensors[f"h/torso/Dense_0/{name}"] for name in ("kernel", "bias"))
    activity = np.maximum(flat @ kernel + bias, 0).mean(0)
    assert share == np.mean(activity <= 0.025 * activity.mean())
    (line,) = warnings_of([{"dormant": float(share)}])
    assert "nearly dead" in line


def test_of_the_grid_only_the_large_epsilon_is_warned_of():
    """PLAN-2's runs so far: ε = 1e-5 inside RMSProp's root swallows MinAtar's small gradients."""
    runs = sorted((REPOSITORY / "paper/evidence/runs/p2-grid/runs").glob("*/*/seed-*"))
    lines = {}
    for run in runs:
        warnings = Warnings(read_config(run), values_are_returns=True)
        words = [line for row in read_metrics(run) for line in warnings.after(row)]
        lines.setdefault(run.parent.name, []).append("; ".join(words))
    for label in ("dqn-rmsprop-1e-5", "momentum-dqn-rmsprop-1e-5"):
        assert all("swallow" in line for line in lines[label])
    for label in ("adam-1e-4", "adam-2.5e-4", "adam-squares", "rmsprop-1e-8"):
        assert not any(lines[f"dqn-{label}"] + lines[f"momentum-dqn-{label}"]), label
