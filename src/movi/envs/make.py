"""Environments by their ids, whatever they run on."""

from typing import Any

import gymnasium as gym

from movi.envs.atari import AtariScreen, is_atari, make_atari
from movi.envs.gym_vector import make_gymnasium, make_single
from movi.envs.gymnax_env import is_gymnax, make_gymnax
from movi.envs.interface import Environment
from movi.envs.jax_env import HostedEnvironment


def make_environment(env_id: str, num_envs: int = 1, **kwargs: Any) -> Environment:
    """n environments of an id, driven from the host.

    An Atari game by the paper's protocol, a JAX-native environment, or any Gymnasium one.
    """
    if is_atari(env_id):
        return make_atari(env_id, num_envs, **kwargs)
    if is_gymnax(env_id):
        return HostedEnvironment(make_gymnax(env_id), num_envs)
    return make_gymnasium(env_id, num_envs, **kwargs)


def make_visible(env_id: str) -> gym.Env:
    """One environment that sees and does the same, and renders images."""
    if is_atari(env_id):
        return AtariScreen(env_id)
    return make_single(env_id, render_mode="rgb_array")
