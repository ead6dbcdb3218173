"""Evaluations during a run: when, of whom, and that training does not notice them."""

from dataclasses import replace

import numpy as np
import pytest
from tensorboardX.proto.event_pb2 import Event

from movi import load
from movi.envs.gymnax_env import make_gymnax
from movi.envs.jax_env import HostedEnvironment
from movi.envs.make import make_environment
from movi.errors import UserError
from movi.runs.config import Config
from movi.runs.files import read_evaluations
from movi.training.evaluation import AT_ONCE, evaluate
from movi.training.train import train, train_seeds
from tests.training.diagnostics import OneState, vector
from tests.training.test_kills import TINY

SHORT = {**TINY, "steps": 300, "iteration_steps": 80, "checkpoint_every": 0}
HOST = Config("dqn", "CartPole-v1", **{**SHORT, "evaluate_every": 150, "evaluate_episodes": 3})
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
    for name in ("metrics.jsonl", "agent.safetensors", "evaluation.json"):
        assert (tmp_path / name).read_bytes() == (out / name).read_bytes(), name
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


def test_seeds_in_one_program_have_each_their_own(tmp_path):
    config = replace(LOOPS["fused"], seed=3)
    outs = [tmp_path / "3", tmp_path / "4"]
    train_seeds(config, [3, 4], outs, vectorised=True)
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
    train(Config(algorithm, env, **{**SHORT, "network": "auto", "steps": 40}), tmp_path)
    agent = load(tmp_path)
    found = evaluate(agent, environment, episodes, epsilon=epsilon, seed=5)
    expected = evaluate(agent, Stepped(environment), episodes, epsilon=epsilon, seed=5)
    assert found.lengths == expected.lengths
    np.testing.assert_allclose(found.returns, expected.returns, rtol=1e-4)
    assert sum(found.lengths) > 3 * AT_ONCE


def test_an_agent_of_other_observations_is_one_line(tmp_path):
    train(replace(LOOPS["fused"], steps=40, evaluate_every=0), tmp_path)
    environment = HostedEnvironment(make_gymnax("gymnax/Acrobot-v1"), 2)
    with pytest.raises(UserError, match=r"observation: shape \(6,\), expected \(4,\)"):
        evaluate(load(tmp_path), environment, 2)


def test_steps_go_on_where_a_compiled_loop_ended():
    played, stepped = (HostedEnvironment(make_gymnax("MinAtar/Asterix"), 2) for _ in range(2))
    actions = np.random.default_rng(0).integers(6, size=(60, 2))
    for environment in (played, stepped):
        environment.reset([3, 4])
    rewards = played.play(lambda given, observations, x: x, None, actions[:50])
    steps = [stepped.step(action) for action in actions]
    np.testing.assert_array_equal(rewards.reward, [step.reward for step in steps[:50]])
    np.testing.assert_array_equal(rewards.terminated, [step.terminated for step in steps[:50]])
    for action, step in zip(actions[50:], steps[50:]):
        np.testing.assert_array_equal(played.step(action).observation, step.observation)
    assert played.snapshot()["count"] == 60
