from types import SimpleNamespace

import jax
import numpy as np
import optax

from momentum_rl.agents.learner import make_learner, make_optimiser
from momentum_rl.agents.method import regression
from momentum_rl.agents.networks import MLP, ActionValues
from momentum_rl.agents.registry import options_of
from momentum_rl.core.schedules import RateUpdates
from momentum_rl.spaces import ObservationSpace, Spaces, Transition
from momentum_rl.training.host_loop import HostLearner
from momentum_rl.training.loop import INITIALISATION, key_of

SPACE = ObservationSpace((4,), "float32")


def learner():
    return make_learner(
        regression(options_of("momentum-dqn").algorithm()),
        ActionValues(SPACE, MLP((32, 32)), 3),
        make_optimiser("adam", 1e-2, 1e-8),
        Spaces(SPACE, 3),
        beta=RateUpdates(5),
    )


PURE = learner()
PURE = SimpleNamespace(
    init=PURE.init, update=jax.jit(PURE.update), sync=PURE.sync, act=jax.jit(PURE.act)
)


def batch(k):
    rng = np.random.default_rng(k)
    return Transition(
        rng.normal(size=(2, 16, 4)).astype(np.float32),
        rng.integers(3, size=(2, 16)).astype(np.int32),
        rng.normal(size=(2, 16)).astype(np.float32),
        np.full((2, 16), 0.9, np.float32),
        rng.normal(size=(2, 16, 4)).astype(np.float32),
    )


def test_acting_sees_every_update_before_it():
    driven, pure = HostLearner(learner(), 0), PURE
    state = pure.init(key_of(0, INITIALISATION))
    observation = batch(99).observation[0]
    for k in range(1, 6):
        driven.update(batch(k), k)
        state, _ = pure.update(state, batch(k), k)
        np.testing.assert_array_equal(driven.act(observation, k), pure.act(state, observation))
    for a, b in zip(jax.tree.leaves(driven.state.online), jax.tree.leaves(state.online)):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_means_are_over_the_updates_since_they_were_last_taken():
    driven, pure = HostLearner(learner(), 0), PURE
    state, losses = pure.init(key_of(0, INITIALISATION)), []
    assert driven.take_means()["loss_h"] is None
    for k in range(1, 9):
        driven.update(batch(k), k)
        state, metrics = pure.update(state, batch(k), k)
        losses.append(float(metrics["loss_h"]))
        if k == 3:
            assert np.isclose(driven.take_means()["loss_h"], np.mean(losses), rtol=1e-4)
            losses = []
    assert np.isclose(driven.take_means()["loss_h"], np.mean(losses), rtol=1e-4)


def test_an_update_that_is_not_finite_is_not_part_of_the_means():
    driven = HostLearner(learner(), 0)
    driven.update(batch(1), 1)
    driven.update(batch(2)._replace(reward=np.full((2, 16), np.inf, np.float32)), 2)
    driven.update(batch(3), 3)
    assert driven.diverged_at() == 2
    assert all(np.isfinite(value) for value in driven.take_means().values())
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(driven.parameters()))


def test_any_optax_optimiser_can_be_used():
    chain = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))
    driven = HostLearner(
        make_learner(
            regression(options_of("deep-sql").algorithm()),
            ActionValues(SPACE, MLP((8,)), 3),
            chain,
            Spaces(SPACE, 3),
            beta=RateUpdates(5),
        ),
        0,
    )
    driven.update(jax.tree.map(lambda x: x[:1], batch(1)), 1)
    assert int(driven.state.updates) == 1
