"""The MinAtar update alone, in a compiled loop, and the matrix-multiply peak, both on one thread.

GFLOP/s of both, and seconds per update. The update's operations are counted by hand: a forward pass
of the lagged network on s', one of the online network on s, and the gradient with respect to
weights and hidden layers.
"""

import os
import time

import jax
import jax.numpy as jnp
import numpy as np

from momentum_rl.runs.config import Config
from momentum_rl.runs.presets import preset_fields
from momentum_rl.spaces import ObservationSpace, Spaces, Transition
from momentum_rl.training.build import configured_learner

os.environ["NPROC"] = "1"  # as `movi train` has it
COUNT = 500
BATCHES = 16


def best(function, *arguments):
    """The shortest of five times."""
    jax.block_until_ready(function(*arguments))
    times = []
    for _ in range(5):
        start = time.perf_counter()
        jax.block_until_ready(function(*arguments))
        times.append(time.perf_counter() - start)
    return min(times)


config = Config("dqn", "MinAtar/Breakout", **preset_fields("minatar"))
spaces = Spaces(ObservationSpace((10, 10, 4), "bool"), 6)
learner = configured_learner(config, spaces).learner
rng = np.random.default_rng(0)
b = config.batch_size
# Several minibatches in turn: of one alone, XLA would compute the targets once for the whole loop.
batches = Transition(
    jnp.asarray(rng.random((BATCHES, 1, b, 10, 10, 4)) < 0.1),
    jnp.asarray(rng.integers(6, size=(BATCHES, 1, b)), jnp.int32),
    jnp.asarray(rng.random((BATCHES, 1, b)), jnp.float32),
    jnp.full((BATCHES, 1, b), 0.99, jnp.float32),
    jnp.asarray(rng.random((BATCHES, 1, b, 10, 10, 4)) < 0.1),
)


@jax.jit
def updates(state, batches):
    def one(i, state):
        batch = jax.tree.map(lambda leaf: leaf[i % BATCHES], batches)
        return learner.update(state, batch, jnp.int32(4 * i))[0]

    return jax.lax.fori_loop(0, COUNT, one, state)


dense = 2 * (1024 * 128 + 128 * 6)
forward = 2 * 64 * 36 * 16 + dense
seconds = best(updates, learner.init(jax.random.key(0)), batches) / COUNT
matrix = jnp.asarray(rng.random((2048, 2048)), jnp.float32)
peak = 2 * 2048**3 / best(jax.jit(jnp.matmul), matrix, matrix) / 1e9
print(b * (3 * forward + dense) / seconds / 1e9, peak, seconds)
