"""Transition storage."""

from movi.replay.frames import FrameReplay
from movi.replay.interface import Replay
from movi.replay.uniform import UniformReplay

__all__ = ["FrameReplay", "Replay", "UniformReplay"]
