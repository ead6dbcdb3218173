"""gymnax: the five MinAtar games and classic control, compiled.

| id | environment |
|---|---|
| MinAtar/Asterix, Breakout, Freeway, Seaquest, SpaceInvaders | as MinAtar's authors use them |
| gymnax/NAME, such as gymnax/CartPole-v1 | any with discrete actions, or bounded Box ones |

MinAtar as its authors use it (Young and Tian, 2019): six actions in every game, a sticky action
with probability 0.1, no limit to an episode's length but Freeway's own timer. gymnax has no sticky
actions and cuts after 1,000 steps (2,500 in Freeway); here both are put right. A cut is a
truncation. Freeway's timer is not: the game is over, as in the original (``FREEWAY``).
"""

from functools import cache
from typing import Any

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from momentum_rl.envs.jax_env import (
    HostedEnvironment,
    JaxEnvironment,
    JaxOutcome,
    State,
    fixed_dtypes,
)
from momentum_rl.errors import MissingExtra, UserError
from momentum_rl.plumbing.compilation import shared
from momentum_rl.spaces import LONGEST, Box, ObservationSpace, Spaces

MINATAR = ("Asterix", "Breakout", "Freeway", "Seaquest", "SpaceInvaders")
"""The games of Young and Tian, 2019."""
STICKY = 0.1
# Freeway's original counts a timer down from 2,500 and is over (terminal) when it falls below zero:
# after 2,501 actions.
FREEWAY = 2_501


@shared
def make_gymnax(env_id: str) -> JaxEnvironment:
    """The environment of an id; an unknown one is one clear line."""
    family, _, name = env_id.partition("/")
    if family == "MinAtar" and name not in MINATAR:
        games = ", ".join(f"MinAtar/{game}" for game in MINATAR)
        raise UserError(f"env: {env_id!r}, expected one of {games}")
    try:
        import gymnax
    except ModuleNotFoundError:
        raise MissingExtra(f"env: {env_id}", "gymnax") from None
    if family == "MinAtar":
        env, params = gymnax.make(f"{name}-MinAtar", use_minimal_action_set=False)
        timed = name == "Freeway"
        params = params.replace(max_steps_in_episode=FREEWAY if timed else LONGEST)
        return sticky(_adapted(env, params, env_id, "bool", timer_ends=timed), STICKY)
    known = [known for known in gymnax.registered_envs if not known.endswith("-MinAtar")]
    if name not in known:
        raise UserError(f"env: {env_id!r}, expected gymnax/ and one of {', '.join(known)}")
    env, params = gymnax.make(name)
    return _adapted(env, params, env_id, None)


def _adapted(
    env: Any, params: Any, env_id: str, dtype: str | None, timer_ends: bool = False
) -> JaxEnvironment:
    """A gymnax environment as a ``JaxEnvironment``, its observations stored as ``dtype``.

    With ``timer_ends`` the limit of steps belongs to the game: reaching it terminates.
    """
    actions = _actions(env.action_space(params), env_id)
    seen = jax.eval_shape(lambda key: env.reset(key, params)[0], jax.random.key(0))
    if not isinstance(seen, jax.ShapeDtypeStruct):
        raise UserError(f"env: {env_id} has observations of several parts, supported are arrays")
    stored = np.dtype(dtype or seen.dtype)
    spaces = Spaces(ObservationSpace(tuple(seen.shape), str(stored)), actions)

    def reset(key: jax.Array) -> tuple[State, jax.Array]:
        observation, state = env.reset(key, params)
        return fixed_dtypes(state), observation.astype(stored)

    def step(key: jax.Array, state: State, action: jax.Array) -> tuple[State, JaxOutcome]:
        if isinstance(actions, Box):
            action = actions.rescaled(jnp, action)
        observation, new, reward, terminated, truncated, info = env.step(key, state, action, params)
        terminated, truncated = jnp.asarray(terminated, bool), jnp.asarray(truncated, bool)
        if timer_ends:
            terminated = terminated | truncated
        return fixed_dtypes(new, like=state), JaxOutcome(
            observation=observation.astype(stored),
            next_observation=info["final_observation"].astype(stored),
            reward=jnp.asarray(reward, jnp.float32),
            terminated=terminated,
            truncated=truncated & ~terminated,
        )

    return JaxEnvironment(spaces, reset, step)


def _actions(space: Any, env_id: str) -> int | Box:
    """The number of actions, or their bounds."""
    kind = type(space).__name__
    if kind == "Discrete":
        return int(space.n)
    if kind != "Box" or not np.all(np.isfinite([space.low, space.high])):
        kinds = f"unbounded {kind}" if kind == "Box" else kind
        raise UserError(
            f"env: {env_id} has {kinds} actions, supported are Discrete and bounded Box ones"
        )
    low, high = (np.broadcast_to(bound, space.shape).ravel() for bound in (space.low, space.high))
    return Box(tuple(low.tolist()), tuple(high.tolist()), tuple(space.shape))


def sticky(environment: JaxEnvironment, probability: float) -> JaxEnvironment:
    """Repeats the last action that was taken, with this probability, in place of the one given.

    As in MinAtar the last action outlives its episode, and is 0 before the first one.
    """

    def reset(key: jax.Array) -> tuple[State, jax.Array]:
        state, observation = environment.reset(key)
        return (state, jnp.int32(0)), observation

    def step(key: jax.Array, state: State, action: jax.Array) -> tuple[State, JaxOutcome]:
        inner, last = state
        for_env, for_sticking = jax.random.split(key)
        sticks = jax.random.uniform(for_sticking) < probability
        taken = jnp.where(sticks, last, action.astype(jnp.int32))
        inner, outcome = environment.step(for_env, inner, taken)
        return (inner, taken), outcome

    return JaxEnvironment(environment.spaces, reset, step)


# MinAtar's screen --------------------------------------------------------------------------------
#
# As its authors draw it (Young and Tian, 2019; their display of a state). A cell of the 10 × 10
# grid has the colour of its highest channel that is on, and is black if none is. The colours of n
# channels are the inner ones of n + 2 evenly spaced ones of the map "cubehelix".

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
