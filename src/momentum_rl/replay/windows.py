"""n-step transitions, put together when they are sampled.

A replay stores single transitions, whatever n is. A sampled one is the first of a window that goes
on from transition to transition of its episode. Two environments in turn (x, y), n = 3; the first
episode of x ends with x2, and another begins with u0:

    stored:   x0 y0 x1 y1 x2 y2 u0 y3             ← head
    windows:  x0    x1    x2                      three steps, to the s' of x2
              ·     x1    x2                      two: the episode ends there
                 y0    y1    y2
              incomplete: the newest (3 − 1) · 2, x2, …: not sampled yet
"""

from typing import Any, Generic, NamedTuple

import numpy as np

from momentum_rl.core.arrays import AnyArray
from momentum_rl.spaces import NStep


class Windows(NamedTuple, Generic[AnyArray]):
    """Windows of successive transitions, arrays of one shape."""

    last: AnyArray
    """The slot of the window's last transition."""
    reward: AnyArray
    """Σ_{i<m} γ^i r_{t+i}."""
    discount: AnyArray
    """γ^m, or 0 if the last transition led to a terminal state."""


def begun(
    xp: Any, slots: AnyArray, reward: AnyArray, discount: AnyArray, horizon: NStep
) -> Windows[AnyArray]:
    """Windows of one transition each; ``reward`` and ``discount`` are the ring's, [size].

    A discount's sign is not part of it: on a device it marks the ends of episodes.
    """
    return Windows(slots, _clipped(xp, reward[slots], horizon), abs(discount[slots]))


def longer(
    xp: Any,
    windows: Windows[AnyArray],
    step: AnyArray,
    reward: AnyArray,
    discount: AnyArray,
    horizon: NStep,
) -> Windows[AnyArray]:
    """The windows with one transition more, ``step`` slots on; those with step 0 as they are."""
    last = (windows.last + step) % len(reward)
    further = windows.reward + windows.discount * _clipped(xp, reward[last], horizon)
    return Windows(
        last,
        xp.where(step > 0, further, windows.reward),
        xp.where(step > 0, windows.discount * abs(discount[last]), windows.discount),
    )


def windows_of(
    slots: np.ndarray, links: np.ndarray, reward: np.ndarray, discount: np.ndarray, horizon: NStep
) -> Windows[np.ndarray]:
    """The windows that begin in these slots.

    ``links`` has for each slot how many further the next transition of its episode is; 0 if there
    is none.
    """
    windows = begun(np, slots, reward, discount, horizon)
    for _ in range(horizon.steps - 1):
        step = links[windows.last]
        if not step.any():
            break
        windows = longer(np, windows, step, reward, discount, horizon)
    return windows


def _clipped(xp: Any, reward: AnyArray, horizon: NStep) -> AnyArray:
    clip = horizon.reward_clip
    return reward if clip is None else xp.clip(reward, -clip, clip)
