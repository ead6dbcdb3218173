"""Seeds side by side are what each is alone, and one that diverges holds up no other."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from momentum_rl import Config
from tests.training.jax_diagnostics import episodic
from tests.training.loops import assert_close, pair

TINY = {
    "steps": 120,
    "iteration_steps": 120,
    "learning_starts": 20,
    "replay_capacity": 100,
    "batch_size": 4,
    "update_period": 1,
    "sync_period": 9,
    "hidden": (8,),
    "loss": "squared",
}
CONFIG = Config("dqn", "wild", **TINY)
SEEDS = [0, 1, 2, 3]


def wild():
    """Some episodes start at 1e30, which a seed meets in 120 steps or does not."""
    return episodic(
        lambda key: jnp.where(jax.random.bernoulli(key, 0.005), 1e30, 0.0), lambda x, t, a: x
    )


@pytest.fixture(scope="module")
def together():
    """All seeds in one loop."""
    _, loop = pair(CONFIG, wild(), seeds=SEEDS)
    loop.advance(CONFIG.steps)
    return loop


def test_a_seed_that_diverges_among_others_ends_where_it_does_alone_and_holds_up_no_other(
    together,
):
    ends = [together.diverged(i) for i in range(len(SEEDS))]
    assert None in ends
    assert set(ends) != {None}
    for i, seed in enumerate(SEEDS):
        _, alone = pair(CONFIG, wild(), seeds=[seed])
        alone.advance(CONFIG.steps)
        assert ends[i] == alone.diverged(0)
        assert_close(together.parameters(i), alone.parameters(0))
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(together.parameters(i)))


SCRIPT = """
import sys
import jax, numpy as np
from tests.training.test_seeds_side_by_side import CONFIG, SEEDS, pair, wild

_, loop = pair(CONFIG, wild(), seeds=SEEDS)
loop.advance(CONFIG.steps)
places = [leaf.devices() for state in loop.states for leaf in jax.tree.leaves(state.learner.online)]
assert len(set().union(*places)) == len(jax.devices()) == 2
leaves = [leaf for i in range(len(SEEDS)) for leaf in jax.tree.leaves(loop.parameters(i))]
np.savez(sys.argv[1], *leaves)
"""


@pytest.mark.slow
def test_seeds_on_several_cpu_devices_are_those_of_one(together, tmp_path):
    file = tmp_path / "parameters.npz"
    environment = {**os.environ, "JAX_NUM_CPU_DEVICES": "2", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(file)], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    expected = [leaf for i in range(len(SEEDS)) for leaf in jax.tree.leaves(together.parameters(i))]
    with np.load(file) as arrays:
        assert_close([arrays[f"arr_{i}"] for i in range(len(expected))], expected)
