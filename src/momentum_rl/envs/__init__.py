"""Environments behind one small interface."""

from momentum_rl.envs.atari import make_atari
from momentum_rl.envs.finite import finite_environment
from momentum_rl.envs.gym_vector import GymnasiumVector, make_gymnasium
from momentum_rl.envs.jax_env import HostedEnvironment, JaxEnvironment, JaxOutcome
from momentum_rl.envs.make import make_environment
from momentum_rl.spaces import Environment, Outcome

__all__ = [
    "Environment",
    "GymnasiumVector",
    "HostedEnvironment",
    "JaxEnvironment",
    "JaxOutcome",
    "Outcome",
    "finite_environment",
    "make_atari",
    "make_environment",
    "make_gymnasium",
]
