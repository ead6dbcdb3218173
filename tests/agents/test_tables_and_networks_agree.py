"""With a one-hot linear network the learner is the tabular sampled scheme of ``planning``.

Every (s, a) is in the (shared) minibatch once; the loss is the mean of B squared errors, so plain
gradient descent with rate B/2 moves every entry onto its target: a unit rate per entry. One
synchronisation per update makes each update one iteration.
"""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import momentum_rl
from momentum_rl.agents.learner import make_learner
from momentum_rl.agents.method import regression
from momentum_rl.agents.registry import names, options_of
from momentum_rl.core.schedules import Mean
from momentum_rl.mdp.operators import on_device
from momentum_rl.planning.engine import Scheme, from_samples, iterate, start
from momentum_rl.spaces import ObservationSpace, Spaces, Transition

STATES, ACTIONS, GAMMA, ITERATIONS = 30, 4, 0.9, 60
CASES = [
    *((name, {}) for name in names() if not name.endswith(("c51", "qr-dqn", "sac"))),
    ("deep-sql", {"sign": "printed"}),
    ("deep-dpp", {"eta": 5.0}),
    ("deep-dpp", {"eta": 5.0, "form": "boltzmann"}),
    ("momentum-dqn", {"h_target": "network"}),
    ("momentum-munchausen-dqn", {"tau": 0.5, "alpha": 0.5}),
]


class OneHotLinear(nn.Module):
    """A table; of values of several entries if it begins with one that has them."""

    begin: tuple = ()

    @nn.compact
    def __call__(self, s):
        first = jnp.asarray(self.begin) if self.begin else jnp.zeros(1)
        table = self.param("table", lambda key: jnp.tile(first, (STATES, ACTIONS, 1)))
        found = table[s]
        return found if self.begin else found[..., 0]


def samples(scale=1.0):
    """One s' per (s, a) and iteration, [K, S, A], of a Garnet with rewards of this scale."""
    mdp = momentum_rl.garnet(STATES, ACTIONS, 4, discount=GAMMA, seed=1)
    mdp = momentum_rl.FiniteMDP(mdp.successors, mdp.probabilities, scale * mdp.rewards, GAMMA)
    rng = np.random.default_rng(1)
    u = rng.random((ITERATIONS, STATES, ACTIONS, 1))
    index = (u > np.cumsum(mdp.probabilities, axis=-1)[None, ..., :-1]).sum(-1)
    every = np.broadcast_to(mdp.successors, (ITERATIONS, *mdp.successors.shape))
    return mdp, np.take_along_axis(every, index[..., None], -1)[..., 0]


def onto_targets(pairs):
    """Moves a table of logits onto the targets of its cross-entropy.

    A mean over B examples has the gradient (p − y)/B by the logits of each, whence y.
    """

    def update(gradients, state, params):
        def change(g, logits):
            y = jax.nn.softmax(logits) - pairs * g
            return jnp.log(jnp.maximum(y, 1e-30)) - logits

        return jax.tree.map(change, gradients, params), state

    return optax.GradientTransformation(lambda params: optax.EmptyState(), update)


def quantiles_onto_targets(pairs, quantiles):
    """Moves a table of quantiles onto targets that are certain and at most 1 away.

    The gradient by the quantile at the level τ is then −w (y − θ)/B, with w = τ below the target
    and 1 − τ above it.
    """
    levels = (np.arange(quantiles) + 0.5) / quantiles

    def update(gradients, state, params):
        def change(g):
            return -pairs * g / jnp.where(g < 0, levels, 1 - levels)

        return jax.tree.map(change, gradients), state

    return optax.GradientTransformation(lambda params: optax.EmptyState(), update)


@pytest.mark.parametrize(("name", "options"), CASES, ids=lambda x: x if isinstance(x, str) else "")
def test_a_one_hot_linear_learner_is_the_tabular_sampled_scheme(name, options):
    algorithm = options_of(name, options).algorithm()
    rate = optax.sgd(STATES * ACTIONS / 2)

    def check(found, expected):
        scale = max(1, np.abs(expected).max())
        np.testing.assert_allclose(found[..., 0], expected, rtol=2e-5, atol=2e-5 * scale)

    tables = compare(algorithm, OneHotLinear(), rate, ITERATIONS, check)
    assert np.abs(tables["q"][0]).max() > 1


@pytest.mark.parametrize("name", ["c51", "momentum-c51"])
def test_a_one_hot_learner_of_distributions_is_the_tabular_categorical_scheme(name):
    algorithm = options_of(name, {"atoms": 21, "v_min": -10.0, "v_max": 10.0}).algorithm()
    begin = tuple(np.log(np.maximum(algorithm.kind("q").zero(), 1e-30)).tolist())

    def check(found, expected):
        assert expected.shape == (STATES, ACTIONS, 21)
        np.testing.assert_allclose(jax.nn.softmax(found), expected, atol=1e-4)

    tables = compare(algorithm, OneHotLinear(begin), onto_targets(STATES * ACTIONS), 25, check)
    spread = tables["q"][0].max(-1)
    assert spread.max() < 0.9  # no atom has it all


@pytest.mark.parametrize("name", ["qr-dqn", "momentum-qr-dqn"])
def test_a_one_hot_learner_of_quantiles_is_the_tabular_quantile_scheme(name):
    # With one successor at a time from a certain 0 on, every target is certain.
    algorithm = options_of(name, {"quantiles": 5}).algorithm()
    moves = quantiles_onto_targets(STATES * ACTIONS, 5)

    def check(found, expected):
        assert expected.shape == (STATES, ACTIONS, 5)
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)

    tables = compare(algorithm, OneHotLinear((0.0,) * 5), moves, ITERATIONS, check, scale=0.02)
    assert 0.05 < np.abs(tables["q"][0]).max() < 0.5  # so that no step was longer than 1


def compare(algorithm, network, optimiser, iterations, check, scale=1.0):
    """Both, iteration by iteration; the tables in the end."""
    mdp, successors = samples(scale)
    pairs = STATES * ACTIONS
    scheme = Scheme(algorithm, Mean())
    learner = make_learner(
        regression(algorithm, loss="squared", shared_batch=True),
        network,
        optimiser,
        Spaces(ObservationSpace((), "int32", STATES), ACTIONS),
        beta=scheme.rate,
    )
    update = jax.jit(lambda state, batch, k: learner.sync(learner.update(state, batch, k)[0]))
    state = learner.init(jax.random.key(0))
    with jax.enable_x64(True):
        device, tables = on_device(mdp), start(algorithm, STATES, ACTIONS)
        iteration = jax.jit(
            lambda tables, s2, k: iterate(scheme, tables, from_samples(s2[None]), device, k)
        )
    s, a = (x.reshape(1, -1) for x in np.divmod(np.arange(pairs), ACTIONS))
    for k in range(1, iterations + 1):
        batch = Transition(
            observation=s.astype(np.int32),
            action=a.astype(np.int32),
            reward=mdp.rewards.reshape(1, -1).astype(np.float32),
            discount=np.full((1, pairs), GAMMA, np.float32),
            next_observation=successors[k - 1].reshape(1, -1).astype(np.int32),
        )
        state = update(state, batch, k)
        with jax.enable_x64(True):
            tables = iteration(tables, jnp.asarray(successors[k - 1]), k)
        for name in algorithm.targets:
            check(state.online[name]["table"], np.asarray(tables[name][0]))
    return {name: np.asarray(table) for name, table in tables.items()}
