"""The learner against computations done another way: rlax, NumPy by hand, closed forms."""

import functools
from types import SimpleNamespace

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import rlax
from hypothesis import given, settings
from hypothesis import strategies as st

from momentum_rl.agents.learner import make_learner, make_optimiser
from momentum_rl.agents.method import regression
from momentum_rl.agents.networks import MLP, ActionValues
from momentum_rl.agents.registry import options_of
from momentum_rl.core.schedules import Constant, Heuristic, Mean, RateUpdates
from momentum_rl.errors import UserError
from momentum_rl.spaces import ObservationSpace, Spaces, Transition

SPACE = ObservationSpace((3,), "float32")
ACTIONS = 4
SPACES = Spaces(SPACE, ACTIONS)
ALGORITHMS = ("dqn", "momentum-dqn", "deep-sql", "deep-dpp")


def network(hidden=(8,)):
    return ActionValues(SPACE, MLP(hidden), ACTIONS)


def algorithm(name, **options):
    return options_of(name, options).algorithm()


def batches(m, b=6, seed=0, discount=None):
    rng = np.random.default_rng(seed)
    ends = rng.random((m, b)) < 0.3
    return Transition(
        observation=rng.normal(size=(m, b, 3)).astype(np.float32),
        action=rng.integers(ACTIONS, size=(m, b)).astype(np.int32),
        reward=(2 * rng.normal(size=(m, b))).astype(np.float32),
        discount=np.where(ends, 0, 0.9).astype(np.float32) if discount is None else discount,
        next_observation=rng.normal(size=(m, b, 3)).astype(np.float32),
    )


def learner_of(name, optimiser=None, beta=0.25, **options):
    return jitted(
        make_learner(
            regression(algorithm(name), **options),
            network(),
            optimiser or optax.sgd(1.0),
            SPACES,
            beta=Constant(beta),
        )
    )


def jitted(learner):
    """Compiled, but the state's buffers stay ours."""
    return SimpleNamespace(
        init=jax.jit(learner.init),
        update=jax.jit(learner.update),
        sync=jax.jit(learner.sync),
        act=learner.act,
        minibatches=learner.minibatches,
    )


def separated(learner, seed=0):
    """A state whose lagged copies differ from the online networks and from each other."""
    state = learner.init(jax.random.key(seed))
    for i in range(2):
        moved = jax.tree.map(
            lambda p, i=i: p + 0.3 * jax.random.normal(jax.random.key(100 + i), p.shape),
            state.online,
        )
        state = learner.sync(state._replace(online=moved))
    return state._replace(online=learner.init(jax.random.key(seed + 1)).online)


def change(state, after):
    return jax.tree.map(lambda old, new: np.asarray(new - old), state.online, after.online)


def numpy_layers(params):
    hidden, out = params["torso"]["Dense_0"], params["Dense_0"]
    return [np.asarray(x, np.float64) for x in (*_pair(hidden), *_pair(out))]


def _pair(layer):
    return layer["kernel"], layer["bias"]


def forward(layers, x):
    w1, b1, w2, b2 = layers
    hidden = np.maximum(x @ w1 + b1, 0)
    return hidden, hidden @ w2 + b2


def huber_gradient(layers, x, action, target):
    """∇ of the mean Huber loss, by the chain rule: [w1, b1, w2, b2]."""
    w2 = layers[2]
    hidden, values = forward(layers, x)
    rows = np.arange(len(action))
    d_values = np.zeros_like(values)
    d_values[rows, action] = np.clip(values[rows, action] - target, -1, 1) / len(action)
    d_hidden = (d_values @ w2.T) * (hidden > 0)
    return [x.T @ d_hidden, d_hidden.sum(0), hidden.T @ d_values, d_values.sum(0)]


def lagged(state, name, copy=0):
    return numpy_layers(jax.tree.map(lambda p: p[copy], state.lagged[name]))


def test_a_dqn_update_is_the_gradient_of_rlaxs_q_learning():
    learner = learner_of("dqn", loss="squared")
    state, batch = separated(learner), batches(1)

    def rlax_loss(params):
        values = network().apply({"params": params}, batch.observation[0])
        newest = jax.tree.map(lambda p: p[0], state.lagged["q"])
        next_values = network().apply({"params": newest}, batch.next_observation[0])
        errors = jax.vmap(rlax.q_learning)(
            values, batch.action[0], batch.reward[0], batch.discount[0], next_values
        )
        return jnp.mean(jnp.square(errors))

    expected = jax.grad(rlax_loss)(state.online["q"])
    after, metrics = learner.update(state, batch, 1)
    for mine, theirs in zip(jax.tree.leaves(change(state, after)["q"]), jax.tree.leaves(expected)):
        np.testing.assert_allclose(mine, -theirs, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(metrics["loss_q"], rlax_loss(state.online["q"]), rtol=1e-6)


def test_one_momentum_dqn_update_of_both_networks_is_the_one_computed_by_hand():
    learner = learner_of("momentum-dqn", make_optimiser("rmsprop", 2.5e-4, 1e-5), beta=0.25)
    state, batch = separated(learner), batches(2)
    after, _ = learner.update(state, batch, 1)

    q, h = lagged(state, "q"), lagged(state, "h")
    for j, name in enumerate(("q", "h")):
        s, a, r, d, s2 = (np.asarray(x[j], np.float64) for x in batch)
        a = a.astype(int)
        rows = np.arange(len(a))
        # argmax from H⁻, value from Q⁻; β H⁻(s, a) + (1 − β)(r + γ …) for h.
        target = r + d * forward(q, s2)[1][rows, forward(h, s2)[1].argmax(1)]
        if name == "h":
            target = 0.25 * forward(h, s)[1][rows, a] + 0.75 * target
        gradient = huber_gradient(numpy_layers(state.online[name]), s, a, target)
        # Centred RMSProp from n = 1, m = 0: n = .95 + .05 g², m = .05 g.
        for before, new, g in zip(
            numpy_layers(state.online[name]), numpy_layers(after.online[name]), gradient
        ):
            n, m = 0.95 + 0.05 * g**2, 0.05 * g
            expected = before - 2.5e-4 * g / np.sqrt(n - m**2 + 1e-5)
            np.testing.assert_allclose(new, expected, rtol=1e-6, atol=1e-7)
            assert np.abs(new - before).max() > 0


@pytest.mark.parametrize("sign", ["sql", "printed"])
def test_a_deep_sql_update_reads_both_lagged_copies(sign):
    learner = make_learner(
        regression(algorithm("deep-sql", sign=sign)),
        network(),
        optax.sgd(1.0),
        SPACES,
        beta=Constant(0.4),
    )
    state, batch = separated(learner), batches(1)
    after, _ = learner.update(state, batch, 1)
    s, a, r, d, s2 = (np.asarray(x[0], np.float64) for x in batch)
    a, rows = a.astype(int), np.arange(6)
    q1 = forward(lagged(state, "q", 0), s)[1][rows, a]
    m1 = forward(lagged(state, "q", 0), s2)[1].max(1)
    m2 = forward(lagged(state, "q", 1), s2)[1].max(1)
    last = 0.4 * d * (m1 - m2) * (1 if sign == "sql" else -1)
    target = q1 + 0.6 * (r + d * m2 - q1) + last
    gradient = huber_gradient(numpy_layers(state.online["q"]), s, a, target)
    for before, new, g in zip(
        numpy_layers(state.online["q"]), numpy_layers(after.online["q"]), gradient
    ):
        np.testing.assert_allclose(new, before - g, rtol=1e-5, atol=1e-6)


def test_a_deep_dpp_update_subtracts_the_greatest_value_at_s():
    learner = learner_of("deep-dpp")
    state, batch = separated(learner), batches(1)
    after, _ = learner.update(state, batch, 1)
    s, a, r, d, s2 = (np.asarray(x[0], np.float64) for x in batch)
    a, rows = a.astype(int), np.arange(6)
    at_s, at_s2 = forward(lagged(state, "q"), s)[1], forward(lagged(state, "q"), s2)[1]
    target = at_s[rows, a] + r + d * at_s2.max(1) - at_s.max(1)
    gradient = huber_gradient(numpy_layers(state.online["q"]), s, a, target)
    for before, new, g in zip(
        numpy_layers(state.online["q"]), numpy_layers(after.online["q"]), gradient
    ):
        np.testing.assert_allclose(new, before - g, rtol=1e-5, atol=1e-6)


def test_two_rmsprop_steps_are_the_closed_form():
    optimiser = make_optimiser("rmsprop", 0.1, 1e-5)
    x = jnp.array([1.0, -2.0])
    state = optimiser.init(x)
    n, m, expected = np.ones(2), np.zeros(2), np.array([1.0, -2.0])
    for g in (np.array([0.5, -3.0]), np.array([-0.2, 1.0])):
        step, state = optimiser.update(jnp.asarray(g, jnp.float32), state, x)
        x = x + step
        n, m = 0.95 * n + 0.05 * g**2, 0.95 * m + 0.05 * g
        expected = expected - 0.1 * g / np.sqrt(n - m**2 + 1e-5)
        np.testing.assert_allclose(x, expected, rtol=1e-6)


def test_the_loss_is_a_mean_over_the_batch_so_repeating_the_batch_changes_nothing():
    learner = learner_of("momentum-dqn")
    state, once = separated(learner), batches(2)
    twice = jax.tree.map(lambda x: np.concatenate([x, x], axis=1), once)
    for a, b in zip(
        jax.tree.leaves(learner.update(state, once, 1)[0].online),
        jax.tree.leaves(learner.update(state, twice, 1)[0].online),
    ):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_hubers_gradient_is_clipped_at_one():
    from momentum_rl.agents.method import huber, squared

    errors = jnp.array([-5.0, -1.0, -0.5, 0.0, 0.5, 1.0, 5.0])
    np.testing.assert_allclose(jax.vmap(jax.grad(huber))(errors), np.clip(errors, -1, 1))
    np.testing.assert_allclose(jax.vmap(jax.grad(squared))(errors), 2 * errors)


def test_h_is_initialised_independently_of_q_and_lagged_copies_start_as_copies():
    learner = learner_of("momentum-dqn")
    state = learner.init(jax.random.key(0))
    assert not np.allclose(
        state.online["q"]["Dense_0"]["kernel"], state.online["h"]["Dense_0"]["kernel"]
    )
    for name in ("q", "h"):
        for online, old in zip(
            jax.tree.leaves(state.online[name]), jax.tree.leaves(state.lagged[name])
        ):
            np.testing.assert_array_equal(online, old[0])


def test_each_network_has_an_optimiser_state_of_its_own_fed_by_its_own_minibatch():
    learner = learner_of("momentum-dqn", make_optimiser("adam", 1e-3, 1e-8))
    state, batch = separated(learner), batches(2)
    other = jax.tree.map(lambda x, y: np.stack([x[0], y[1]]), batch, batches(2, seed=9))
    a, _ = learner.update(state, batch, 1)
    b, _ = learner.update(state, other, 1)
    for leaf_a, leaf_b in zip(jax.tree.leaves(a.optimiser["q"]), jax.tree.leaves(b.optimiser["q"])):
        np.testing.assert_array_equal(leaf_a, leaf_b)
    moments = [jax.tree.leaves(x.optimiser["h"])[1] for x in (a, b)]
    assert not np.allclose(*moments)


def test_a_shared_minibatch_is_the_same_one_for_both_networks():
    shared, separate = learner_of("momentum-dqn", shared_batch=True), learner_of("momentum-dqn")
    assert (shared.minibatches, separate.minibatches) == (1, 2)
    state, one = separated(shared), batches(1)
    two = jax.tree.map(lambda x: np.concatenate([x, x]), one)
    for a, b in zip(
        jax.tree.leaves(shared.update(state, one, 1)[0].online),
        jax.tree.leaves(separate.update(state, two, 1)[0].online),
    ):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7)


REFERENCES = {
    name: jitted(
        make_learner(
            regression(algorithm(name)), network(), optax.sgd(1.0), SPACES, beta=lambda beta: beta
        )
    )
    for name in ("momentum-dqn", "deep-sql")
}


@pytest.mark.parametrize("name", ["momentum-dqn", "deep-sql"])
@pytest.mark.parametrize(
    ("schedule", "table"),
    [
        (RateUpdates(10), {9: 0, 10: 1 / 2, 29: 2 / 3, 2_000_000_000: 1 - 1 / 200_000_001}),
        (Constant(0.9), {1: 0.9, 2_000_000_000: 0.9}),
        (Heuristic(10), {9: 0, 45: 0.4, 2_000_000_000: 0.9}),
        (Mean(), {0: 0, 3: 3 / 4}),
    ],
    ids=["rate-updates", "constant", "heuristic", "mean"],
)
def test_every_beta_schedule_follows_the_agent_step_in_integers(name, schedule, table):
    learner = jitted(
        make_learner(regression(algorithm(name)), network(), optax.sgd(1.0), SPACES, beta=schedule)
    )
    state, batch = separated(REFERENCES[name]), batches(learner.minibatches)
    for step, beta in table.items():
        found, _ = learner.update(state, batch, step)
        expected, _ = REFERENCES[name].update(state, batch, float(beta))  # the "step" is β itself
        for a, b in zip(jax.tree.leaves(found.online), jax.tree.leaves(expected.online)):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_sync_shifts_the_lagged_copies_and_leaves_the_rest():
    learner = learner_of("deep-sql")
    state = learner.init(jax.random.key(0))
    first = jax.tree.map(lambda p: p + 1, state.online)
    second = jax.tree.map(lambda p: p + 2, state.online)
    once = learner.sync(state._replace(online=first))
    twice = learner.sync(once._replace(online=second))
    for start, old in zip(jax.tree.leaves(state.online), jax.tree.leaves(once.lagged)):
        np.testing.assert_array_equal(old, jnp.stack([start + 1, start]))
    for start, old in zip(jax.tree.leaves(state.online), jax.tree.leaves(twice.lagged)):
        np.testing.assert_array_equal(old, jnp.stack([start + 2, start + 1]))


def test_updates_touch_only_the_online_networks_and_read_only_the_lagged_ones():
    learner = learner_of("momentum-dqn")
    state, batch = separated(learner), batches(2)
    after, _ = learner.update(state, batch, 1)
    for old, new in zip(jax.tree.leaves(state.lagged), jax.tree.leaves(after.lagged)):
        np.testing.assert_array_equal(old, new)
    # q's step does not depend on the online h, nor h's on the online q.
    moved = {**state.online, "h": jax.tree.map(lambda p: p + 1, state.online["h"])}
    again, _ = learner.update(state._replace(online=moved), batch, 1)
    for a, b in zip(jax.tree.leaves(after.online["q"]), jax.tree.leaves(again.online["q"])):
        np.testing.assert_array_equal(a, b)


def test_acting_is_greedy_on_the_online_h():
    learner = learner_of("momentum-dqn")
    state, x = separated(learner), batches(1).observation[0]
    h = network().apply({"params": state.online["h"]}, x)
    q = network().apply({"params": state.online["q"]}, x)
    np.testing.assert_array_equal(learner.act(state, x), jnp.argmax(h, axis=1))
    assert not np.array_equal(learner.act(state, x), jnp.argmax(q, axis=1))


def test_rewards_are_clipped_for_learning_only_when_asked():
    clipped, plain = learner_of("dqn", reward_clip=1.0), learner_of("dqn")
    state, batch = separated(clipped), batches(1)
    by_hand = batch._replace(reward=np.clip(batch.reward, -1, 1))
    for a, b in zip(
        jax.tree.leaves(clipped.update(state, batch, 1)[0].online),
        jax.tree.leaves(plain.update(state, by_hand, 1)[0].online),
    ):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name != "momentum-dqn" else [])
        for name in ALGORITHMS
    ],
)
def test_seeds_side_by_side_are_the_single_runs(name):
    learner = learner_of(name, make_optimiser("adam", 1e-3, 1e-8))
    keys = jax.random.split(jax.random.key(0), 3)
    single = [learner.init(key) for key in keys]
    many = jax.vmap(learner.init)(keys)
    data = [batches(learner.minibatches, seed=i) for i in range(3)]
    stacked = jax.tree.map(lambda *x: np.stack(x), *data)
    for step in range(1, 4):
        many, _ = jax.vmap(learner.update, in_axes=(0, 0, None))(many, stacked, step)
        many = jax.vmap(learner.sync)(many)
        single = [learner.sync(learner.update(s, b, step)[0]) for s, b in zip(single, data)]
    for i in range(3):
        for a, b in zip(jax.tree.leaves(many), jax.tree.leaves(single[i])):
            np.testing.assert_allclose(a[i], b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("poison", ["reward", "next_observation"])
def test_a_state_that_diverges_says_when_and_keeps_its_last_finite_parameters(poison):
    learner = learner_of("momentum-dqn", make_optimiser("adam", 1e-3, 1e-8))
    state, good = separated(learner), batches(2)
    bad = good._replace(**{poison: np.full_like(getattr(good, poison), np.nan)})
    before, _ = learner.update(state, good, 7)
    assert (int(before.diverged_at), int(before.updates)) == (0, 1)
    after, _ = learner.update(before, bad, 8)
    assert (int(after.diverged_at), int(after.updates)) == (8, 1)
    later, _ = learner.update(after, good, 9)
    assert (int(later.diverged_at), int(later.updates)) == (8, 1)
    for a, b in zip(
        jax.tree.leaves((before.online, before.optimiser)),
        jax.tree.leaves((later.online, later.optimiser)),
    ):
        np.testing.assert_array_equal(a, b)


def test_parameters_that_overflow_count_as_diverged_although_the_loss_was_finite():
    learner = learner_of("dqn", optax.sgd(1e38), loss="squared")
    batch = batches(1)
    batch = batch._replace(reward=100 * batch.reward)
    state, metrics = learner.update(separated(learner), batch, 3)
    assert np.isfinite(metrics["loss_q"])
    assert int(state.diverged_at) == 3
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(state.online))


def test_a_network_with_more_than_parameters_is_refused_in_one_line():
    class Normalised(nn.Module):
        @nn.compact
        def __call__(self, x):
            return nn.Dense(4)(nn.BatchNorm(use_running_average=True)(x))

    learner = make_learner(
        regression(algorithm("dqn")), Normalised(), optax.sgd(1.0), SPACES, beta=Constant(0.0)
    )
    with pytest.raises(UserError, match="batch_stats"):
        learner.init(jax.random.key(0))


@functools.cache
def prepared(name):
    """A learner, a state of it and its compiled update."""
    learner = learner_of(name)
    return learner, separated(learner), jax.jit(learner.update)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**16), name=st.sampled_from(ALGORITHMS))
def test_at_a_termination_no_target_depends_on_the_next_observation(seed, name):
    learner, state, update = prepared(name)
    ended = np.zeros((learner.minibatches, 6), np.float32)
    batch = batches(learner.minibatches, seed=seed, discount=ended)
    other = batch._replace(next_observation=batch.next_observation + 1)
    for a, b in zip(
        jax.tree.leaves(update(state, batch, 1)[0].online),
        jax.tree.leaves(update(state, other, 1)[0].online),
    ):
        np.testing.assert_array_equal(a, b)
