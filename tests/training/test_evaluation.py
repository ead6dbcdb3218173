"""Evaluations during a run: when, of whom, and that training does not notice them."""

from dataclasses import replace
from typing import NamedTuple

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tensorboardX.proto.event_pb2 import Event

from momentum_rl import load
from momentum_rl.agents.agent import Agent
from momentum_rl.agents.networks import NetworkSpec, make_network
from momentum_rl.envs.gymnax_env import make_gymnax
from momentum_rl.envs.jax_env import HostedEnvironment, JaxEnvironment, JaxOutcome
from momentum_rl.envs.make import make_environment
from momentum_rl.errors import UserError
from momentum_rl.runs.config import Config
from momentum_rl.runs.files import read_evaluations, read_metrics
from momentum_rl.spaces import ObservationSpace, Outcome, Spaces
from momentum_rl.training import evaluation, recording
from momentum_rl.training.evaluation import AT_ONCE, Discounted, evaluate
from momentum_rl.training.recording import record
from momentum_rl.training.train import train, train_seeds
from tests.training.diagnostics import OneState, vector
from tests.training.jax_diagnostics import one_state
from tests.training.runs import TINY

SHORT = {**TINY, "steps": 300, "iteration_steps": 80, "checkpoint_every": 0}
HOST = Config("dqn", "CartPole-v1", **{**SHORT, "evaluate_every": 150, "periodic_episodes": 3})
LOOPS = {"host": HOST, "fused": replace(HOST, env="gymnax/CartPole-v1")}


@pytest.fixture(scope="module", params=LOOPS)
def run(request, tmp_path_factory):
    """A run with evaluations: its config, its directory, its result."""
    out = tmp_path_factory.mktemp("run")
    return LOOPS[request.param], out, train(LOOPS[request.param], out)


def test_an_evaluation_is_due_at_the_first_end_of_an_iteration_after_each_multiple():
    config = replace(HOST, iteration_steps=40, evaluate_every=100, steps=310)
    ends = [*range(40, 301, 40), 310]  # the last iteration is cut
    assert config.iteration_ends == ends
    assert [step for step in ends if config.evaluates_at(step)] == [120, 200, 310]
    assert not any(replace(config, evaluate_every=0).evaluates_at(step) for step in ends)


def test_training_does_not_notice_its_evaluations(run, tmp_path):
    config, out, _ = run
    train(replace(config, evaluate_every=0), tmp_path)
    for name in ("agent.safetensors", "evaluation.json"):
        assert (tmp_path / name).read_bytes() == (out / name).read_bytes(), name
    rows = [{**row, "bias": None} for row in read_metrics(out)]
    assert rows == [{**row, "bias": None} for row in read_metrics(tmp_path)]
    assert not (tmp_path / "evaluations.jsonl").exists()


def test_the_rows_are_those_of_the_agent_at_their_steps(run):
    """The last one is of the agent that the run left behind, with seeds of its own."""
    config, out, result = run
    rows = read_evaluations(out)
    assert [row["step"] for row in rows] == [160, 300]
    environment = (
        HostedEnvironment(make_gymnax(config.env), 3)
        if config.env.startswith("gymnax")
        else make_environment(config.env, 3)
    )
    played = evaluate(load(out), environment, 3, epsilon=0.001, seed=config.seed, at=300)
    assert rows[-1]["returns"] == played.returns
    assert rows[-1]["mean"] == pytest.approx(np.mean(played.returns), rel=1e-15)
    assert result.evaluation.lengths != played.lengths  # the end's: other seeds, two episodes


def test_tensorboard_has_them_too(run):
    _, out, _ = run
    (file,) = out.glob("events.out.*")
    data, seen = file.read_bytes(), []
    while data:  # length, checksum, event, checksum
        size = int.from_bytes(data[:8], "little")
        event = Event.FromString(data[12 : 12 + size])
        seen += [
            (event.step, v.tag, v.simple_value)
            for v in event.summary.value
            if v.tag.startswith("evaluation/")
        ]
        data = data[16 + size :]
    means = [(step, value) for step, tag, value in seen if tag == "evaluation/mean"]
    assert means == [(row["step"], pytest.approx(row["mean"])) for row in read_evaluations(out)]


def test_seeds_have_each_their_own(tmp_path):
    config = replace(LOOPS["fused"], seed=3)
    outs = [tmp_path / "3", tmp_path / "4"]
    train_seeds(config, [3, 4], outs)
    for seed, out in zip((3, 4), outs):
        rows = read_evaluations(out)
        environment = HostedEnvironment(make_gymnax(config.env), 3)
        played = evaluate(load(out), environment, 3, epsilon=0.001, seed=seed, at=300)
        assert rows[-1]["returns"] == played.returns


def test_an_environment_of_ones_own_needs_a_way_to_make_more_of_them():
    with pytest.raises(UserError, match=r"evaluate_every: .*make_environment"):
        train(HOST, environment=vector([lambda: OneState(5, True)]))


class Stepped:
    """Environments that can only be stepped."""

    def __init__(self, hosted):
        self.spaces, self.num_envs = hosted.spaces, hosted.num_envs
        self.reset, self.step = hosted.reset, hosted.step


@pytest.mark.parametrize("epsilon", [0.0, 0.3])
@pytest.mark.parametrize(
    ("algorithm", "env", "episodes"),
    [("dqn", "MinAtar/Breakout", 61), ("sac", "gymnax/MountainCarContinuous-v0", 4)],
)
def test_a_compiled_evaluation_plays_what_steps_do(algorithm, env, episodes, epsilon, tmp_path):
    """More episodes than games, in several chunks; actions of both are equal but for rounding."""
    environment = HostedEnvironment(make_gymnax(env), 3)
    train(Config(algorithm, env, **{**SHORT, "network": "auto", "steps": 60}), tmp_path)
    agent = load(tmp_path)
    result = evaluate(agent, environment, episodes, epsilon=epsilon, seed=5)
    expected = evaluate(agent, Stepped(environment), episodes, epsilon=epsilon, seed=5)
    assert result.lengths == expected.lengths
    np.testing.assert_allclose(result.returns, expected.returns, rtol=1e-4)
    assert sum(result.lengths) > 3 * AT_ONCE


def test_an_agent_of_other_observations_is_one_line(tmp_path):
    train(replace(LOOPS["fused"], steps=60, evaluate_every=0), tmp_path)
    environment = HostedEnvironment(make_gymnax("gymnax/Acrobot-v1"), 2)
    with pytest.raises(UserError, match=r"observation: shape \(6,\), expected \(4,\)"):
        evaluate(load(tmp_path), environment, 2)


def test_steps_go_on_where_a_compiled_loop_ended():
    played, stepped = (HostedEnvironment(make_gymnax("MinAtar/Asterix"), 2) for _ in range(2))
    actions = np.random.default_rng(0).integers(6, size=(60, 2))
    for environment in (played, stepped):
        environment.reset([3, 4])
    rewards = played.play(lambda given, observations, x: (x, 2 * x), None, actions[:50])
    steps = [stepped.step(action) for action in actions]
    np.testing.assert_array_equal(rewards.reward, [step.reward for step in steps[:50]])
    np.testing.assert_array_equal(rewards.terminated, [step.terminated for step in steps[:50]])
    np.testing.assert_array_equal(rewards.value, 2 * actions[:50])
    for action, step in zip(actions[50:], steps[50:]):
        np.testing.assert_array_equal(played.step(action).observation, step.observation)
    assert played.snapshot()["count"] == 60


@pytest.fixture(scope="module")
def cartpole(tmp_path_factory):
    """An agent on gymnax's CartPole."""
    out = tmp_path_factory.mktemp("cartpole")
    train(replace(LOOPS["fused"], steps=60, evaluate_every=0), out)
    return load(out)


class Upright(Agent):
    """Pushes to the side to which the pole falls: a controller of one's own, for 500 steps."""

    def actions(self, observation, key=None):
        return (observation[:, 2] + observation[:, 3] > 0).astype(np.int32)


def test_an_agent_that_acts_in_its_own_way_is_asked(cartpole):
    agent = Upright(cartpole.networks, cartpole.params, cartpole.spaces, acts_on=cartpole.acts_on)
    environment = HostedEnvironment(make_gymnax("gymnax/CartPole-v1"), 2)
    assert evaluate(agent, environment, 4).lengths == [500] * 4


def test_a_policy_that_is_changed_acts_from_then_on(cartpole):
    seen = np.zeros((3, *cartpole.spaces.observation.shape), np.float32)
    before = cartpole.policy
    try:
        for action in (0, 1):
            cartpole.policy = lambda networks, x, key, a=action: jnp.full(len(x), a)
            assert cartpole.actions(seen).tolist() == [action] * 3
    finally:
        cartpole.policy = before


def test_evaluations_on_jax_environments_are_traced_once(cartpole):
    """By a compiled loop: steps would not trace the policy but for their own shape."""
    traced, before = [], cartpole.policy

    def policy(networks, x, key):
        traced.append(x.shape)
        return before(networks, x, key)

    agent = Agent(cartpole.networks, cartpole.params, cartpole.spaces, policy=policy)
    for seed in range(3):
        environment = HostedEnvironment(make_gymnax("gymnax/CartPole-v1"), 2)
        own_before = len(traced)
        evaluate(agent, environment, 40, seed=seed)
        assert environment.snapshot()["count"] % AT_ONCE == 0
        assert len(traced) - own_before == (1 if seed == 0 else 0)


class Counting(NamedTuple):
    """A state: how many steps there were."""

    t: jax.Array


def counted(spaces):
    """Reset sees a whole number, every step a half more; the episode is what the agent sees."""

    def reset(key):
        return Counting(jnp.int32(0)), jnp.zeros(1, jnp.int32)

    def step(key, state, action):
        t = state.t + 1
        seen = jnp.full(1, 0.5) * t
        ended = action > 0
        again = jax.tree.map(lambda x: jnp.where(ended, 0, x), Counting(t))
        return again, JaxOutcome(seen, seen, jnp.float32(1), ended, jnp.bool_(False))

    return JaxEnvironment(spaces, reset, step)


def test_a_compiled_evaluation_sees_what_the_space_says_and_not_what_reset_began_with():
    """The agent ends an episode when it sees at least 1.5: after the fourth step, not the fifth."""
    spaces = Spaces(ObservationSpace((1,), "float32"), 2)
    network = make_network(NetworkSpec("mlp", (4,)), spaces)
    params = network.init(jax.random.key(0), np.zeros((1, 1), np.float32))["params"]
    agent = Agent(
        network,
        {"q": params},
        spaces,
        policy=lambda networks, x, key: (x[:, 0] >= 1.5).astype(jnp.int32),
    )
    hosted = HostedEnvironment(counted(spaces), 1)
    assert evaluate(agent, hosted, 1, epsilon=0).lengths == [4]
    assert evaluate(agent, Stepped(hosted), 1, epsilon=0).lengths == [4]


@pytest.mark.parametrize("epsilon", [float("nan"), -0.1, 1.5])
def test_an_epsilon_that_is_no_probability_is_refused(run, epsilon):
    """NaN played greedily, as no number is below it."""
    _, _, result = run
    environment = make_environment("CartPole-v1", 1)
    with pytest.raises(UserError, match=f"epsilon: {epsilon}, expected a number in"):
        evaluate(result.agent, environment, 1, epsilon=epsilon)
    with pytest.raises(UserError, match=f"epsilon: {epsilon}, expected a number in"):
        record(result.agent, "CartPole-v1", "video.mp4", epsilon=epsilon)


class Clocks:
    """Two environments: the first never ends, the second after three steps; a reward is the time
    since the reset, and one for each reset so far."""

    spaces, num_envs = Spaces(ObservationSpace((4,), "float32"), 2), 2

    def __init__(self, ends=(10**9, 3)):
        self.ends, self.resets = np.array(ends), []

    def reset(self, seeds):
        self.resets.append(list(seeds))
        self.time = np.zeros(2, int)
        return np.zeros((2, 4), np.float32)

    def step(self, actions):
        self.time += 1
        reward, over = self.time + 100.0 * len(self.resets), self.time == self.ends
        self.time[over] = 0
        seen = np.zeros((2, 4), np.float32)
        return Outcome(seen, seen, reward, over, np.zeros(2, bool))

    def close(self):
        pass


def test_an_episode_that_never_ends_is_cut_and_that_is_said(run, monkeypatch, caplog):
    """Four episodes, two of each: those of the first environment are five steps of two resets."""
    monkeypatch.setattr(evaluation, "LONGEST", 5)
    _, _, result = run
    clocks = Clocks()
    played = evaluate(result.agent, clocks, 4, epsilon=0.0)
    assert played.returns == [500 + 15, 1000 + 15, 300 + 6, 300 + 6]
    assert played.lengths == [5, 5, 3, 3]
    assert len(clocks.resets) == 2
    assert clocks.resets[0] != clocks.resets[1]
    (warning,) = caplog.messages
    assert warning.endswith(
        "evaluation: 2 of 4 episodes had not ended after 5 steps and were cut there"
    )
    caplog.clear()
    whole = evaluate(result.agent, Clocks((5, 3)), 4, epsilon=0.0)
    assert (whole.lengths, caplog.messages) == ([5, 5, 3, 3], [])  # five steps are not too many


def test_a_compiled_episode_that_never_ends_is_cut_too(monkeypatch, caplog):
    """With the bias of what it counts: every reward is 1, and no episode that terminates counts."""
    monkeypatch.setattr(evaluation, "LONGEST", 150)
    endless = one_state(10**9, truncate=False)
    network = make_network(NetworkSpec("mlp", (4,)), endless.spaces)
    params = network.init(jax.random.key(0), np.zeros((1, 1), np.float32))["params"]
    agent = Agent(network, {"q": params}, endless.spaces)
    played = evaluate(agent, HostedEnvironment(endless, 2), 3, discounted=Discounted(0.9))
    assert (played.returns, played.lengths, played.bias) == ([150.0] * 3, [150] * 3, None)
    assert "3 of 3 episodes had not ended after 150 steps" in caplog.messages[0]


def test_a_video_of_an_episode_that_never_ends_is_cut_too(monkeypatch, run):
    _, _, result = run
    monkeypatch.setattr(recording, "LONGEST", 6)
    env, returns = gym.make("CartPole-v1", render_mode="rgb_array"), []
    frames = list(recording._play(result.agent, env, [0], 0.0, 0, returns))
    assert (len(frames), returns) == (7, [6.0])
