"""Methods of one's own: losses and a policy over networks of different structures."""

from dataclasses import replace

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from momentum_rl.agents.learner import fingerprint, make_learner
from momentum_rl.agents.method import Method, Networks, TargetCopies, regression, targets_of
from momentum_rl.agents.networks import MLP, ActionValues, NetworkSpec
from momentum_rl.agents.registry import options_of
from momentum_rl.core.schedules import Constant
from momentum_rl.core.targets import AVI, Algorithm
from momentum_rl.core.values import Categorical
from momentum_rl.errors import UserError
from momentum_rl.spaces import ObservationSpace, Spaces, Transition

SPACE = ObservationSpace((3,), "float32")
SPACES = Spaces(SPACE, 2)
POLYAK = 0.25


class Linear(nn.Module):
    @nn.compact
    def __call__(self, x, y=None):
        x = x if y is None else jnp.concatenate([x, y], -1)
        return nn.Dense(1, use_bias=False, name="out")(x)[..., 0]


class Scalar(nn.Module):
    @nn.compact
    def __call__(self):
        return self.param("log", nn.initializers.zeros, ())


def losses(networks, batches, context):
    """A critic of (s, r), an actor of s that climbs the critic, and a temperature."""
    (s,), (r,) = batches.observation, batches.reward
    value = networks.online["critic"](s, r[:, None])
    target = networks.lagged["critic"][0](s, r[:, None]) + 1
    height = networks.frozen["critic"](s, networks.online["actor"](s)[:, None])
    noise = jax.random.normal(context.key, ())
    found = {
        "critic": jnp.square(value - target),
        "actor": -height,
        "temperature": networks.online["temperature"]() * (height + noise),
    }
    return found, {"height": height}


def policy(networks, observations, key):
    noise = jax.random.normal(key, observations.shape[:1])
    return (
        networks.online["actor"](observations) + jnp.exp(networks.online["temperature"]()) * noise
    )


METHOD = Method(
    "mine",
    {"critic": TargetCopies(1, POLYAK), "actor": TargetCopies(0), "temperature": TargetCopies(0)},
    losses,
    policy,
    build=lambda spec, spaces: {},
    inputs={
        "critic": lambda spaces: (spaces.observation.zeros(1), np.zeros((1, 1), np.float32)),
        "temperature": lambda spaces: (),
    },
    shown=("height",),
    acts_on="actor",
)
MODULES = {"critic": Linear(), "actor": Linear(), "temperature": Scalar()}
RATES = {"critic": optax.sgd(0.1), "actor": optax.sgd(0.01), "temperature": optax.sgd(1.0)}


def learner():
    return make_learner(METHOD, MODULES, RATES, SPACES, beta=Constant(0.0))


def batch(b=5):
    rng = np.random.default_rng(0)
    return Transition(
        rng.normal(size=(1, b, 3)).astype(np.float32),
        np.zeros((1, b), np.int32),
        rng.normal(size=(1, b)).astype(np.float32),
        np.zeros((1, b), np.float32),
        np.zeros((1, b, 3), np.float32),
    )


def weights(state, name):
    return np.asarray(state.online[name]["out"]["kernel"], float)[:, 0]


def test_each_network_has_its_own_structure_rate_and_way_of_following():
    mine, key = learner(), jax.random.key(7)
    before = mine.init(jax.random.key(0))
    assert set(before.lagged) == {"critic"}
    after, metrics = mine.update(before, batch(), 1, key)
    s, r = (np.asarray(x[0], float) for x in (batch().observation, batch().reward))
    w, u = weights(before, "critic"), weights(before, "actor")
    x = np.concatenate([s, r[:, None]], 1)
    # The lagged copy starts as a copy, so that every error is −1.
    np.testing.assert_allclose(weights(after, "critic"), w + 0.1 * 2 * x.mean(0), atol=1e-6)
    # d height / d actor = w_4 s; the actor's loss does not move the critic.
    np.testing.assert_allclose(weights(after, "actor"), u + 0.01 * w[3] * s.mean(0), atol=1e-6)
    height = s @ w[:3] + (s @ u) * w[3]
    noise = float(jax.random.normal(key, ()))
    moved = float(after.online["temperature"]["log"])
    np.testing.assert_allclose(moved, -(height.mean() + noise), atol=1e-5)
    np.testing.assert_allclose(metrics["height"], height.mean(), atol=1e-5)
    assert mine.metrics == ("height", "loss_actor", "loss_critic", "loss_temperature")
    # The copy moves by its share at every update, and a synchronisation leaves it alone.
    copy = np.asarray(after.lagged["critic"]["out"]["kernel"], float)[0, :, 0]
    np.testing.assert_allclose(copy, w + POLYAK * (weights(after, "critic") - w), atol=1e-6)
    jax.tree.map(np.testing.assert_array_equal, mine.sync(after).lagged, after.lagged)


def test_a_policy_acts_by_its_key():
    mine = learner()
    state, s = mine.init(jax.random.key(0)), batch().observation[0]
    one, again, other = (mine.act(state, s, jax.random.key(k)) for k in (1, 1, 2))
    np.testing.assert_array_equal(one, again)
    assert not np.allclose(one, other)


def test_a_network_without_a_copy_diverges_to_something_finite():
    mine = learner()
    bad = batch()._replace(reward=np.full((1, 5), np.nan, np.float32))
    state, _ = mine.update(mine.init(jax.random.key(0)), bad, 9, jax.random.key(0))
    assert int(state.diverged_at) == 9
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(state.online))


def value_learner(name="momentum-dqn", optimiser=None, hidden=(8,), loss="huber", **options):
    method = regression(options_of(name, options).algorithm(), loss=loss)
    network = ActionValues(SPACE, MLP(hidden), 2)
    return make_learner(method, network, optimiser or optax.adam(1e-3), SPACES, beta=Constant(0.5))


def test_the_fingerprint_tells_algorithms_networks_optimisers_and_losses_of_equal_shapes_apart():
    same = {fingerprint(value_learner(), SPACES) for _ in range(2)}
    assert len(same) == 1
    others = [
        value_learner("momentum-double-dqn"),
        value_learner("momentum-munchausen-dqn"),
        value_learner("momentum-munchausen-dqn", tau=0.1),
        value_learner(h_target="network"),
        value_learner(optimiser=optax.adam(2e-3)),
        value_learner(optimiser=optax.adam(1e-3, b1=0.8)),
        value_learner(loss="squared"),
        value_learner(hidden=(8, 8)),
    ]
    found = [fingerprint(other, SPACES) for other in others]
    assert len({*same, *found}) == 1 + len(others)


def test_two_networks_of_equal_shapes_and_different_activations_have_different_fingerprints():
    class Tanh(nn.Module):
        wave: float = 1.0

        @nn.compact
        def __call__(self, x):
            return nn.Dense(2)(jnp.tanh(self.wave * nn.Dense(4)(x)))

    def of(network):
        method = regression(options_of("dqn").algorithm())
        mine = make_learner(method, network, optax.sgd(1.0), SPACES, beta=Constant(0.0))
        return fingerprint(mine, SPACES)

    assert of(Tanh()) == of(Tanh())
    assert of(Tanh()) != of(Tanh(2.0))


def networks(name, seed):
    """The networks of an algorithm whose outputs are known: a table of the first entry of s."""
    rng = np.random.default_rng(seed)
    algorithm = options_of(name).algorithm()
    tables = {n: rng.normal(size=(algorithm.lags + 1, 4, 2)) for n in algorithm.targets}

    def read(table):
        return lambda s: jnp.asarray(table)[jnp.asarray(s)[:, 0].astype(int)]

    online = {n: read(t[0]) for n, t in tables.items()}
    lagged = {n: tuple(read(row) for row in t[1:]) for n, t in tables.items()}
    return algorithm, tables, Networks(online, online, lagged)


@pytest.mark.parametrize("name", ["double-dqn", "momentum-double-dqn"])
def test_double_takes_the_action_from_the_online_network_and_the_value_from_the_lagged(name):
    algorithm, tables, given = networks(name, 3)
    s2 = np.array([[[1.0], [2.0], [3.0], [0.0]]])
    data = Transition(
        s2[:, ::-1], np.array([[0, 1, 1, 0]]), np.ones((1, 4)), np.full((1, 4), 0.5), s2
    )
    y = targets_of(algorithm, given, data, jnp.float32(0.25))["q"].value
    chooser = tables["h" if name.startswith("momentum") else "q"][0]
    index = s2[0, :, 0].astype(int)
    expected = 1 + 0.5 * tables["q"][1][index, chooser[index].argmax(1)]
    np.testing.assert_allclose(y, expected, rtol=1e-6)


def test_h_averages_the_value_of_the_online_network_where_it_is_asked_to():
    _, tables, given = networks("momentum-dqn", 4)
    algorithm = options_of("momentum-dqn", {"h_target": "network"}).algorithm()
    s = np.array([[[1.0], [2.0]]])
    a = np.array([[0, 1]])
    data = Transition(s, a, np.full((1, 2), 9.0), np.full((1, 2), 0.5), s)
    h = targets_of(algorithm, given, data, jnp.float32(0.25))["h"].value
    expected = 0.25 * tables["h"][1][[1, 2], a[0]] + 0.75 * tables["q"][0][[1, 2], a[0]]
    np.testing.assert_allclose(h, expected, rtol=1e-6)


def test_networks_are_built_for_the_values_of_each():
    algorithm = options_of("momentum-c51", {"atoms": 7, "h_value": "number"}).algorithm()
    made = regression(algorithm).build(NetworkSpec("mlp"), SPACES)
    assert {name: module.shape for name, module in made.items()} == {"q": (7,), "h": ()}


def test_the_network_that_acts_is_declared_and_is_one_of_the_networks():
    with pytest.raises(UserError, match="acts_on: 'q', expected one of the networks critic, actor"):
        replace(METHOD, acts_on="q")


def test_the_clipped_share_is_of_the_value_whatever_it_is_called():
    z = Categorical(-1.0, 1.0, 3)
    mine = Algorithm(
        "mine", {"z": AVI.targets["q"]}, preference="z", value_table="z", kinds={"z": z}
    )
    assert regression(mine).shown == ("mean_z", "clipped_z")
