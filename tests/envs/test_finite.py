"""A finite MDP as an environment: its transitions, ends, starts, and what is seen."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import momentum_rl
from momentum_rl.envs.finite import absorbing, finite_environment
from momentum_rl.envs.jax_env import HostedEnvironment
from momentum_rl.mdp.families import Maze, garnet
from momentum_rl.mdp.model import FiniteMDP
from momentum_rl.mdp.solve.exact import optimum
from momentum_rl.runs.config import Config
from tests.oracles import dense_kernel, random_mdp, refusal


def played(environment, steps, n=1_000, seed=0):
    """States, actions and outcomes of n environments under random actions."""
    keys = jax.random.split(jax.random.key(seed), n)
    states, observation = jax.vmap(environment.reset)(keys)

    def step(carry, k):
        states, seen = carry
        draws = jax.vmap(lambda key: jax.random.split(jax.random.fold_in(key, k)))(keys)
        actions = jax.vmap(lambda key: jax.random.randint(key, (), 0, environment.spaces.actions))(
            draws[:, 0]
        )
        states, outcome = jax.vmap(environment.step)(draws[:, 1], states, actions)
        return (states, outcome.observation), (seen, actions, outcome)

    _, (seen, actions, outcomes) = jax.lax.scan(
        step, (states, observation), jnp.arange(1, steps + 1)
    )
    return np.asarray(observation), np.asarray(seen), np.asarray(actions), outcomes


def test_a_million_transitions_are_the_kernels():
    """χ² over the successors of each (s, a): its mean is the degrees of freedom."""
    mdp = random_mdp(3, 6, 2, 3)
    _, seen, actions, outcomes = played(finite_environment(mdp), 1_000)
    counts = np.zeros((6, 2, 6))
    np.add.at(counts, (seen, actions, np.asarray(outcomes.next_observation)), 1)
    assert counts.sum() == 1_000_000
    expected = dense_kernel(mdp) * counts.sum(-1, keepdims=True)
    assert not counts[expected == 0].any()
    possible = expected > 0
    chi = ((counts - expected)[possible] ** 2 / expected[possible]).sum()
    freedom = possible.sum() - (counts.sum(-1) > 0).sum()
    assert abs(chi - freedom) < 4 * (2 * freedom) ** 0.5
    np.testing.assert_allclose(
        np.asarray(outcomes.reward), mdp.rewards[seen, actions], rtol=1e-6, atol=1e-7
    )


def test_an_episode_ends_where_nothing_is_left_or_paid_and_begins_anew():
    mdp = Maze(size=3, walls=0.0, slip=0.2, discount=0.9).mdp()
    assert absorbing(mdp).tolist() == [False] * 8 + [True]
    first, seen, _, outcomes = played(finite_environment(mdp, limit=1_000), 200)
    ended, after = np.asarray(outcomes.terminated), np.asarray(outcomes.next_observation)
    np.testing.assert_array_equal(ended, after == 8)
    assert ended.any()
    assert not np.asarray(outcomes.truncated).any()
    np.testing.assert_array_equal(seen[1:], np.asarray(outcomes.observation)[:-1])
    begun = np.concatenate([first, np.asarray(outcomes.observation)[ended]])
    shares = np.bincount(begun, minlength=9) / begun.size
    np.testing.assert_allclose(shares[:8], 1 / 8, atol=4 * (0.11 / begun.size) ** 0.5)
    assert shares[8] == 0


def test_starts_have_the_distribution_that_is_given():
    mdp, start = garnet(5, 2, 2, seed=0), np.array([0.0, 0.7, 0.0, 0.3, 0.0])
    first, *_ = played(finite_environment(mdp, start=start), 1, n=20_000)
    np.testing.assert_allclose(np.bincount(first, minlength=5) / 20_000, start, atol=0.02)


def test_an_episode_is_cut_after_ten_horizons_or_as_given():
    for mdp, limit, length in ((garnet(4, 2, 2, discount=0.5), None, 20), (garnet(4, 2, 2), 7, 7)):
        *_, outcomes = played(finite_environment(mdp, limit=limit), 45, n=2)
        cut = np.asarray(outcomes.truncated)[:, 0]
        assert np.flatnonzero(cut).tolist() == list(range(length - 1, 45, length))
        assert not np.asarray(outcomes.terminated).any()


def test_images_are_those_of_the_states():
    mdp = garnet(4, 2, 2, seed=1)
    image = lambda s: np.full((2, 3, 1), 10 * s, np.uint8)  # noqa: E731
    pictured, plain = finite_environment(mdp, image=image), finite_environment(mdp)
    assert (pictured.spaces.observation.shape, pictured.spaces.observation.dtype) == (
        (2, 3, 1),
        "uint8",
    )
    _, seen, _, _ = played(pictured, 30)
    _, states, _, _ = played(plain, 30)
    np.testing.assert_array_equal(seen[..., 0, 0, 0], 10 * states)


@pytest.mark.parametrize("hosted", [False, True])
def test_an_agent_learns_the_optimal_policy_of_a_maze(hosted):
    mdp = Maze(size=3, walls=0.0, slip=0.0, discount=0.9).mdp()
    config = Config("dqn", "maze", steps=6_000, gamma=0.9, hidden=(32,), learning_starts=300)
    config = config.replace(
        epsilon_warmup=0,
        epsilon_decay=2_000,
        epsilon_final=0.3,
        optimiser="adam",
        learning_rate=3e-3,
        optimiser_epsilon=1e-8,
        sync_period=100,
        update_period=2,
        replay_capacity=6_000,
        iteration_steps=2_000,
        final_episodes=0,
    )
    environment = finite_environment(mdp)
    given = HostedEnvironment(environment) if hosted else environment
    agent = momentum_rl.train(config, environment=given).agent
    q = optimum(mdp).q
    acted = agent.act(np.arange(8))
    np.testing.assert_allclose(q[np.arange(8), acted], q[:8].max(1), atol=1e-9)


def test_what_is_no_environment_is_refused():
    mdp = garnet(4, 2, 2)
    assert refusal(finite_environment, garnet(4, 2, 2, count=2)) == "mdp: a batch, expected one MDP"
    assert refusal(finite_environment, mdp, start=np.ones(4)).startswith("start: (4,), expected a")
    assert refusal(finite_environment, mdp, limit=0) == "limit: 0, expected at least 1"
    images = [np.zeros(2), np.zeros(3), np.zeros(2), np.zeros(2)]
    assert refusal(finite_environment, mdp, image=images.__getitem__).startswith(
        "image: of several"
    )
    still = FiniteMDP(np.zeros((1, 1, 1), int), np.ones((1, 1, 1)), np.zeros((1, 1)), 0.9)
    assert refusal(finite_environment, still).startswith("mdp: every state ends the episode")
    maze = Maze(size=3).mdp()
    assert refusal(finite_environment, maze, start=np.eye(9)[8]).startswith(
        "start: in a state that"
    )
