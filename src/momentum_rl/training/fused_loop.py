"""The fused loop: training in compiled chunks, for one seed or for several side by side.

A chunk is environments, replay, updates and synchronisations in one compiled loop. The order within
an agent step, its gates and its random numbers are the host loop's (see ``training.host_loop``). In
JAX-native environments every step is a decision, so what the host counts follows from the step k
alone:

    stored(k)  = min(k, capacity), so that learning means k > learning_starts =: K
    updates(k) = ⌊k/F⌋ − ⌊K/F⌋ once learning, the number of the next draw

With n-step transitions the newest n − 1 of each environment are not sampled yet, so that learning
starts that much later: K = ``config.learns_after``.

Between two chunks the host looks at the records, writes metrics and files, draws progress, and can
be interrupted. What it holds of a run is the chunks' state (one pytree per seed) and a few sums.
"""

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
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
from momentum_rl.plumbing.sizes import available_cores
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


def prepare_fused(programs: int) -> None:
    """One thread for each CPU device, and as many devices as programs can use.

    A chunk's arrays are so small that threads which share one update lose more time than they save:
    on two cores an update of the MinAtar network is faster on one of them, and two seeds on two JAX
    devices, one core each, are nearly twice as fast as on one. JAX reads both settings once, before
    its first computation; later this has no effect. What the environment's variables say already
    stays, and a GPU or TPU is not concerned.
    """
    os.environ.setdefault("NPROC", "1")
    if "JAX_NUM_CPU_DEVICES" not in os.environ:
        with contextlib.suppress(RuntimeError):  # JAX has started
            jax.config.update("jax_num_cpu_devices", max(1, min(programs, len(available_cores()))))


# One compiled chunk -----------------------------------------------------------------------------


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


class SeedRun:
    """One seed's side of the loop: its episodes and its updates' metrics, row by row."""

    def __init__(self, config: Config, seed: int, names: Sequence[str]) -> None:
        self.config, self.seed = config, seed
        self.scores = Scores(config.num_envs)
        self.step = 0  # agent steps that are in rows already
        self.diverged: int | None = None
        self._names = names
        # Of the agent steps that are in no row yet: rewards, ends of episodes, updates' metrics.
        metrics = np.zeros((0, len(names)), np.float32)
        self._records = [np.zeros(0, np.float32), np.zeros(0, bool), metrics]

    def add(self, records: Records, diverged_at: int) -> None:
        """What happened in the agent steps after those added already."""
        metrics = np.stack([records.metrics[name].ravel() for name in self._names], axis=-1)
        new = [np.ravel(records.reward), np.ravel(records.ended), metrics]
        self._records = [np.concatenate(parts) for parts in zip(self._records, new)]
        self.diverged = diverged_at or None

    def snapshot(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """All that ``restore`` needs: arrays, and the rest of JSON's types."""
        state = {"told": self.step, "diverged": self.diverged, "scores": self.scores.snapshot()}
        return dict(zip(RECORDS, self._records)), state

    def restore(self, arrays: Mapping[str, np.ndarray], state: Mapping[str, Any]) -> None:
        """Continues from a snapshot."""
        records = [arrays[name] for name in RECORDS]
        shapes, count = [part.shape for part in records], len(records[0])
        if shapes != [(count,), (count,), (count, len(self._names))]:
            raise UserError(f"records: shapes {shapes}, expected {count} steps of each")
        self._records = records
        self.step, diverged = int(state["told"]), state["diverged"]
        self.diverged = None if diverged is None else int(diverged)
        self.scores.restore(state["scores"])

    def noticed_at(self, until: int) -> int:
        """The step at which the host loop would have stopped, at the latest ``until``."""
        if self.diverged is None:
            return until
        return min(until, -(-self.diverged // CHECK_PERIOD) * CHECK_PERIOD)

    def row(self, until: int, iteration: int, health: Mapping[str, float]) -> dict[str, Any]:
        """The metrics of the agent steps up to ``until``, and how the networks are there."""
        n, first, incomplete = self.config.num_envs, self.step, self.config.horizon.incomplete
        count = until - first
        rewards, ends, metrics = (part[:count] for part in self._records)
        for j, (reward, ended) in enumerate(zip(rewards.tolist(), ends.tolist())):
            self.scores.count((first + j) % n, reward, ended)
        steps = np.arange(first + 1, until + 1)
        live = (steps > self.config.learns_after) & (steps % self.config.update_period == 0)
        if self.diverged is not None:
            live &= steps < self.diverged
        updated = metrics[live].astype(float)
        means = updated.mean(axis=0).tolist() if len(updated) else [None] * len(self._names)
        self._records = [part[count:] for part in self._records]
        self.step = until
        stored = max(0, min(until, self.config.replay_capacity) - incomplete)
        counts = {
            "updates": _due(self.config, self.config.update_period, until),
            "syncs": _due(self.config, self.config.sync_period, until),
            "stored": stored,
        }
        named = dict(zip(self._names, means))
        return metrics_row(self.config, iteration, until, self.scores, named, health, counts)


class FusedLoop:
    """The runs of some seeds in progress; ``advance`` continues them, in whole vector steps."""

    def __init__(
        self,
        config: Config,
        environment: JaxEnvironment,
        learner: Learner,
        seeds: Sequence[int],
        files: Sequence[Path] = (),
    ) -> None:
        """Resets the environments and initialises the learners, each by its own seed.

        ``files`` are directories for the replays' files, none without checkpoints.
        """
        spaces = environment.spaces
        self.config, self.seeds, self._files = config, tuple(seeds), tuple(files)
        self._space, self._action = spaces.observation, spaces.action
        self._replays: list[UniformReplay] = []  # the rings' copies in files
        self.step = self.vector_steps = 0
        self._size = max(1, CHUNK // config.num_envs)
        self.runs = [SeedRun(config, seed, learner.metrics) for seed in seeds]
        self._chunk = make_chunk(config, environment, learner, self._size)
        self.states: list[FusedState] = _placed([self._chunk.init(seed) for seed in seeds])
        self._keys: list[Keys] = _placed([keys_of(seed, config.num_envs) for seed in seeds])
        self._inspection = Inspection(config, learner)

    @property
    def updates(self) -> int:
        """Updates of each seed so far."""
        return _due(self.config, self.config.update_period, self.step)

    def begin(self) -> None:
        """Starts with empty replays."""
        self._open(None)

    def _open(self, snapshot: Mapping[str, Any] | None) -> None:
        """New files for the rings' copies, or those that have this snapshot."""
        capacity, space = self.config.replay_capacity, device.packed_space(self._space)
        interval, stored = self.config.checkpoint_every, self.config.stored
        self._replays = [
            UniformReplay(
                capacity,
                space,
                slack=slack_of(capacity, interval, stored, snapshot),
                action=self._action,
                directory=file,
                new=snapshot is None,
                run=replace(self.config, seed=seed).identity,
            )
            for file, seed in zip(self._files, self.seeds)
        ]

    def headroom(self, snapshot: Mapping[str, Any]) -> int:
        """Agent steps until the replays' files overwrite what a snapshot of theirs refers to."""
        replay = self._replays[0]
        return replay.headroom(snapshot) + replay.added - self.added

    def diverged(self, i: int) -> int | None:
        """The step at which a seed's run diverged, if it did."""
        return self.runs[i].diverged

    def row(self, i: int, until: int, iteration: int) -> dict[str, Any]:
        """The metrics of a seed since its last row."""
        run, health = self.runs[i], {}
        if run.diverged is None and self.added == until:
            state = self.states[i]
            health = self._inspection.row(
                run.seed,
                state.learner,
                lambda words: self._chunk.sample(state.ring, np.int32(self.added), words),
                until,
            )
        return run.row(run.noticed_at(until), iteration, health)

    def advance(
        self,
        until: int,
        on_progress: Callable[["FusedLoop"], None] = lambda loop: None,
        on_saveable: Callable[["FusedLoop"], None] = lambda loop: None,
        steps_left: Callable[["FusedLoop"], int] = lambda loop: CHUNK,
    ) -> None:
        """Continues until every seed has reached agent step ``until`` or has diverged.

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
            if all(run.diverged and run.noticed_at(until) <= self.step for run in self.runs):
                return

    def snapshot(self, i: int) -> Saved:
        """All that ``restore`` needs of a seed, but for the ring, which is in its files.

        Only what was added since the last snapshot is fetched from the device.
        """
        state, replay = self.states[i], self._replays[i]
        count = min(self.added - replay.added, self.config.replay_capacity)
        slots = np.arange(self.added - count, self.added) % self.config.replay_capacity
        if count:
            replay.extend(Transition(*map(np.asarray, _fetched(state.ring, slots))), self.added)
        arrays, about = self.runs[i].snapshot()
        arrays |= arrays_of(_without_ring(state), "state")
        counters = {"step": self.step, "ticks": self.vector_steps}
        return Saved(arrays, {**about, **counters, "replay": replay.snapshot()})

    def restore(self, saved: Sequence[Saved]) -> None:
        """Continues from snapshots of all seeds at the same step, as if it had never stopped."""
        self._open(saved[0].state["replay"])
        self.vector_steps = int(saved[0].state["ticks"])
        self.step = min(self.added, self.config.steps)
        restored = []
        for i, ((arrays, about), replay) in enumerate(zip(saved, self._replays)):
            replay.restore(about["replay"])
            if replay.added != self.added:
                raise Damaged(f"replay: {replay.added} transitions, expected {self.added}")
            state = self.states[i]
            ring = Transition(*(np.zeros(leaf.shape, leaf.dtype) for leaf in state.ring))
            numbers, rows = replay.newest()
            for array, values in zip(ring, rows):
                array[numbers % len(array)] = values
            learner, environments, observation = tree_of(_without_ring(state), arrays, "state")
            rows = Transition(*map(jnp.asarray, ring))
            restored.append(FusedState(learner, rows, environments, observation))
            self.runs[i].restore(arrays, about)
        self.states = _placed(restored)

    @property
    def added(self) -> int:
        """Transitions ever stored, of each seed."""
        return self.vector_steps * self.config.num_envs

    def parameters(self, i: int) -> dict[str, Any]:
        """A copy of the online networks' parameters of a seed."""
        return jax.tree.map(np.array, self.states[i].learner.online)

    def _take(self, count: int) -> None:
        """One chunk of vector steps, for every seed."""
        numbers = self.vector_steps + np.arange(self._size, dtype=np.int64)
        epsilon = limits(self.config.epsilon_schedule(numbers * self.config.num_envs))
        counters = map(np.int32, (self.vector_steps, count, self.config.steps))
        arguments = (epsilon, *counters)
        records = []
        for i, keys in enumerate(self._keys):  # dispatched one after the other, run side by side
            self.states[i], new = self._chunk.compiled(self.states[i], keys, *arguments)
            records.append(new)
        for i, (run, new) in enumerate(zip(self.runs, records)):
            seen = jax.tree.map(lambda leaf: np.asarray(leaf)[:count], new)
            run.add(seen, int(self.states[i].learner.diverged_at))
            self._check(i, seen.reward)
        self.vector_steps += count
        self.step = min(self.added, self.config.steps)

    def _check(self, i: int, rewards: np.ndarray) -> None:
        """Raises where an environment said in a chunk what cannot be: it would be learned from."""
        space, at = self._space, (self.config.env, self.added + 1)
        check_rewards(rewards, self.config.reward_clip, *at)
        if space.categories is None and np.dtype(space.dtype).kind != "f":
            return
        # As many as in a whole chunk, so that it is compiled once.
        numbers = self.added + np.arange(self._size * self.config.num_envs)
        slots = numbers % self.config.replay_capacity
        rows = _fetched(self.states[i].ring, slots)
        for seen in (rows.observation, rows.next_observation):
            space.checked(np.asarray(seen)[: rewards.size], "observation", *at)


def _due(config: Config, period: int, step: int) -> int:
    """How often something was due up to a step: multiples of a period once learning began."""
    return max(0, step // period - config.learns_after // period)


def _placed(seeds: Sequence[Any]) -> list[Any]:
    """One tree for each seed's program: programs on different devices run at the same time."""
    devices = jax.local_devices()
    return [jax.device_put(one, devices[i % len(devices)]) for i, one in enumerate(seeds)]


@jax.jit
def _fetched(ring: Transition, slots: Array) -> Transition:
    return jax.tree.map(lambda leaf: leaf[slots], ring)


def _without_ring(state: FusedState) -> tuple[Any, Any, Any]:
    return state.learner, state.environments, state.observation
