"""A method of one's own (no ``regression`` made it), trained as any other is."""

import json
from dataclasses import dataclass

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import momentum_rl
from momentum_rl.agents import registry
from momentum_rl.agents.method import Method, TargetCopies
from momentum_rl.agents.networks import MLP
from momentum_rl.core.options import Options
from momentum_rl.envs.make import make_environment
from momentum_rl.errors import UserError
from momentum_rl.runs.config import Config
from momentum_rl.training.evaluation import EVALUATION, evaluate
from momentum_rl.training.loop import env_seeds
from momentum_rl.training.train import train

FIELDS = {
    "steps": 120,
    "iteration_steps": 60,
    "checkpoint_every": 40,
    "learning_starts": 20,
    "replay_capacity": 60,
    "batch_size": 4,
    "epsilon_warmup": 30,
    "epsilon_decay": 20,
    "hidden": (4,),
    "final_episodes": 3,
}
HOST = Config("actor-critic", "CartPole-v1", **FIELDS)
FUSED = Config("actor-critic", "gymnax/CartPole-v1", **FIELDS)


class Critic(nn.Module):
    """A value of (s, a): an input that the actor does not have."""

    @nn.compact
    def __call__(self, x, a):
        return nn.Dense(1)(jnp.concatenate([x, jax.nn.one_hot(a, 2)], -1))[..., 0]


class Actor(nn.Module):
    hidden: tuple

    @nn.compact
    def __call__(self, x):
        return nn.Dense(2)(MLP(self.hidden)(x))


def losses(networks, batches, context):
    """A critic that regresses to r + γ V(s', a'), a' ~ π, and an actor that climbs it."""
    one = jax.tree.map(lambda x: x[0], batches)
    s, a, r, discount, following = one
    next_actions = jax.random.categorical(context.key, networks.frozen["actor"](following))
    y = r + discount * networks.lagged["critic"][0](following, next_actions)
    error = networks.online["critic"](s, a) - jax.lax.stop_gradient(y)
    advantage = jax.lax.stop_gradient(y) - networks.frozen["critic"](s, a)
    taken = jnp.take_along_axis(jax.nn.log_softmax(networks.online["actor"](s)), a[:, None], 1)
    return {"critic": jnp.square(error), "actor": -taken[:, 0] * advantage}, {"mean_q": y}


def policy(networks, observations, key):
    logits = networks.online["actor"](observations)
    return jnp.argmax(logits, -1) if key is None else jax.random.categorical(key, logits)


@dataclass(frozen=True)
class ActorCritic(Options):
    title = "Actor-critic"

    polyak: float = 0.5
    """The critic's."""

    def method(self, loss, reward_clip):
        return Method(
            "actor-critic",
            {"critic": TargetCopies(1, self.polyak), "actor": TargetCopies(0)},
            losses,
            policy,
            build=lambda spec, spaces: {"critic": Critic(), "actor": Actor(spec.hidden)},
            inputs={"critic": lambda spaces: (spaces.observation.zeros(1), np.zeros(1, np.int32))},
            shown=("mean_q",),
            acts_on="actor",
        )


@pytest.fixture(autouse=True)
def _restored(monkeypatch):
    monkeypatch.setattr(registry, "_REGISTERED", dict(registry._REGISTERED))


def mean_action(params, x):
    """argmax of the actor's logits, by hand."""
    for name in ("MLP_0", None):
        layer = params["actor"][name]["Dense_0"] if name else params["actor"]["Dense_0"]
        x = x @ np.asarray(layer["kernel"], float) + np.asarray(layer["bias"], float)
        x = np.maximum(x, 0) if name else x
    return np.argmax(x, -1)


@pytest.mark.parametrize("config", [HOST, FUSED], ids=["host", "fused"])
def test_a_method_of_ones_own_is_trained_resumed_loaded_and_evaluated(config, tmp_path):
    whole = train(config, tmp_path / "whole", algorithm=ActorCritic)
    train(config.replace(steps=60), tmp_path / "halves", algorithm=ActorCritic)
    result = train(config, tmp_path / "halves", algorithm=ActorCritic)
    for name in ("metrics.jsonl", "agent.safetensors", "evaluation.json"):
        one, other = ((tmp_path / run / name).read_bytes() for run in ("whole", "halves"))
        assert one == other, name
    assert {"loss_critic", "loss_actor", "mean_q"} <= set(whole.metrics[-1])

    agent = momentum_rl.load(tmp_path / "halves")
    x = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    np.testing.assert_array_equal(agent.act(x), mean_action(agent.params, x))
    np.testing.assert_array_equal(agent.act(x), result.agent.act(x))
    drawn = [agent.act(x, key) for key in (1, 1, 2)]
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert (drawn[0] != drawn[2]).any()
    # An evaluation takes the best action: the returns are those of playing them by hand.
    played = evaluate(agent, make_environment(config.env, 1), 2, epsilon=0.0)
    environment = make_environment(config.env, 1)
    observation, returns, total = environment.reset(env_seeds(0, 2, EVALUATION)[:1]), [], 0.0
    while len(returns) < 2:
        outcome = environment.step(mean_action(agent.params, observation))
        observation, total = outcome.observation, total + outcome.reward[0]
        if outcome.terminated[0] or outcome.truncated[0]:
            returns.append(total)
            total = 0.0
    assert played.returns == returns


def test_the_file_of_a_method_names_its_algorithm_and_options(tmp_path, monkeypatch):
    result = train(HOST.replace(polyak=0.25), tmp_path / "run", algorithm=ActorCritic)
    assert result.agent.named.options == {"polyak": 0.25}
    registry._REGISTERED.pop("actor-critic")
    with pytest.raises(UserError, match="algorithm: 'actor-critic', expected one of dqn"):
        momentum_rl.load(tmp_path / "run")
    agent = momentum_rl.load(tmp_path / "run", algorithm=ActorCritic)
    x = np.ones(4, np.float32)
    assert agent.act(x) == result.agent.act(x)
    assert isinstance(agent.act(x), int)


def test_greedy_agents_name_nothing_so_that_older_versions_read_them(tmp_path):
    config = HOST.replace(algorithm="dqn", steps=30, final_episodes=0)
    train(config, tmp_path / "run")
    raw = (tmp_path / "run" / "agent.safetensors").read_bytes()
    header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])["__metadata__"]["movi"]
    assert json.loads(header)["format"] == 1
    assert "named" not in json.loads(header)
