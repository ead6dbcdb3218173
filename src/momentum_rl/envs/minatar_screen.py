"""MinAtar's screen, as its authors draw it (Young and Tian, 2019; their display of a state).

A cell of the 10 × 10 grid has the colour of its highest channel that is on, and is black if none
is. The colours of n channels are the inner ones of n + 2 evenly spaced ones of the map "cubehelix".
"""

from functools import cache
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from momentum_rl.envs.gymnax_env import make_gymnax
from momentum_rl.envs.jax_env import HostedEnvironment

CELL = 32
"""Pixels of a side of a cell."""
FRAMES_PER_SECOND = 20
"""The authors show a state for 50 ms."""


@cache
def palette(channels: int) -> NDArray[np.uint8]:
    """[1 + channels, 3]: black for an empty cell, then the channels' colours."""
    from matplotlib import colormaps  # gymnax needs it too

    inner = colormaps["cubehelix"](np.linspace(0, 1, channels + 2)[1:-1])[:, :3]
    return np.concatenate([np.zeros((1, 3)), inner * 255]).round().astype(np.uint8)


def picture(observation: NDArray[Any]) -> NDArray[np.uint8]:
    """The image [10 · CELL, 10 · CELL, 3] of an observation [10, 10, channels]."""
    channels = observation.shape[-1]
    highest = (observation.astype(bool) * np.arange(1, channels + 1)).max(-1)
    return palette(channels)[highest].repeat(CELL, 0).repeat(CELL, 1)


class MinAtarScreen(gym.Env):
    """One game that steps as in training and evaluation, and shows itself."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": FRAMES_PER_SECOND}  # noqa: RUF012

    def __init__(self, env_id: str) -> None:
        """A game that has not begun."""
        self._game = HostedEnvironment(make_gymnax(env_id))
        self.spaces = self._game.spaces
        self._seen = self.spaces.observation.zeros()
        self.observation_space = gym.spaces.Box(0, 1, self._seen.shape, self._seen.dtype.type)
        self.action_space = gym.spaces.Discrete(self.spaces.numbered)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Starts a game: a seed's own, without one any."""
        super().reset(seed=seed, options=options)
        seed = int(self.np_random.integers(2**31)) if seed is None else seed
        self._seen = self._game.reset([seed])[0]
        return self._seen, {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Takes an action."""
        outcome = self._game.step(np.array([action]))
        self._seen = outcome.next_observation[0]
        ends = bool(outcome.terminated[0]), bool(outcome.truncated[0])
        return self._seen, float(outcome.reward[0]), *ends, {}

    def render(self) -> Any:
        """The screen."""
        return picture(self._seen)
