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

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from momentum_rl.envs.jax_env import JaxEnvironment, JaxOutcome, State, fixed_dtypes
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
