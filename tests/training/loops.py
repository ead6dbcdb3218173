"""Both loops of one config, side by side."""

import jax
import numpy as np

from momentum_rl.envs.jax_env import HostedEnvironment
from momentum_rl.replay.uniform import UniformReplay
from momentum_rl.training.build import configured_learner
from momentum_rl.training.fused_loop import FusedLoop
from momentum_rl.training.host_loop import HostLoop


def pair(config, environment):
    """Both loops of a config."""
    spaces = environment.spaces
    learner = configured_learner(config, spaces).learner
    replay = UniformReplay(
        config.replay_capacity, spaces.observation, horizon=config.horizon, action=spaces.action
    )
    hosted = HostedEnvironment(environment, config.num_envs)
    host = HostLoop(config, hosted, learner, lambda slack: replay)
    host.begin()
    fused = FusedLoop(config, environment, learner)
    return host, fused


def assert_close(tree, other, tolerance=1e-4):
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance), tree, other
    )
