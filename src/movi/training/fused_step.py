"""One compiled chunk of training: environments, replay, updates and synchronisations in one loop.

The order within an agent step, its gates and its random numbers are the host loop's (see
``movi.training.host_loop``). JAX-native environments make every step a decision, so what the host
counts follows from the step k alone:

    stored(k)  = min(k, capacity), so that learning means k > learning_starts =: K
    updates(k) = ⌊k/F⌋ − ⌊K/F⌋ once learning, the number of the next draw

With n-step transitions the newest n − 1 of each environment are not sampled yet, so that learning
starts that much later: K = ``config.learns_after``.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from movi.agents.exploration import Limits, epsilon_greedy, exploring, words_of
from movi.agents.learner import Learner, LearnerState
from movi.compilation import shared
from movi.envs.jax_env import JaxEnvironment, compiled, env_keys, step_all, step_keys
from movi.replay import device
from movi.runs.config import Config
from movi.training.draws import (
    ACTING,
    INITIALISATION,
    LEARNING,
    POLICY,
    SAMPLING,
    bits,
    env_seeds,
    key_of,
)
from movi.transitions import Horizon, Transition

Array = Any


class FusedState(NamedTuple):
    """Everything that a seed's run needs to continue from a tick, but its number.

    Attributes:
      learner: parameters, lagged copies, optimiser states.
      ring: the replay.
      environments: the states of the n environments.
      observation: what they act on next, [n, ...].
    """

    learner: LearnerState
    ring: Transition
    environments: Any
    observation: Array


class Keys(NamedTuple):
    """The keys of a seed's run; each draw folds its number in."""

    acting: Array
    sampling: Array
    environments: Array
    policy: Array
    learning: Array


class ChunkDraws(NamedTuple):
    """The random numbers of a chunk: all at once cost a hundredth of one by one in the loop.

    Attributes:
      acting: [ticks, n, W].
      environments: the keys of the environments' steps, [ticks, n].
      sampling: [updates, M, B], from the first multiple of F after the chunk's beginning on; before
        learning starts nothing reads them.
      policy: the policy's key, into which a tick's number is folded where it needs one.
      learning: the updates' key, into which the agent step is folded.
    """

    acting: Array
    environments: Array
    sampling: Array
    policy: Array
    learning: Array


class Records(NamedTuple):
    """What happened in each agent step of a chunk, [ticks, n]."""

    reward: Array
    ended: Array
    metrics: dict[str, Array]


def keys_of(seed: int, num_envs: int) -> Keys:
    """The keys that the host loop uses with this seed."""
    return Keys(
        key_of(seed, ACTING),
        key_of(seed, SAMPLING),
        env_keys(env_seeds(seed, num_envs)),
        key_of(seed, POLICY),
        key_of(seed, LEARNING),
    )


def make_init(
    config: Config, environment: JaxEnvironment, learner: Learner
) -> Callable[[int], FusedState]:
    """``init(seed) -> state`` of a run that begins."""
    learn, (reset, _) = _compiled_init(learner), compiled(environment)

    def init(seed: int) -> FusedState:
        states, observation = reset(keys_of(seed, config.num_envs).environments)
        spaces = environment.spaces
        ring = device.empty(config.replay_capacity, spaces.observation, spaces.action)
        return FusedState(learn(key_of(seed, INITIALISATION)), ring, states, observation)

    return init


@shared
def _compiled_init(learner: Learner) -> Callable[[Array], LearnerState]:
    return jax.jit(learner.init)


class Rhythm(NamedTuple):
    """All of a config that a chunk depends on."""

    num_envs: int
    replay_capacity: int
    learns_after: int
    horizon: Horizon
    update_period: int
    sync_period: int
    batch_size: int
    gamma: float
    timeouts_are_terminal: bool


def make_chunk(
    config: Config, environment: JaxEnvironment, learner: Learner, ticks: int, seeds: int | None
) -> Callable[..., tuple[FusedState, Records]]:
    """The compiled chunk of a config: see ``_make_chunk``."""
    rhythm = Rhythm(*(getattr(config, name) for name in Rhythm._fields))
    return _make_chunk(rhythm, environment, learner, ticks, seeds)


@shared
def _make_chunk(
    config: Rhythm, environment: JaxEnvironment, learner: Learner, ticks: int, seeds: int | None
) -> Callable[..., tuple[FusedState, Records]]:
    """``chunk(state, keys, epsilon, first, count, limit) -> (state, records)``, compiled.

    It takes ``count`` ticks, at most ``ticks``, after tick number ``first``; past agent step
    ``limit`` nothing is learned. The state's buffers are taken over. With ``seeds`` the state, the
    keys and the records have a leading axis of seeds; the counters are common to all.
    """
    n, space, action = config.num_envs, environment.spaces.observation, environment.spaces.action
    words_shape = n, words_of(environment.spaces)
    capacity, starts = config.replay_capacity, config.learns_after
    horizon = config.horizon
    period, minibatches = config.update_period, (learner.minibatches, config.batch_size)
    names = learner.metrics

    def act(state: FusedState, words: Array, epsilon: Limits, key: Array) -> Array:
        exploration = exploring(words, epsilon, environment.spaces)
        return epsilon_greedy(
            exploration,
            lambda: learner.act(state.learner, state.observation, key).astype(action.dtype),
        )

    def agent_step(
        learned: LearnerState,
        ring: Transition,
        drawn: ChunkDraws,
        row: Array,
        k: Array,
        limit: Array,
        new: Transition,
    ) -> tuple[LearnerState, Transition, dict[str, Array]]:
        """Store, update if due (by this row of random numbers), synchronise if due."""
        ring = device.add(ring, (k - 1) % capacity, new, space)
        learning = (k > starts) & (k <= limit)

        def update(state: LearnerState) -> tuple[LearnerState, dict[str, Array]]:
            batches = device.sample(ring, k, drawn.sampling[row], space, horizon)
            return learner.update(state, batches, k, jax.random.fold_in(drawn.learning, k))

        def wait(state: LearnerState) -> tuple[LearnerState, dict[str, Array]]:
            return state, {name: jnp.float32(0) for name in names}

        learned, metrics = jax.lax.cond(learning & (k % period == 0), update, wait, learned)
        learned = jax.lax.cond(
            learning & (k % config.sync_period == 0), learner.sync, lambda state: state, learned
        )
        return learned, ring, metrics

    def draw_chunk(keys: Keys, first: Array) -> ChunkDraws:
        numbers = first + jnp.arange(ticks, dtype=jnp.int32)
        first_draw = first * n // period - starts // period
        draws = first_draw + jnp.arange(ticks * n // period + 1, dtype=jnp.int32)
        return ChunkDraws(
            jax.vmap(lambda tick: bits(keys.acting, tick, words_shape))(numbers),
            jax.vmap(lambda tick: step_keys(keys.environments, tick + 1))(numbers),
            jax.vmap(lambda draw: bits(keys.sampling, draw, minibatches))(draws),
            keys.policy,
            keys.learning,
        )

    def take_tick(
        state: FusedState, drawn: ChunkDraws, epsilon: Limits, first: Array, t: Array, limit: Array
    ) -> tuple[FusedState, Records]:
        """Decides for every environment, steps them all, and goes through their transitions."""
        key = jax.random.fold_in(drawn.policy, first + t)
        actions = act(state, drawn.acting[t], epsilon, key)
        environments, outcome = step_all(
            environment, drawn.environments[t], state.environments, actions
        )
        ended = outcome.terminated | outcome.truncated
        terminal = ended if config.timeouts_are_terminal else outcome.terminated
        discount = jnp.where(terminal, jnp.float32(0), jnp.float32(config.gamma))
        new = Transition(
            observation=state.observation,
            action=actions,
            reward=outcome.reward,
            discount=discount if horizon.steps == 1 else device.signed(discount, ended),
            next_observation=outcome.next_observation,
        )

        def go_through(carry: tuple[LearnerState, Transition], i: Array) -> tuple[Any, Any]:
            one = jax.tree.map(lambda leaf: leaf[i], new)
            k = (first + t) * n + i + 1
            row = k // period - first * n // period - 1  # if k is a multiple of F
            learned, ring, metrics = agent_step(*carry, drawn, row, k, limit, one)
            return (learned, ring), metrics

        carry = state.learner, state.ring
        if n == 1:
            carry, metrics = go_through(carry, jnp.int32(0))
            metrics = {name: value[None] for name, value in metrics.items()}
        else:
            carry, metrics = jax.lax.scan(go_through, carry, jnp.arange(n, dtype=jnp.int32))
        return (
            FusedState(*carry, environments, outcome.observation),
            Records(outcome.reward, ended, metrics),
        )

    # The seeds are mapped inside the loop: counters stay common, so that a gate stays a branch.
    take_all, draw_all = take_tick, draw_chunk
    if seeds is not None:
        take_all = jax.vmap(take_tick, in_axes=(0, 0, None, None, None, None))
        draw_all = jax.vmap(draw_chunk, in_axes=(0, None))
    leading: Sequence[int] = () if seeds is None else (seeds,)

    def chunk(
        state: FusedState, keys: Keys, epsilon: Limits, first: Array, count: Array, limit: Array
    ) -> tuple[FusedState, Records]:
        drawn = draw_all(keys, first)
        shape = (ticks, *leading, n)
        empty = Records(
            jnp.zeros(shape, jnp.float32),
            jnp.zeros(shape, bool),
            {name: jnp.zeros(shape, jnp.float32) for name in names},
        )

        def body(t: Array, carry: tuple[FusedState, Records]) -> tuple[FusedState, Records]:
            state, records = carry
            now = Limits(epsilon.ever[t], epsilon.last[t])
            state, new = take_all(state, drawn, now, first, t, limit)
            return state, jax.tree.map(lambda array, value: array.at[t].set(value), records, new)

        return jax.lax.fori_loop(0, count, body, (state, empty))

    return jax.jit(chunk, donate_argnums=0)
