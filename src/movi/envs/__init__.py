"""Environments behind one small interface."""

from movi.envs.atari import make_atari
from movi.envs.gym_vector import GymnasiumVector, make_gymnasium
from movi.envs.interface import Environment, Outcome
from movi.envs.jax_env import HostedEnvironment, JaxEnvironment, JaxOutcome
from movi.envs.make import make_environment

__all__ = [
    "Environment",
    "GymnasiumVector",
    "HostedEnvironment",
    "JaxEnvironment",
    "JaxOutcome",
    "Outcome",
    "make_atari",
    "make_environment",
    "make_gymnasium",
]
