"""One compiled chunk of training: environments, replay, updates and synchronisations in one loop.

The order within an agent step, its gates and its random numbers are the host loop's (see
``training.host_loop``). In JAX-native environments every step is a decision, so what the host
counts follows from the step k alone:

    stored(k)  = min(k, capacity), so that learning means k > learning_starts =: K
    updates(k) = ⌊k/F⌋ − ⌊K/F⌋ once learning, the number of the next draw

With n-step transitions the newest n − 1 of each environment are not sampled yet, so that learning
starts that much later: K = ``config.learns_after``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from momentum_rl.agents.exploration import Limits, epsilon_greedy, exploring, words_of
from momentum_rl.agents.learner import Learner, LearnerState
from momentum_rl.envs.jax_env import JaxEnvironment, compiled, env_keys, step_all, step_keys
from momentum_rl.plumbing.compilation import shared
from momentum_rl.replay import device
from momentum_rl.runs.config import Config
from momentum_rl.training.draws import (
    ACTING,
    INITIALISATION,
    LEARNING,
    POLICY,
    SAMPLING,
    bits,
    env_seeds,
    key_of,
)
from momentum_rl.transitions import NStep, Transition


class FusedState(NamedTuple):
    """Everything that a seed's run needs to continue after a vector step, but its number."""

    learner: LearnerState
    """Parameters, lagged copies, optimiser states."""
    ring: Transition
    """The replay."""
    environments: Any
    """The states of the n environments."""
    observation: Array
    """What they act on next, [n, ...]."""


class Keys(NamedTuple):
    """The keys of a seed's run; each draw folds its number in."""

    acting: Array
    sampling: Array
    environments: Array
    policy: Array
    learning: Array


class ChunkDraws(NamedTuple):
    """The random numbers of a chunk: all at once cost a hundredth of one by one in the loop."""

    acting: Array
    """[T, n, W], for T vector steps."""
    environments: Array
    """The keys of the environments' steps, [T, n]."""
    sampling: Array
    """[updates, M, B], from the first multiple of F after the chunk's beginning on; before learning
    starts nothing reads them."""
    policy: Array
    """The policy's key, into which a vector step's number is folded where it needs one."""
    learning: Array
    """The updates' key, into which the agent step is folded."""


class Records(NamedTuple):
    """What happened in each agent step of a chunk, [T, n]."""

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
        ring = device.empty(config.replay_size, spaces.observation, spaces.action)
        return FusedState(learn(key_of(seed, INITIALISATION)), ring, states, observation)

    return init


@shared
def _compiled_init(learner: Learner) -> Callable[[Array], LearnerState]:
    return jax.jit(learner.init)


def make_sample(
    config: Config, environment: JaxEnvironment
) -> Callable[[Transition, Any, Any], Transition]:
    """``sample(ring, added, words) -> transitions``, compiled."""
    return _compiled_sample(config.horizon, environment)


@shared
def _compiled_sample(
    horizon: NStep, environment: JaxEnvironment
) -> Callable[[Transition, Any, Any], Transition]:
    space = environment.spaces.observation
    return jax.jit(lambda ring, added, words: device.sample(ring, added, words, space, horizon))


class ChunkConfig(NamedTuple):
    """All of a config that a chunk depends on."""

    num_envs: int
    replay_capacity: int
    learns_after: int
    horizon: NStep
    update_period: int
    sync_period: int
    batch_size: int
    gamma: float
    timeouts_are_terminal: bool


def make_chunk(
    config: Config, environment: JaxEnvironment, learner: Learner, length: int, seeds: int | None
) -> Callable[..., tuple[FusedState, Records]]:
    """``chunk(state, keys, epsilon, first, count, limit) -> (state, records)``, compiled.

    It takes ``count`` vector steps, at most ``length``, after number ``first``; past agent step
    ``limit`` nothing is learned. The state's buffers are taken over. With ``seeds`` the state, the
    keys and the records have a leading axis of seeds; the counters are common to all.
    """
    own = ChunkConfig(*(getattr(config, name) for name in ChunkConfig._fields))
    return _compiled_chunk(own, environment, learner, length, seeds)


@shared
def _compiled_chunk(*parts: Any) -> Callable[..., tuple[FusedState, Records]]:
    return jax.jit(_Chunk(*parts).run, donate_argnums=0)


@dataclass(frozen=True)
class _Chunk:
    """The functions of a chunk, on one seed but for ``run``; n, F and K as in the module's text."""

    config: ChunkConfig
    environment: JaxEnvironment
    learner: Learner
    length: int
    seeds: int | None

    def run(
        self,
        state: FusedState,
        keys: Keys,
        epsilon: Limits,
        first: Array,
        count: Array,
        limit: Array,
    ) -> tuple[FusedState, Records]:
        """The chunk; see ``make_chunk``."""
        draw, vector_step = self.draw, self.vector_step
        if self.seeds is not None:
            # Mapped inside the loop: counters stay common to all seeds, so a gate stays a branch.
            draw = jax.vmap(draw, in_axes=(0, None))
            vector_step = jax.vmap(vector_step, in_axes=(0, 0, None, None, None, None))
        drawn = draw(keys, first)
        seeds = () if self.seeds is None else (self.seeds,)
        shape = (self.length, *seeds, self.config.num_envs)
        empty = Records(
            jnp.zeros(shape, jnp.float32),
            jnp.zeros(shape, bool),
            {name: jnp.zeros(shape, jnp.float32) for name in self.learner.metrics},
        )

        def body(t: Array, carry: tuple[FusedState, Records]) -> tuple[FusedState, Records]:
            state, records = carry
            now = Limits(epsilon.ever[t], epsilon.last[t])
            state, new = vector_step(state, drawn, now, first, t, limit)
            return state, jax.tree.map(lambda array, value: array.at[t].set(value), records, new)

        return jax.lax.fori_loop(0, count, body, (state, empty))

    def draw(self, keys: Keys, first: Array) -> ChunkDraws:
        """All random numbers of the chunk."""
        config, period = self.config, self.config.update_period
        numbers = first + jnp.arange(self.length, dtype=jnp.int32)
        first_draw = first * config.num_envs // period - config.learns_after // period
        draws = self.length * config.num_envs // period + 1
        words = config.num_envs, words_of(self.environment.spaces)
        minibatches = self.learner.minibatches, config.batch_size
        return ChunkDraws(
            jax.vmap(lambda t: bits(keys.acting, t, words))(numbers),
            jax.vmap(lambda t: step_keys(keys.environments, t + 1))(numbers),
            jax.vmap(lambda i: bits(keys.sampling, i, minibatches))(
                first_draw + jnp.arange(draws, dtype=jnp.int32)
            ),
            keys.policy,
            keys.learning,
        )

    def vector_step(
        self,
        state: FusedState,
        drawn: ChunkDraws,
        epsilon: Limits,
        first: Array,
        t: Array,
        limit: Array,
    ) -> tuple[FusedState, Records]:
        """Acts in every environment, steps them all, and goes through their transitions."""
        config, n, period = self.config, self.config.num_envs, self.config.update_period
        key = jax.random.fold_in(drawn.policy, first + t)
        actions = self.act(state, drawn.acting[t], epsilon, key)
        environments, outcome = step_all(
            self.environment, drawn.environments[t], state.environments, actions
        )
        ended = outcome.terminated | outcome.truncated
        terminal = ended if config.timeouts_are_terminal else outcome.terminated
        discount = jnp.where(terminal, jnp.float32(0), jnp.float32(config.gamma))
        new = Transition(
            observation=state.observation,
            action=actions,
            reward=outcome.reward,
            discount=discount if config.horizon.steps == 1 else device.signed(discount, ended),
            next_observation=outcome.next_observation,
        )

        def agent_step(carry: tuple[LearnerState, Transition], i: Array) -> tuple[Any, Any]:
            one = jax.tree.map(lambda leaf: leaf[i], new)
            k = (first + t) * n + i + 1
            row = k // period - first * n // period - 1  # if k is a multiple of F
            learned, ring, metrics = self.learn(*carry, drawn, row, k, limit, one)
            return (learned, ring), metrics

        carry = state.learner, state.ring
        if n == 1:
            carry, metrics = agent_step(carry, jnp.int32(0))
            metrics = {name: value[None] for name, value in metrics.items()}
        else:
            carry, metrics = jax.lax.scan(agent_step, carry, jnp.arange(n, dtype=jnp.int32))
        return (
            FusedState(*carry, environments, outcome.observation),
            Records(outcome.reward, ended, metrics),
        )

    def act(self, state: FusedState, words: Array, epsilon: Limits, key: Array) -> Array:
        """The actions of all environments."""
        spaces, learner = self.environment.spaces, self.learner
        return epsilon_greedy(
            exploring(words, epsilon, spaces),
            lambda: learner.act(state.learner, state.observation, key).astype(spaces.action.dtype),
        )

    def learn(
        self,
        learned: LearnerState,
        ring: Transition,
        drawn: ChunkDraws,
        row: Array,
        k: Array,
        limit: Array,
        new: Transition,
    ) -> tuple[LearnerState, Transition, dict[str, Array]]:
        """Store, update if due (by this row of random numbers), synchronise if due."""
        config, learner, space = self.config, self.learner, self.environment.spaces.observation
        ring = device.add(ring, (k - 1) % config.replay_capacity, new, space)
        learning = (k > config.learns_after) & (k <= limit)

        def update(state: LearnerState) -> tuple[LearnerState, dict[str, Array]]:
            batches = device.sample(ring, k, drawn.sampling[row], space, config.horizon)
            return learner.update(state, batches, k, jax.random.fold_in(drawn.learning, k))

        def wait(state: LearnerState) -> tuple[LearnerState, dict[str, Array]]:
            return state, {name: jnp.float32(0) for name in learner.metrics}

        learned, metrics = jax.lax.cond(
            learning & (k % config.update_period == 0), update, wait, learned
        )
        learned = jax.lax.cond(
            learning & (k % config.sync_period == 0), learner.sync, lambda state: state, learned
        )
        return learned, ring, metrics
