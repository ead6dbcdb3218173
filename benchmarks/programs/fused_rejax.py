"""Agent steps per second of rejax's DQN while it learns: TASK WARM STEPS.

Its own ``train_iteration`` in a compiled loop, without its evaluations. It makes one update per
step of all its environments, so an update every 4 steps means 4 environments.
"""

import sys
import time

import gymnax
import jax
from flax import linen as nn
from rejax import DQN
from rejax.networks import EpsilonGreedyPolicy


class MinAtarQ(nn.Module):
    """conv 16@3×3, dense 128, as rejax's policies want a network."""

    action_dim: int

    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.Conv(16, (3, 3), padding="VALID")(x))
        x = nn.relu(nn.Dense(128)(x.reshape(x.shape[0], -1)))
        return nn.Dense(self.action_dim)(x)

    def take(self, x, action):
        return jax.numpy.take_along_axis(self(x), action[:, None], axis=1).squeeze(axis=1)


task, warm, steps = sys.argv[1], *map(int, sys.argv[2:4])
period = {"minatar": 4, "cartpole": 1}[task]
env, params = gymnax.make({"minatar": "Breakout-MinAtar", "cartpole": "CartPole-v1"}[task])
algorithm = DQN.create(
    env=env,
    env_params=params,
    num_envs=period,
    num_epochs=1,
    buffer_size=100_000 if task == "minatar" else 50_000,
    fill_buffer=1_000,
    batch_size=32 if task == "minatar" else 64,
    learning_rate=1e-4,
    target_update_freq=1_000 if task == "minatar" else 500,
    ddqn=False,
    total_timesteps=5_000_000,
    eval_freq=5_000_000,
    agent_kwargs={"activation": "relu"},
)
if task == "minatar":
    algorithm = algorithm.replace(
        agent=EpsilonGreedyPolicy(MinAtarQ)(action_dim=env.action_space(params).n)
    )


@jax.jit
def run(state, iterations):
    return jax.lax.fori_loop(0, iterations, lambda _, s: algorithm.train_iteration(s), state)


state = jax.block_until_ready(run(algorithm.init_state(jax.random.PRNGKey(0)), warm // period))
start = time.perf_counter()
state = jax.block_until_ready(run(state, steps // period))
print(steps / (time.perf_counter() - start))
assert int(state.global_step) == warm + steps
