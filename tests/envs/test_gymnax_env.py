"""MinAtar and classic control of gymnax, as JAX-native environments and driven from the host."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from momentum_rl.envs.gymnax_env import MINATAR, make_gymnax, sticky
from momentum_rl.envs.jax_env import (
    HostedEnvironment,
    JaxEnvironment,
    JaxOutcome,
    env_keys,
    reset_all,
    step_all,
    step_keys,
)
from momentum_rl.envs.make import make_environment
from momentum_rl.errors import UserError
from momentum_rl.spaces import ObservationSpace, Spaces

CHANNELS = {"Asterix": 4, "Breakout": 4, "Freeway": 7, "Seaquest": 10, "SpaceInvaders": 6}


@pytest.mark.parametrize("game", MINATAR)
def test_minatar_has_six_actions_and_binary_images(game):
    environment = make_gymnax(f"MinAtar/{game}")
    assert environment.spaces == Spaces(ObservationSpace((10, 10, CHANNELS[game]), "bool"), 6)
    _, observation = jax.eval_shape(environment.reset, jax.random.key(0))
    assert (observation.shape, observation.dtype) == ((10, 10, CHANNELS[game]), bool)


@pytest.mark.parametrize("game", MINATAR)
def test_a_minatar_state_keeps_its_dtypes_so_that_a_loop_can_carry_it(game):
    environment = make_gymnax(f"MinAtar/{game}")
    state, _ = jax.eval_shape(environment.reset, jax.random.key(0))
    new, outcome = jax.eval_shape(environment.step, jax.random.key(0), state, jnp.int32(0))
    assert new == state
    assert outcome.reward.dtype == jnp.float32
    assert outcome.terminated.dtype == outcome.truncated.dtype == bool


def counter(probability):
    """Tells of the actions that reach it."""

    def step(key, state, action):
        seen = action.astype(jnp.float32)[None]
        no = jnp.bool_(False)
        return state, JaxOutcome(seen, seen, jnp.float32(0), no, no)

    inner = JaxEnvironment(
        Spaces(ObservationSpace((1,), "float32"), 6),
        lambda key: (jnp.int32(0), jnp.zeros(1, jnp.float32)),
        step,
    )
    return sticky(inner, probability)


def taken(environment, actions):
    keys = env_keys(range(len(actions[0])))
    states, _ = reset_all(environment, keys)

    def body(states, x):
        states, outcome = step_all(environment, step_keys(keys, x[0]), states, x[1])
        return states, outcome.observation[:, 0]

    counts = jnp.arange(1, len(actions) + 1)
    return np.asarray(jax.lax.scan(body, states, (counts, jnp.asarray(actions)))[1]).astype(int)


def test_a_tenth_of_the_actions_stick_to_the_one_taken_before():
    given = np.random.default_rng(0).integers(6, size=(2_000, 8)).astype(np.int32)
    seen = taken(counter(0.1), given)
    stuck = seen != given
    before = np.concatenate([np.zeros((1, 8), int), seen[:-1]])
    np.testing.assert_array_equal(seen[stuck], before[stuck])
    # A stuck action differs from the given one in five of six cases.
    share, n = 0.1 * 5 / 6, stuck.size
    assert abs(stuck.mean() - share) < 5 * np.sqrt(share * (1 - share) / n)
    assert abs(np.corrcoef(stuck[:, 0], stuck[:, 1])[0, 1]) < 0.1


def test_without_stickiness_the_given_actions_are_taken():
    given = np.random.default_rng(1).integers(6, size=(50, 2)).astype(np.int32)
    np.testing.assert_array_equal(taken(counter(0.0), given), given)


def played(env_id, steps, n=1, seeds=(0, 1, 2)):
    environment = make_environment(env_id, n)
    first = environment.reset(seeds[:n])
    rng = np.random.default_rng(0)
    return first, [
        environment.step(rng.integers(environment.spaces.actions, size=n)) for _ in range(steps)
    ]


def test_the_same_seed_gives_the_same_episodes_and_another_one_others():
    first, one = played("gymnax/CartPole-v1", 60, 2)
    again, two = played("gymnax/CartPole-v1", 60, 2)
    np.testing.assert_array_equal(first, again)
    for a, b in zip(one, two):
        for x, y in zip(a, b):
            np.testing.assert_array_equal(x, y)
    assert not np.array_equal(first[0], first[1])


def test_at_an_end_the_next_observation_is_the_final_one_and_the_observation_the_resets():
    _, outcomes = played("gymnax/CartPole-v1", 200)
    ends = [outcome for outcome in outcomes if outcome.terminated[0]]
    assert len(ends) > 3
    for outcome in ends:
        assert np.abs(outcome.observation).max() <= 0.05  # where episodes start
        x, _, angle, _ = outcome.next_observation[0]
        assert abs(x) > 2.4 or abs(angle) > 12 * 2 * np.pi / 360  # where they end
    for outcome in outcomes:
        if not outcome.terminated[0]:
            np.testing.assert_array_equal(outcome.observation, outcome.next_observation)
    starts = {tuple(outcome.observation[0]) for outcome in ends}
    assert len(starts) == len(ends)  # each reset has its own random numbers


def test_the_time_limit_is_a_truncation():
    environment = make_environment("gymnax/MountainCar-v0")
    environment.reset([0])
    outcomes = [environment.step(np.array([1])) for _ in range(400)]
    cuts = [t for t, outcome in enumerate(outcomes, 1) if outcome.truncated[0]]
    assert cuts == [200, 400]
    assert not any(outcome.terminated[0] for outcome in outcomes)
    assert not np.array_equal(outcomes[199].observation, outcomes[199].next_observation)


def ends(game, steps):
    """At which actions, counted from 1, an idle player's episodes terminated and were truncated."""
    environment = make_gymnax(f"MinAtar/{game}")
    keys = env_keys([0])
    states, _ = reset_all(environment, keys)

    def body(states, count):
        states, outcome = step_all(
            environment, step_keys(keys, count), states, jnp.zeros(1, jnp.int32)
        )
        return states, (outcome.terminated[0], outcome.truncated[0])

    counts = jnp.arange(1, steps + 1)
    run = jax.jit(lambda s: jax.lax.scan(body, s, counts)[1])
    return [(np.flatnonzero(flags) + 1).tolist() for flags in run(states)]


def originals_ends(steps):
    """When MinAtar's own Freeway is over: a timer from 2,500, terminal once it is below zero."""
    over, timer = [], 2_500
    for action in range(1, steps + 1):
        timer -= 1
        if timer < 0:
            over.append(action)
            timer = 2_500  # the reset that follows
    return over


def test_freeway_terminates_by_its_timer_when_the_original_does():
    terminated, truncated = ends("Freeway", 7_600)
    assert terminated == originals_ends(7_600) == [2_501, 5_002, 7_503]
    assert truncated == []


def test_freeways_last_transition_leads_to_the_final_observation_and_starts_anew():
    environment = make_gymnax("MinAtar/Freeway")
    keys = env_keys([0])
    states, first = reset_all(environment, keys)

    def body(states, count):  # always up: the chicken is rarely where an episode starts
        up = jnp.full(1, 2, jnp.int32)
        states, outcome = step_all(environment, step_keys(keys, count), states, up)
        return states, outcome

    outcomes = jax.jit(lambda s: jax.lax.scan(body, s, jnp.arange(1, 2_502))[1])(states)
    assert np.asarray(outcomes.terminated)[:, 0].nonzero()[0].tolist() == [2_500]
    seen, led = np.asarray(outcomes.observation), np.asarray(outcomes.next_observation)
    np.testing.assert_array_equal(seen[:-1], led[:-1])
    assert not np.array_equal(seen[-1], led[-1])
    assert seen[-1, 0, 9, 4, 0]  # the chicken at the bottom
    np.testing.assert_array_equal(seen[-1, 0, 1:9, 0, 1], True)  # all cars at the left, as at first
    np.testing.assert_array_equal(np.asarray(first)[0, 1:9, 0, 1], True)


def test_the_other_games_run_on_past_gymnax_limit():
    terminated, truncated = ends("Breakout", 3_000)
    assert truncated == []
    assert len(terminated) > 10


def test_hosted_and_compiled_steps_are_the_same():
    environment = make_gymnax("gymnax/CartPole-v1")
    hosted = HostedEnvironment(environment, 2)
    hosted.reset([5, 6])
    keys = env_keys([5, 6])
    states, _ = reset_all(environment, keys)
    for count in range(1, 30):
        actions = np.array([count % 2, 1])
        outcome = hosted.step(actions)
        states, pure = step_all(
            environment, step_keys(keys, jnp.int32(count)), states, jnp.asarray(actions)
        )
        for name in JaxOutcome._fields:
            np.testing.assert_allclose(
                getattr(outcome, name), getattr(pure, name), rtol=1e-5, atol=1e-6
            )


@pytest.mark.parametrize(
    ("env_id", "problem"),
    [
        ("MinAtar/Pong", "MinAtar/Pong.*expected one of MinAtar/Asterix"),
        ("gymnax/Nothing-v0", "gymnax/Nothing-v0.*expected gymnax/ and one of CartPole-v1"),
    ],
)
def test_what_cannot_be_made_is_one_clear_line(env_id, problem):
    with pytest.raises(UserError, match=problem) as error:
        make_environment(env_id)
    assert "\n" not in str(error.value)
