"""Environments behind one small interface."""

from movi.envs.gym_vector import GymnasiumVector, make_gymnasium
from movi.envs.interface import Environment, Outcome

__all__ = ["Environment", "GymnasiumVector", "Outcome", "make_gymnasium"]
