"""A finite MDP as an environment, so that agents are trained where q* is known."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from momentum_rl.envs.jax_env import JaxEnvironment, JaxOutcome
from momentum_rl.errors import UserError, check_count, door
from momentum_rl.mdp.model import FiniteMDP
from momentum_rl.mdp.operators import cuts
from momentum_rl.spaces import LONGEST, ObservationSpace, Spaces

HORIZONS = 10  # the longest episode, in multiples of 1/(1 − γ): what comes later hardly counts


class State(NamedTuple):
    """Where an episode is."""

    state: Array
    """s."""
    steps: Array
    """Steps since it began."""


@door
def finite_environment(
    mdp: FiniteMDP,
    *,
    start: np.ndarray | None = None,
    image: Callable[[int], np.ndarray] | None = None,
    limit: int | None = None,
) -> JaxEnvironment:
    """An environment whose transitions are the MDP's, and whose rewards are its r(s, a).

    A state that is never left and pays nothing ends the episode.

    Args:
      mdp: one MDP, in which every state has every action.
      start: the distribution of first states, [S]; by default uniform over those that do not end.
      image: what is seen of a state, an array of one shape and dtype; by default the state's
        number, which networks see as one-hot.
      limit: steps after which an episode is cut; 10/(1 − γ) by default.

    >>> from momentum_rl.mdp.families import Maze
    >>> finite_environment(Maze(size=4).mdp()).spaces.observation
    ObservationSpace(shape=(), dtype='int32', categories=16, start=0)
    """
    if mdp.batch is not None:
        raise UserError("mdp: a batch, expected one MDP")
    mdp.require_all_actions()
    ends = absorbing(mdp)
    first = _first(mdp, ends, start)
    check_count("limit", limit)
    if limit is None:
        limit = min(LONGEST, round(HORIZONS / (1 - float(mdp.discount))))
    # float64 tables made here would be float32 in a training loop: integers decide instead.
    successors = jnp.asarray(mdp.successors, jnp.int32)
    edges, rewards = jnp.asarray(cuts(mdp.probabilities)), jnp.asarray(mdp.rewards, jnp.float32)
    begin, last = jnp.asarray(cuts(first)), jnp.asarray(ends)
    space, table = _seen(mdp.states, image)

    def seen(state: Array) -> Array:
        return state if table is None else table[state]

    def begun(key: Array) -> State:
        state = jnp.sum(_number(key) > begin, dtype=jnp.int32)
        return State(state, jnp.int32(0))

    def reset(key: Array) -> tuple[State, Array]:
        now = begun(key)
        return now, seen(now.state)

    def step(key: Array, now: State, action: Array) -> tuple[State, JaxOutcome]:
        to, again = jax.random.split(key)
        place = now.state, action
        slot = jnp.sum(_number(to) > edges[place])
        after, steps = successors[place][slot], now.steps + 1
        terminated = last[after]
        truncated = (steps >= limit) & ~terminated
        ended, new = terminated | truncated, begun(again)
        then = State(*(jnp.where(ended, x, y) for x, y in zip(new, State(after, steps))))
        outcome = JaxOutcome(seen(then.state), seen(after), rewards[place], terminated, truncated)
        return then, outcome

    return JaxEnvironment(Spaces(space, mdp.actions), reset, step)


def absorbing(mdp: FiniteMDP) -> np.ndarray:
    """Which states are never left and pay nothing, [S]."""
    stays = mdp.successors == np.arange(mdp.states)[:, None, None]
    return ((stays | (mdp.probabilities == 0)).all(-1) & (mdp.rewards == 0)).all(-1)


def _first(mdp: FiniteMDP, ends: np.ndarray, start: np.ndarray | None) -> np.ndarray:
    if start is None:
        if ends.all():
            raise UserError("mdp: every state ends the episode, expected one that does not")
        return ~ends / (~ends).sum()
    given = np.asarray(start, float)
    if given.shape != (mdp.states,) or not ((given >= 0).all() and abs(given.sum() - 1) < 1e-9):
        raise UserError(f"start: {given.shape}, expected a distribution over {mdp.states} states")
    if given[ends].any():
        raise UserError("start: in a state that ends the episode, expected none there")
    return given


def _number(key: Array) -> Array:
    """An integer in [0, 2³¹)."""
    return (jax.random.bits(key, (), jnp.uint32) >> 1).astype(jnp.int32)


def _seen(
    states: int, image: Callable[[int], np.ndarray] | None
) -> tuple[ObservationSpace, Array | None]:
    """What is seen: the space, and the table of images."""
    if image is None:
        return ObservationSpace((), "int32", states), None
    images = [np.asarray(image(s)) for s in range(states)]
    if len({(one.shape, one.dtype) for one in images}) > 1:
        raise UserError("image: of several shapes or dtypes, expected one")
    table = np.stack(images)
    if table.dtype.kind not in "buif" or table.dtype.itemsize == 8:
        raise UserError(f"image: of {table.dtype}, expected numbers of at most 32 bits")
    return ObservationSpace(table.shape[1:], str(table.dtype)), jnp.asarray(table)
