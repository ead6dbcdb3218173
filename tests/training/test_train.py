"""Whole runs: the run directory, determinism, divergence, evaluation, the agent's file."""

import json
import os

import flax.linen as nn
import gymnasium as gym
import jax
import numpy as np
import optax
import pytest

import momentum_rl
from momentum_rl.agents.agent import Agent, save
from momentum_rl.agents.networks import NetworkSpec, make_network
from momentum_rl.envs.gym_vector import make_gymnasium
from momentum_rl.errors import UserError
from momentum_rl.runs.config import Config
from momentum_rl.runs.files import read_config, read_metrics, read_status
from momentum_rl.spaces import ObservationSpace, Spaces
from momentum_rl.training.evaluation import evaluate
from momentum_rl.training.train import train
from tests.training.diagnostics import OneState, Scripted, scripted, vector

SHORT = {
    "steps": 600,
    "iteration_steps": 200,
    "learning_starts": 100,
    "sync_period": 50,
    "epsilon_warmup": 100,
    "epsilon_decay": 300,
    "batch_size": 64,
    "update_period": 1,
    "hidden": (16,),
    "final_episodes": 2,
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "momentum"
    config = Config("momentum-dqn", "CartPole-v1", seed=0, **SHORT)
    return path, config, train(config, path)


def test_a_run_directory_holds_config_metrics_timing_events_status_and_agent(run):
    path, config, result = run
    names = {file.name for file in path.iterdir()}
    assert {
        "config.json",
        "metrics.jsonl",
        "timing.jsonl",
        "versions.json",
        "status.json",
        "evaluation.json",
        "agent.safetensors",
    } < names
    assert any(name.startswith("events.out.") for name in names)
    assert not any(name.endswith(".part") for name in names)
    assert read_config(path) == config
    (since,) = json.loads((path / "versions.json").read_text())["since"]
    assert since["step"] == 0
    assert since["versions"]["movi"] == momentum_rl.__version__
    assert since["versions"]["jax"] == jax.__version__
    status = read_status(path)
    assert (status.status, status.step, status.message) == ("finished", 600, "")
    assert since["started"] <= status.time
    assert since["machine"]["processor"]
    assert since["machine"]["xla_flags"] == os.environ.get("XLA_FLAGS", "")
    assert json.loads((path / "evaluation.json").read_text())["returns"] == (
        result.evaluation.returns
    )


def test_a_row_per_iteration_has_scores_counts_losses_values_beta_and_epsilon(run):
    path, config, result = run
    rows = read_metrics(path)
    assert rows == result.metrics
    assert [row["step"] for row in rows] == [200, 400, 600]
    assert [row["updates"] for row in rows] == [100, 300, 500]
    assert [row["syncs"] for row in rows] == [2, 6, 10]  # at 150, 200; …
    assert [row["beta"] for row in rows] == [config.beta_of(k) for k in (200, 400, 600)]
    assert [row["epsilon"] for row in rows] == pytest.approx([1 - 0.95 / 3, 0.05, 0.05])
    for row in rows:
        assert row["episodes"] >= 1
        assert row["score"] == pytest.approx(row["length"])  # CartPole pays 1 a step
        for name in ("loss_q", "loss_h", "mean_q", "mean_h"):
            assert np.isfinite(row[name])
    timing = [json.loads(line) for line in (path / "timing.jsonl").read_text().splitlines()]
    assert [row["step"] for row in timing] == [200, 400, 600]
    assert all(row["steps_per_second"] > 0 for row in timing)


def test_tensorboard_has_the_same_numbers(run):
    from tensorboardX.proto.event_pb2 import Event

    path, _, result = run
    (file,) = path.glob("events.out.*")
    data, seen = file.read_bytes(), {}
    while data:  # a record: length, its checksum, the event, its checksum
        length = int.from_bytes(data[:8], "little")
        event = Event.FromString(data[12 : 12 + length])
        data = data[16 + length :]
        for value in event.summary.value:
            seen[value.tag, event.step] = value.simple_value
    for row in result.metrics:
        for name in ("score", "loss_q", "loss_h", "mean_h", "beta", "epsilon", "episodes"):
            assert seen[name, row["step"]] == pytest.approx(row[name], rel=1e-6)


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(run, tmp_path):
    path, config, result = run
    again = train(config, tmp_path / "again")
    assert (tmp_path / "again" / "metrics.jsonl").read_bytes() == (
        path / "metrics.jsonl"
    ).read_bytes()
    for a, b in zip(jax.tree.leaves(result.agent.params), jax.tree.leaves(again.agent.params)):
        np.testing.assert_array_equal(a, b)
    other = train(Config("momentum-dqn", "CartPole-v1", seed=1, **SHORT))
    assert other.metrics != result.metrics


def test_a_saved_agent_acts_as_the_trained_one_after_two_lines(run):
    path, _, result = run
    observations = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    agent = momentum_rl.load(path / "agent.safetensors")
    actions = [agent.act(observation) for observation in observations]
    assert all(isinstance(action, int) for action in actions)
    np.testing.assert_array_equal(actions, agent.act(observations))
    np.testing.assert_array_equal(actions, result.agent.act(observations))
    np.testing.assert_array_equal(
        actions, result.agent.values(observations, "h").argmax(1)
    )  # H acts
    assert agent.about["algorithm"] == "momentum-dqn"
    assert momentum_rl.load(path).act(observations[0]) == actions[0]


def test_an_observation_of_another_shape_is_one_line(run):
    with pytest.raises(UserError, match=r"shape \(5,\), expected \(4,\)"):
        run[2].agent.act(np.zeros(5))


def test_actions_are_in_the_environments_own_numbers():
    config = Config("dqn", "scripted", **{**SHORT, "steps": 120, "final_episodes": 0})
    result = train(config, environment=vector([lambda: Scripted(0)]))
    assert result.agent.act(np.zeros(3, np.int32)) in (5, 6, 7)


def test_discrete_observations_are_learned_from_too():
    config = Config("dqn", "FrozenLake-v1", **{**SHORT, "steps": 300})
    result = train(config)
    assert result.status == "finished"
    assert result.agent.act(3) in range(4)


@pytest.mark.parametrize("algorithm", ["deep-dpp", "dqn"])
def test_a_run_that_diverges_ends_as_a_result_with_finite_parameters(algorithm, tmp_path):
    config = Config(algorithm, "CartPole-v1", **{**SHORT, "steps": 5_000, "loss": "squared"})
    result = train(config, tmp_path / "run", optimiser=optax.sgd(1e12))
    assert result.status == "diverged"
    assert 100 < result.step < 1_000
    status = read_status(tmp_path / "run")
    assert (status.status, status.step) == ("diverged", result.step)
    assert status.message == f"diverged at step {result.step}"
    rows = read_metrics(tmp_path / "run")  # every line is JSON, also of what is not finite
    assert rows[-1]["step"] <= 1_000
    agent = momentum_rl.load(tmp_path / "run")
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(agent.params))


def test_an_environments_own_fault_is_no_divergence_of_the_algorithm(tmp_path):
    class Broken(OneState):
        def step(self, action):
            observation, _, *rest = super().step(action)
            return observation, float("nan"), *rest

    config = Config("dqn", "broken", checkpoint_every=0, **SHORT)
    with pytest.raises(UserError, match="env: broken, step 1: reward nan, expected a finite"):
        train(config, tmp_path / "run", environment=vector([lambda: Broken(5, False)]))
    assert read_status(tmp_path / "run").status == "failed"


def test_a_used_directory_is_refused_and_left_as_it_was(tmp_path):
    (tmp_path / "file").write_text("precious")
    with pytest.raises(UserError, match="already holds files"):
        train(Config("dqn", "CartPole-v1", **SHORT), tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("change", [{"env": "Pendulum-v1"}, {"algorithm": "sarsa"}])
def test_a_mistake_writes_nothing(tmp_path, change):
    config = Config(**{"algorithm": "dqn", "env": "CartPole-v1", **SHORT, **change})
    with pytest.raises(UserError):
        train(config, tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_is_interrupted_says_so(tmp_path):
    from momentum_rl.training.train import Watcher

    class Stop(Watcher):
        def row(self, row):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(Config("dqn", "CartPole-v1", **SHORT), tmp_path / "run", watcher=Stop())
    status = json.loads((tmp_path / "run" / "status.json").read_text())
    assert (status["status"], status["message"]) == ("interrupted", "interrupted at step 200")


def test_several_environments_make_as_many_updates_per_agent_step():
    results = [
        train(Config("dqn", "CartPole-v1", num_envs=n, **{**SHORT, "update_period": 4}))
        for n in (1, 7)
    ]
    for name in ("step", "updates", "syncs"):
        one, seven = ([row[name] for row in result.metrics] for result in results)
        assert one == seven


class Fixed(nn.Module):
    """Values 0 and 1: always action 1."""

    @nn.compact
    def __call__(self, x):
        one = self.param("one", nn.initializers.ones, ())
        return jax.numpy.stack([0 * x[:, 0], 0 * x[:, 0] + one], axis=-1)


def fixed_agent(space=None):
    space = space or ObservationSpace((3,), "int32")
    network = Fixed()
    params = network.init(jax.random.key(0), space.zeros(1))["params"]
    return Agent(network, {"q": params}, Spaces(space, 3, 5))


@pytest.mark.parametrize("n", [1, 3])
def test_evaluation_returns_are_those_of_the_first_whole_episodes_of_each_environment(n):
    result = evaluate(fixed_agent(), scripted(n), 8, epsilon=0.0)
    expected = []
    for i in range(n):
        env = Scripted(i)
        for _ in range(8 // n + (i < 8 % n)):
            env.reset()
            expected.append((float("1" * env.length), env.length))
    assert list(zip(result.returns, result.lengths)) == expected
    assert result.mean == np.mean([score for score, _ in expected])
    assert result.std == np.std([score for score, _ in expected])


def test_evaluation_is_repeatable_and_differs_by_seed(run):
    agent = run[2].agent
    a, b, c = (
        evaluate(agent, make_gymnasium("CartPole-v1", 3), 6, epsilon=0.2, seed=seed)
        for seed in (0, 0, 1)
    )
    assert a == b
    assert a != c


def test_a_network_and_optimiser_of_your_own_train_save_and_load(tmp_path):
    class Wide(nn.Module):
        @nn.compact
        def __call__(self, x):
            return nn.Dense(2)(nn.tanh(nn.Dense(7)(x)))

    config = Config("deep-sql", "CartPole-v1", **SHORT)
    result = train(config, tmp_path / "run", network=Wide(), optimiser=optax.adabelief(1e-3))
    assert result.metrics[-1]["updates"] == 500
    with pytest.raises(UserError, match="network of your own"):
        momentum_rl.load(tmp_path / "run")
    agent = momentum_rl.load(tmp_path / "run", network=Wide())
    x = np.ones(4, np.float32)
    np.testing.assert_array_equal(agent.values(x), result.agent.values(x))


@pytest.mark.parametrize(
    "content", [b"", b"\x80\x04K\x01.", b"PK\x03\x04 zip", b"\xff" * 64, b"{}" * 100]
)
def test_a_file_that_is_no_agent_is_one_line(tmp_path, content):
    file = tmp_path / "agent.safetensors"
    file.write_bytes(content)
    with pytest.raises(UserError, match="not an agent's file"):
        momentum_rl.load(file)


def test_a_cut_or_newer_agents_file_is_one_line(tmp_path, monkeypatch):
    import momentum_rl.agents.agent as module

    space = Spaces(ObservationSpace((4,), "float32"), 2)
    network = make_network(NetworkSpec("mlp", (8,)), space)
    params = {"q": network.init(jax.random.key(0), space.observation.zeros(1))["params"]}
    agent = Agent(network, params, space, spec=NetworkSpec("mlp", (8,)))
    save(agent, tmp_path / "a.safetensors")
    whole = (tmp_path / "a.safetensors").read_bytes()
    for length in (4, 20, len(whole) // 2, len(whole) - 1):
        (tmp_path / "cut.safetensors").write_bytes(whole[:length])
        with pytest.raises(UserError, match="not an agent's file"):
            momentum_rl.load(tmp_path / "cut.safetensors")
    with monkeypatch.context() as older:
        older.setattr(module, "FORMAT", 0)
        with pytest.raises(UserError, match="format 1, this version of movi reads up to 0"):
            momentum_rl.load(tmp_path / "a.safetensors")
    odd = Agent(network, params, space, spec=NetworkSpec("mlp", ("wide",)))
    save(odd, tmp_path / "odd.safetensors")
    with pytest.raises(UserError, match="hidden: 'wide', expected an integer"):
        momentum_rl.load(tmp_path / "odd.safetensors")
    wrong = Agent(network, params, space, spec=NetworkSpec("mlp", (9,)))
    save(wrong, tmp_path / "wrong.safetensors")
    with pytest.raises(UserError, match="do not fit its network"):
        momentum_rl.load(tmp_path / "wrong.safetensors")


def test_image_observations_are_learned_from_in_their_own_dtype():
    class Picture(gym.Env):
        observation_space = gym.spaces.Box(0, 255, (12, 12, 3), np.uint8)
        action_space = gym.spaces.Discrete(2)

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            self.t = 0
            return self.observation_space.sample(), {}

        def step(self, action):
            self.t += 1
            return self.observation_space.sample(), 1.0, self.t == 5, False, {}

    config = Config("dqn", "picture", **{**SHORT, "steps": 150})
    result = train(config, environment=vector([Picture]))
    assert result.agent.spec.kind == "minatar"
    assert result.loop.replay._ring.observation.dtype == np.uint8
    assert result.metrics[-1]["updates"] == 50


@pytest.mark.parametrize("env", ["CartPole-v1", "gymnax/CartPole-v1"])
def test_a_replay_as_large_as_the_learning_start_learns_once_it_is_full(env):
    """From step 60 on, in every second one of 120: the 60th, the 62nd, …"""
    fields = {"steps": 120, "iteration_steps": 60, "checkpoint_every": 0, "final_episodes": 0}
    sizes = {"replay_capacity": 60, "learning_starts": 60, "update_period": 2, "batch_size": 4}
    run = train(Config("dqn", env, hidden=(4,), **fields, **sizes))
    assert [row["updates"] for row in run.metrics] == [1, 31]
    assert [row["stored"] for row in run.metrics] == [60, 60]
