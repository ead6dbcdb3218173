"""n-step transitions, put together when they are sampled.

A replay stores single transitions, whatever n is: those of the environments in turn. A sampled one
is the first of a window that goes on from transition to transition of its episode, always as many
slots on as there are environments. Two environments (x, y), n = 3; the first episode of x ends with
x2, and another begins with u0:

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

    Rings keep discounts negative where an episode was cut: no transition follows one whose
    discount is not positive.
    """
    return Windows(slots, _clipped(xp, reward[slots], horizon), abs(discount[slots]))


def longer(
    xp: Any, windows: Windows[AnyArray], reward: AnyArray, discount: AnyArray, horizon: NStep
) -> Windows[AnyArray]:
    """The windows with one transition more, where the episode goes on."""
    goes_on = discount[windows.last] > 0
    last = (windows.last + xp.where(goes_on, horizon.num_envs, 0)) % len(reward)
    further = windows.reward + windows.discount * _clipped(xp, reward[last], horizon)
    return Windows(
        last,
        xp.where(goes_on, further, windows.reward),
        xp.where(goes_on, windows.discount * abs(discount[last]), windows.discount),
    )


def windows_of(
    slots: np.ndarray, reward: np.ndarray, discount: np.ndarray, horizon: NStep
) -> Windows[np.ndarray]:
    """The windows that begin in these slots of a ring on the host."""
    windows = begun(np, slots, reward, discount, horizon)
    for _ in range(horizon.steps - 1):
        windows = longer(np, windows, reward, discount, horizon)
    return windows


def _clipped(xp: Any, reward: AnyArray, horizon: NStep) -> AnyArray:
    clip = horizon.reward_clip
    return reward if clip is None else xp.clip(reward, -clip, clip)
