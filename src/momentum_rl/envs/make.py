"""Environments by their ids, whatever they run on."""

from collections.abc import Collection
from typing import Any

import gymnasium as gym

from momentum_rl.envs.atari import AtariScreen, make_atari
from momentum_rl.envs.gym_vector import make_gymnasium, make_single
from momentum_rl.envs.gymnax_env import MinAtarScreen, make_gymnax
from momentum_rl.envs.jax_env import HostedEnvironment
from momentum_rl.errors import UserError, check_count
from momentum_rl.plumbing.sizes import require
from momentum_rl.spaces import Environment, is_atari, is_gymnax

MOST = 2**16
"""Environments that step together: more than these take minutes to make."""
EMULATOR, GYMNASIUM = 1_700_000, 6_000
"""Bytes of an emulator, and of a small environment (CartPole), measured."""


def make_environment(
    env_id: str, num_envs: int = 1, *, trust: Collection[str] = (), **kwargs: Any
) -> Environment:
    """n environments of an id, driven from the host.

    An Atari game by the paper's protocol, a JAX-native environment, or any Gymnasium one; of an id
    MODULE:NAME only if the module is in ``trust``.
    """
    check_count("num_envs", num_envs, most=MOST)
    each = EMULATOR if is_atari(env_id) else GYMNASIUM
    require(f"{num_envs:,} environments", memory=num_envs * each)
    if is_atari(env_id):
        return make_atari(env_id, num_envs, **kwargs)
    if is_gymnax(env_id):
        return HostedEnvironment(make_gymnax(env_id), num_envs)
    return make_gymnasium(env_id, num_envs, trust=trust, **kwargs)


def make_visible(env_id: str, *, trust: Collection[str] = ()) -> gym.Env:
    """One environment that sees and does the same, and renders images."""
    if is_atari(env_id):
        return AtariScreen(env_id)
    if is_gymnax(env_id):
        if not env_id.startswith("MinAtar/"):
            raise UserError(
                f"env: {env_id} has no picture, expected a game such as MinAtar/Breakout"
            )
        return MinAtarScreen(env_id)
    return make_single(env_id, trust=trust, render_mode="rgb_array")
