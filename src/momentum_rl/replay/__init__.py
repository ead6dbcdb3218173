"""Transition storage."""

from momentum_rl.replay.frames import FrameReplay
from momentum_rl.replay.interface import Replay
from momentum_rl.replay.uniform import UniformReplay

__all__ = ["FrameReplay", "Replay", "UniformReplay"]
