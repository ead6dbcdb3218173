"""Momentum-DQN as a loop of rlax and optax.

    python rlax_momentum_dqn.py --seed 1

The target of Q is rlax's ``double_q_learning`` with H as the selector. All that differs from DQN is
marked MOMENTUM.
"""

import argparse
from typing import Any, NamedTuple

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import optax
import rlax

GAMMA, KAPPA, BATCH, SYNC, STARTS, EVERY = 0.99, 5_000, 128, 200, 1_000, 2


class Params(NamedTuple):
    """The parameters of both networks."""

    q: Any
    h: Any  # MOMENTUM


def init(key, sizes):
    """Layers of Glorot-uniform kernels and biases of zero."""
    glorot = jax.nn.initializers.glorot_uniform()
    keys = jax.random.split(key, len(sizes) - 1)
    return [(glorot(k, (m, n)), jnp.zeros(n)) for k, m, n in zip(keys, sizes, sizes[1:])]


def values(params, x):
    """Action values [B, A] of observations [B, ...]."""
    for kernel, bias in params[:-1]:
        x = jax.nn.relu(x @ kernel + bias)
    kernel, bias = params[-1]
    return x @ kernel + bias


@jax.vmap
def q_targets(next_q, next_h, reward, discount):
    """rlax's double Q-learning error against zero, which is its target; MOMENTUM: H selects."""
    nothing, first = jnp.zeros_like(next_q), jnp.int32(0)
    return rlax.double_q_learning(nothing, first, reward, discount, next_q, next_h)


def targets(h, next_q, next_h, actions, rewards, discounts, beta):
    """What Q and H regress to, [B] each; all values are those of the lagged copies.

    ``h`` [B, A] is of the states, ``next_q`` and ``next_h`` [B, A] are of the next ones; a discount
    is γ, or 0 after a termination.
    """
    q_target = q_targets(next_q, next_h, rewards, discounts)
    before = rlax.batched_index(h, actions)
    return q_target, beta * before + (1 - beta) * q_target  # MOMENTUM: the average


def loss(params, lagged, batch, beta):
    """The mean squared error of both networks (the paper draws a second minibatch for H)."""
    states, next_states, actions, rewards, discounts = batch
    q_target, h_target = targets(
        values(lagged.h, states),
        values(lagged.q, next_states),
        values(lagged.h, next_states),
        actions,
        rewards,
        discounts,
        beta,
    )
    q_error = rlax.batched_index(values(params.q, states), actions) - jax.lax.stop_gradient(
        q_target
    )
    h_error = rlax.batched_index(values(params.h, states), actions) - jax.lax.stop_gradient(
        h_target
    )
    return jnp.mean(q_error**2) + jnp.mean(h_error**2)  # MOMENTUM: the second term


optimiser = optax.adam(1e-3, eps=3e-4)


@jax.jit
def update(params, lagged, state, batch, beta):
    """One step of the optimiser."""
    gradient = jax.grad(loss)(params, lagged, batch, beta)
    change, state = optimiser.update(gradient, state)
    return optax.apply_updates(params, change), state


@jax.jit
def act(params, observation):
    """The greedy action; MOMENTUM: of H."""
    return jnp.argmax(values(params.h, observation[None])[0])


def evaluate(params, env_id, episodes, seed):
    """The mean return of the greedy policy."""
    env, returns = gym.make(env_id), []
    for episode in range(episodes):
        observation, _ = env.reset(seed=seed + episode)
        total, over = 0.0, False
        while not over:
            observation, reward, terminated, truncated, _ = env.step(int(act(params, observation)))
            total, over = total + float(reward), terminated or truncated
        returns.append(total)
    return float(np.mean(returns))


def main(total_timesteps=100_000, seed=1, env_id="CartPole-v1", episodes=20):
    """Trains, and plays; the mean return."""
    random, env = np.random.default_rng(seed), gym.make(env_id)
    shape, actions = env.observation_space.shape, int(env.action_space.n)
    sizes = (int(np.prod(shape)), 64, 64, actions)
    params = Params(*(init(key, sizes) for key in jax.random.split(jax.random.key(seed))))
    lagged, state = params, optimiser.init(params)
    replay = {
        "observation": np.zeros((total_timesteps, *shape), np.float32),
        "next_observation": np.zeros((total_timesteps, *shape), np.float32),
        "action": np.zeros(total_timesteps, np.int32),
        "reward": np.zeros(total_timesteps, np.float32),
        "discount": np.zeros(total_timesteps, np.float32),
    }
    observation, _ = env.reset(seed=seed)
    for step in range(total_timesteps):
        epsilon = max(0.05, 1 - 0.95 * step / (0.1 * total_timesteps))
        explores = random.random() < epsilon
        action = random.integers(actions) if explores else int(act(params, observation))
        next_observation, reward, terminated, truncated, _ = env.step(action)
        row = observation, next_observation, action, reward, GAMMA * (not terminated)
        for column, entry in zip(replay.values(), row):
            column[step] = entry
        observation = env.reset()[0] if terminated or truncated else next_observation
        if step > STARTS and step % EVERY == 0:
            drawn = random.integers(step + 1, size=BATCH)
            n = step // KAPPA  # MOMENTUM: β = n / (n + 1)
            batch = tuple(column[drawn] for column in replay.values())
            params, state = update(params, lagged, state, batch, n / (n + 1))
        if step % SYNC == 0:
            lagged = params
    return evaluate(params, env_id, episodes, seed=10_000)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--total-timesteps", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    print(main(given.total_timesteps, given.seed))
