"""Transition storage."""

from movi.replay.interface import Replay
from movi.replay.uniform import UniformReplay

__all__ = ["Replay", "UniformReplay"]
