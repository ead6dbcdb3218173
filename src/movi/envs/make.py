"""Environments by id, whichever library they come from."""

from movi.envs.gym_vector import make_gymnasium
from movi.envs.gymnax_env import is_gymnax, make_gymnax
from movi.envs.interface import Environment
from movi.envs.jax_env import HostedEnvironment


def make_environment(env_id: str, num_envs: int = 1) -> Environment:
    """n environments of an id that step together, driven from the host."""
    if is_gymnax(env_id):
        return HostedEnvironment(make_gymnax(env_id), num_envs)
    return make_gymnasium(env_id, num_envs)
