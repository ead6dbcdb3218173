"""Transition storage."""

from momentum_rl.replay.frames import FrameReplay
from momentum_rl.replay.uniform import UniformReplay
from momentum_rl.spaces import Replay

__all__ = ["FrameReplay", "Replay", "UniformReplay"]
