"""Writes batch.npz: 32 transitions of CartPole, the lagged networks' values there, our targets.

    python -m tests.recipes.record

The networks are those of a Momentum-DQN of 2,000 steps; the targets are what its learner computes.
"""

from pathlib import Path

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np

import momentum_rl
from momentum_rl.agents.learner import networks_of
from momentum_rl.agents.method import targets_of
from momentum_rl.core.targets import MOVI
from momentum_rl.spaces import Transition

N, GAMMA, BETA = 32, 0.99, 0.75


def transitions(n: int) -> Transition:
    """Of a random policy, terminations among them: [1, n, ...]."""
    env, random, rows = gym.make("CartPole-v1"), np.random.default_rng(0), []
    observation, _ = env.reset(seed=0)
    while len(rows) < n:
        action = int(random.integers(2))
        after, reward, terminated, _, _ = env.step(action)
        discount = np.float32(0 if terminated else GAMMA)
        rows.append((observation, np.int32(action), np.float32(reward), discount, after))
        observation = env.reset()[0] if terminated else after
    return Transition(*(np.stack(column)[None] for column in zip(*rows)))


if __name__ == "__main__":
    config = momentum_rl.Config("momentum-dqn", "CartPole-v1", steps=2_000, final_episodes=0)
    agent = momentum_rl.train(config).agent
    lagged = jax.tree.map(lambda p: jnp.asarray(p)[None], agent.params)  # L = 1
    networks = networks_of(agent.networks, agent.params, agent.params, lagged)
    batch = jax.tree.map(jnp.asarray, transitions(N))
    found = targets_of(MOVI, networks, batch, jnp.float32(BETA))

    def at(name, observations):
        return np.asarray(networks.lagged[name][0](observations[0]))

    np.savez(
        Path(__file__).with_name("batch.npz"),
        q=at("q", batch.observation),
        h=at("h", batch.observation),
        next_q=at("q", batch.next_observation),
        next_h=at("h", batch.next_observation),
        actions=np.asarray(batch.action[0]),
        rewards=np.asarray(batch.reward[0]),
        discounts=np.asarray(batch.discount[0]),
        beta=np.float32(BETA),
        q_targets=np.asarray(found["q"].value),
        h_targets=np.asarray(found["h"].value),
    )
