"""The fused loop: training in compiled chunks.

A chunk is environments, replay, updates and synchronisations in one compiled loop. The order within
an agent step, its gates and its random numbers are the host loop's (see ``training.host_loop``). In
JAX-native environments every step is a decision, so what the host counts follows from the step k
alone:

    stored(k)  = min(k, capacity), so that learning means k > learning_starts =: K
    updates(k) = ⌊k/F⌋ − ⌊K/F⌋ once learning, the number of the next draw

With n-step transitions the newest n − 1 of each environment are not sampled yet, so that learning
starts that much later: K = ``config.learns_after``.

Between two chunks the host looks at the records, writes metrics and files, draws progress, and can
be interrupted. What it holds of a run is the chunks' state (one pytree) and a few sums.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from momentum_rl.agents.learner import Learner, LearnerState
from momentum_rl.envs.jax_env import JaxEnvironment, compiled, env_keys, step_all, step_keys
from momentum_rl.errors import Damaged, UserError
from momentum_rl.plumbing.compilation import shared
from momentum_rl.plumbing.trees import arrays_of, tree_of
from momentum_rl.replay import device
from momentum_rl.replay.uniform import UniformReplay, slack_of
from momentum_rl.runs.config import Config
from momentum_rl.spaces import NStep, Transition, check_rewards
from momentum_rl.training.loop import (
    ACTING,
    CHECK_PERIOD,
    CHUNK,
    INITIALISATION,
    LEARNING,
    POLICY,
    SAMPLING,
    Inspection,
    Limits,
    Scores,
    bits,
    env_seeds,
    epsilon_greedy,
    exploring,
    key_of,
    limits,
    metrics_row,
    words_of,
)
from momentum_rl.training.run_directory import Saved

# One compiled chunk -----------------------------------------------------------------------------


class FusedState(NamedTuple):
    """Everything that a run needs to continue after a vector step, but its number."""

    learner: LearnerState
    """Parameters, lagged copies, optimiser states."""
    ring: Transition
    """The replay."""
    environments: Any
    """The states of the n environments."""
    observation: Array
    """What they act on next, [n, ...]."""


class Keys(NamedTuple):
    """The keys of a run; each draw folds its number in."""

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


class ChunkConfig(NamedTuple):
    """All of a config that a chunk depends on."""

    num_envs: int
    replay_size: int
    replay_capacity: int
    learns_after: int
    horizon: NStep
    update_period: int
    sync_period: int
    batch_size: int
    gamma: float
    timeouts_are_terminal: bool


def make_chunk(
    config: Config,
    environment: JaxEnvironment,
    learner: Learner,
    length: int,
) -> "Chunk":
    """Chunks of at most ``length`` vector steps; those of equal parts are compiled once."""
    settings = ChunkConfig(*(getattr(config, name) for name in ChunkConfig._fields))
    return _shared_chunk(settings, environment, learner, length)


@dataclass(frozen=True)
class Chunk:
    """The functions of a chunk; n, F and K as in the module's text."""

    config: ChunkConfig
    environment: JaxEnvironment
    learner: Learner
    length: int

    @cached_property
    def compiled(self) -> Callable[..., tuple[FusedState, Records]]:
        """``run``, compiled; the state's buffers are taken over."""
        return jax.jit(self.run, donate_argnums=0)

    @cached_property
    def sample(self) -> Callable[[Transition, Any, Any], Transition]:
        """``sample(ring, added, words) -> transitions``, compiled."""
        space, horizon = self.environment.spaces.observation, self.config.horizon
        return jax.jit(lambda ring, added, words: device.sample(ring, added, words, space, horizon))

    @cached_property
    def _init(self) -> Callable[[Array], LearnerState]:
        return jax.jit(self.learner.init)

    def init(self, seed: int) -> FusedState:
        """The state of a run that begins."""
        reset, _ = compiled(self.environment)
        states, observation = reset(keys_of(seed, self.config.num_envs).environments)
        spaces = self.environment.spaces
        ring = device.empty(self.config.replay_size, spaces.observation, spaces.action)
        return FusedState(self._init(key_of(seed, INITIALISATION)), ring, states, observation)

    def run(
        self,
        state: FusedState,
        keys: Keys,
        epsilon: Limits,
        first: Array,
        count: Array,
        limit: Array,
    ) -> tuple[FusedState, Records]:
        """``count`` vector steps after number ``first``; past agent step ``limit`` nothing is
        learned."""
        drawn = self.draw(keys, first)
        shape = self.length, self.config.num_envs
        empty = Records(
            jnp.zeros(shape, jnp.float32),
            jnp.zeros(shape, bool),
            {name: jnp.zeros(shape, jnp.float32) for name in self.learner.metrics},
        )

        def body(t: Array, carry: tuple[FusedState, Records]) -> tuple[FusedState, Records]:
            state, records = carry
            now = Limits(epsilon.ever[t], epsilon.last[t])
            state, new = self.vector_step(state, drawn, now, first, t, limit)
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
            discount=jnp.where(ended, -discount, discount),
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


_shared_chunk = shared(Chunk)


# The loop on the host ---------------------------------------------------------------------------


RECORDS = ("records.reward", "records.ended", "records.metrics")
"""Their names in a checkpoint."""


class FusedLoop:
    """A run in progress; ``advance`` continues it, in whole vector steps."""

    def __init__(
        self,
        config: Config,
        environment: JaxEnvironment,
        learner: Learner,
        directory: Path | None = None,
    ) -> None:
        """Resets the environments and initialises the learner, by the config's seed.

        ``directory`` is for the replay's files; None without checkpoints.
        """
        spaces = environment.spaces
        self.config, self._directory = config, directory
        self._space, self._action = spaces.observation, spaces.action
        self._replay: UniformReplay  # the ring's copy in files
        self.step = self.vector_steps = 0
        self._size = max(1, CHUNK // config.num_envs)
        self._chunk = make_chunk(config, environment, learner, self._size)
        self.state: FusedState = self._chunk.init(config.seed)
        self._keys = keys_of(config.seed, config.num_envs)
        self._inspection = Inspection(config, learner)
        self.scores = Scores(config.num_envs)
        self._diverged: int | None = None
        self._told = 0  # agent steps that are in rows already
        # Of the agent steps that are in no row yet: rewards, ends of episodes, updates' metrics.
        self._names = tuple(learner.metrics)
        metrics = np.zeros((0, len(self._names)), np.float32)
        self._records = [np.zeros(0, np.float32), np.zeros(0, bool), metrics]

    @property
    def updates(self) -> int:
        """Updates so far."""
        return _due(self.config, self.config.update_period, self.step)

    @property
    def added(self) -> int:
        """Transitions ever stored."""
        return self.vector_steps * self.config.num_envs

    def begin(self) -> None:
        """Starts with an empty replay."""
        if self._directory is not None:
            self._replay = self._opened(None)

    def _opened(self, snapshot: Mapping[str, Any] | None) -> UniformReplay:
        """New files for the ring's copy, or those that have this snapshot."""
        capacity = self.config.replay_capacity
        interval, stored = self.config.checkpoint_every, self.config.stored
        return UniformReplay(
            capacity,
            device.packed_space(self._space),
            slack=slack_of(capacity, interval, stored, snapshot),
            action=self._action,
            directory=self._directory,
            new=snapshot is None,
            run=self.config.identity,
        )

    def headroom(self, snapshot: Mapping[str, Any]) -> int:
        """Agent steps until the replay's files overwrite what a snapshot of theirs refers to."""
        return self._replay.headroom(snapshot) + self._replay.added - self.added

    def diverged(self) -> int | None:
        """The step at which the run diverged, if it did."""
        return self._diverged

    def _noticed_at(self, until: int) -> int:
        """The step at which the host loop would have stopped, at the latest ``until``."""
        if self._diverged is None:
            return until
        return min(until, -(-self._diverged // CHECK_PERIOD) * CHECK_PERIOD)

    def row(self, until: int, iteration: int) -> dict[str, Any]:
        """The metrics since the last row; what is in them is said in ``training.loop``."""
        health: Mapping[str, float] = {}
        if self._diverged is None and self.added == until:
            state = self.state
            health = self._inspection.row(
                state.learner,
                lambda words: self._chunk.sample(state.ring, np.int32(self.added), words),
                until,
            )
        config, until, first = self.config, self._noticed_at(until), self._told
        rewards, ends, metrics = (part[: until - first] for part in self._records)
        for j, (reward, ended) in enumerate(zip(rewards.tolist(), ends.tolist())):
            self.scores.count((first + j) % config.num_envs, reward, ended)
        steps = np.arange(first + 1, until + 1)
        live = (steps > config.learns_after) & (steps % config.update_period == 0)
        if self._diverged is not None:
            live &= steps < self._diverged
        updated = metrics[live].astype(float)
        means = updated.mean(axis=0).tolist() if len(updated) else [None] * len(self._names)
        self._records = [part[until - first :] for part in self._records]
        self._told = until
        counts = {
            "updates": _due(config, config.update_period, until),
            "syncs": _due(config, config.sync_period, until),
            "stored": max(0, min(until, config.replay_capacity) - config.horizon.incomplete),
        }
        named = dict(zip(self._names, means))
        return metrics_row(config, iteration, until, self.scores, named, health, counts)

    def advance(
        self,
        until: int,
        on_progress: Callable[["FusedLoop"], None] = lambda loop: None,
        on_saveable: Callable[["FusedLoop"], None] = lambda loop: None,
        steps_left: Callable[["FusedLoop"], int] = lambda loop: CHUNK,
    ) -> None:
        """Continues until agent step ``until``, or until the run has diverged.

        After every chunk ``on_progress`` is called, and ``on_saveable`` unless the run's end cut
        it; ``steps_left`` says how many agent steps may pass before that.
        """
        n = self.config.num_envs
        while self.step < until:
            rest = -(-(until - self.step) // n)
            count = max(1, min(self._size, rest, steps_left(self) // n))
            self._take(count)
            on_progress(self)
            if self.added == self.step:
                on_saveable(self)
            if self._diverged and self._noticed_at(until) <= self.step:
                return

    def snapshot(self) -> Saved:
        """All that ``restore`` needs, but for the ring, which is in its files.

        Only what was added since the last snapshot is fetched from the device.
        """
        replay, capacity = self._replay, self.config.replay_capacity
        count = min(self.added - replay.added, capacity)
        slots = np.arange(self.added - count, self.added) % capacity
        if count:
            new = _fetched(self.state.ring, slots)
            replay.extend(Transition(*map(np.asarray, new)), self.added)
        records = dict(zip(RECORDS, self._records))
        state = {
            "told": self._told,
            "diverged": self._diverged,
            "scores": self.scores.snapshot(),
            "step": self.step,
            "ticks": self.vector_steps,
            "replay": replay.snapshot(),
        }
        return Saved({**records, **arrays_of(_without_ring(self.state), "state")}, state)

    def restore(self, saved: Saved) -> None:
        """Continues from a snapshot, exactly as if it had never stopped."""
        arrays, about = saved
        self._replay = self._opened(about["replay"])
        self._replay.restore(about["replay"])
        self.vector_steps = int(about["ticks"])
        self.step = min(self.added, self.config.steps)
        if self._replay.added != self.added:
            raise Damaged(f"replay: {self._replay.added} transitions, expected {self.added}")
        ring = Transition(*(np.zeros(leaf.shape, leaf.dtype) for leaf in self.state.ring))
        numbers, rows = self._replay.newest()
        for array, values in zip(ring, rows):
            array[numbers % len(array)] = values
        learner, environments, observation = tree_of(_without_ring(self.state), arrays, "state")
        state = FusedState(learner, jax.tree.map(jnp.asarray, ring), environments, observation)
        self.state = jax.device_put(state)
        records = [arrays[name] for name in RECORDS]
        shapes, count = [part.shape for part in records], len(records[0])
        if shapes != [(count,), (count,), (count, len(self._names))]:
            raise UserError(f"records: shapes {shapes}, expected {count} steps of each")
        self._records = records
        self._told, diverged = int(about["told"]), about["diverged"]
        self._diverged = None if diverged is None else int(diverged)
        self.scores.restore(about["scores"])

    def parameters(self) -> dict[str, Any]:
        """A copy of the online networks' parameters."""
        return jax.tree.map(np.array, self.state.learner.online)

    def _take(self, count: int) -> None:
        """One chunk of vector steps."""
        config = self.config
        numbers = self.vector_steps + np.arange(self._size, dtype=np.int64)
        epsilon = limits(config.epsilon_schedule(numbers * config.num_envs))
        counters = map(np.int32, (self.vector_steps, count, config.steps))
        self.state, records = self._chunk.compiled(self.state, self._keys, epsilon, *counters)
        seen = jax.tree.map(lambda leaf: np.asarray(leaf)[:count], records)
        metrics = np.stack([seen.metrics[name].ravel() for name in self._names], axis=-1)
        new = [np.ravel(seen.reward), np.ravel(seen.ended), metrics]
        self._records = [np.concatenate(parts) for parts in zip(self._records, new)]
        self._diverged = int(self.state.learner.diverged_at) or None
        self._check(seen.reward)
        self.vector_steps += count
        self.step = min(self.added, config.steps)

    def _check(self, rewards: np.ndarray) -> None:
        """Raises where an environment said in a chunk what cannot be: it would be learned from."""
        space, at = self._space, (self.config.env, self.added + 1)
        check_rewards(rewards, self.config.reward_clip, *at)
        if space.categories is None and np.dtype(space.dtype).kind != "f":
            return
        # As many as in a whole chunk, so that it is compiled once.
        numbers = self.added + np.arange(self._size * self.config.num_envs)
        slots = numbers % self.config.replay_capacity
        rows = _fetched(self.state.ring, slots)
        for seen in (rows.observation, rows.next_observation):
            space.checked(np.asarray(seen)[: rewards.size], "observation", *at)


def _due(config: Config, period: int, step: int) -> int:
    """How often something was due up to a step: multiples of a period once learning began."""
    return max(0, step // period - config.learns_after // period)


@jax.jit
def _fetched(ring: Transition, slots: Array) -> Transition:
    return jax.tree.map(lambda leaf: leaf[slots], ring)


def _without_ring(state: FusedState) -> tuple[Any, Any, Any]:
    return state.learner, state.environments, state.observation
