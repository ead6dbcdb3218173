"""The fused loop: training in compiled chunks, for one seed or for many side by side.

Between two chunks the host looks at the records, writes metrics and files, draws progress, and can
be interrupted. What it holds of a run is the chunks' state (one pytree per seed) and a few sums.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from momentum_rl.agents.exploration import limits
from momentum_rl.agents.learner import Learner
from momentum_rl.envs.interface import check_rewards
from momentum_rl.envs.jax_env import JaxEnvironment
from momentum_rl.errors import UserError
from momentum_rl.plumbing.trees import arrays_of, tree_of
from momentum_rl.replay.device import packed_space
from momentum_rl.replay.ring import Damaged
from momentum_rl.replay.uniform import UniformReplay
from momentum_rl.runs.config import Config
from momentum_rl.training.checkpoint import Saved
from momentum_rl.training.fused_step import (
    FusedState,
    Keys,
    Records,
    keys_of,
    make_chunk,
    make_init,
    make_sample,
)
from momentum_rl.training.health import Inspection
from momentum_rl.training.host_loop import CHECK_PERIOD
from momentum_rl.training.loop import CHUNK
from momentum_rl.training.replays import slack_for
from momentum_rl.training.scores import Scores, metrics_row
from momentum_rl.transitions import Transition


class SeedRun:
    """One seed's side of the loop: its episodes and its updates' metrics, row by row."""

    def __init__(self, config: Config, seed: int, names: Sequence[str]) -> None:
        self.config, self.seed = config, seed
        self.scores = Scores(config.num_envs)
        self.step = 0  # agent steps that are in rows already
        self.diverged: int | None = None
        self._names = names
        self._reward = np.zeros(0, np.float32)
        self._ended = np.zeros(0, bool)
        self._metrics = np.zeros((0, len(names)), np.float32)

    def add(self, records: Records, diverged_at: int) -> None:
        """What happened in the agent steps after those added already."""
        self._reward = np.concatenate([self._reward, records.reward.ravel()])
        self._ended = np.concatenate([self._ended, records.ended.ravel()])
        new = np.stack([records.metrics[name].ravel() for name in self._names], axis=-1)
        self._metrics = np.concatenate([self._metrics, new])
        self.diverged = diverged_at or None

    def snapshot(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """All that ``restore`` needs: arrays, and the rest of JSON's types."""
        arrays = {"reward": self._reward, "ended": self._ended, "metrics": self._metrics}
        state = {"told": self.step, "diverged": self.diverged, "scores": self.scores.snapshot()}
        return {f"records.{name}": array for name, array in arrays.items()}, state

    def restore(self, arrays: Mapping[str, np.ndarray], state: Mapping[str, Any]) -> None:
        """Continues from a snapshot."""
        reward, ended, metrics = (arrays[f"records.{n}"] for n in ("reward", "ended", "metrics"))
        count = len(reward)
        if (ended.shape, metrics.shape) != ((count,), (count, len(self._names))):
            raise UserError(f"records: shape {metrics.shape}, expected {(count, len(self._names))}")
        self._reward, self._ended, self._metrics = reward, ended, metrics
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
        for j, (reward, ended) in enumerate(
            zip(self._reward[:count].tolist(), self._ended[:count].tolist())
        ):
            self.scores.count((first + j) % n, reward, ended)
        steps = np.arange(first + 1, until + 1)
        live = (steps > self.config.learns_after) & (steps % self.config.update_period == 0)
        if self.diverged is not None:
            live &= steps < self.diverged
        updated = self._metrics[:count][live].astype(float)
        means = updated.mean(axis=0).tolist() if len(updated) else [None] * len(self._names)
        self._reward, self._ended = self._reward[count:], self._ended[count:]
        self._metrics = self._metrics[count:]
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
        *,
        vectorised: bool = True,
    ) -> None:
        """Resets the environments and initialises the learners, each by its own seed.

        Args:
          config: of all runs, but for the seed.
          environment: the environment.
          learner: the learner.
          seeds: one run for each.
          files: a directory for each, for its replay's files; none without checkpoints.
          vectorised: map the seeds inside one program, instead of running one program for each.
        """
        spaces = environment.spaces
        self.config, self.seeds, self._files = config, tuple(seeds), tuple(files)
        self._space, self._action = spaces.observation, spaces.action
        self._replays: list[UniformReplay] = []  # the rings' copies in files
        self.step = self.vector_steps = 0
        self._vectorised = vectorised and len(seeds) > 1
        self._size = max(1, CHUNK // config.num_envs)
        self.runs = [SeedRun(config, seed, learner.metrics) for seed in seeds]
        init = make_init(config, environment, learner)
        states = [init(seed) for seed in seeds]
        keys = [keys_of(seed, config.num_envs) for seed in seeds]
        self.states: list[FusedState] = self._placed(states)
        self._keys: list[Keys] = self._placed(keys)
        self._inspection = Inspection(config, learner)
        self._sample = make_sample(config, environment)
        self._chunk = make_chunk(
            config, environment, learner, self._size, len(seeds) if self._vectorised else None
        )

    @property
    def updates(self) -> int:
        """Updates of each seed so far."""
        return _due(self.config, self.config.update_period, self.step)

    def begin(self) -> None:
        """Starts with empty replays."""
        self._open(None)

    def _open(self, snapshot: Mapping[str, Any] | None) -> None:
        self._replays = [
            UniformReplay(
                self.config.replay_capacity,
                packed_space(self._space),
                slack=slack_for(self.config, True, snapshot),
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
            state = self.state(i)
            health = self._inspection.row(
                run.seed,
                state.learner,
                lambda words: self._sample(state.ring, np.int32(self.added), words),
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
        """See ``Loop``: chunk by chunk, each of which can be saved unless the run's end cut it."""
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

    def state(self, i: int) -> FusedState:
        """The state of a seed's run; valid until the next ``advance``."""
        if not self._vectorised:
            return self.states[i]
        return jax.tree.map(lambda leaf: leaf[i], self.states[0])

    def snapshot(self, i: int) -> Saved:
        """All that ``restore`` needs of a seed, but for the ring, which is in its files.

        Only what was added since the last snapshot is fetched from the device.
        """
        state, replay = self.state(i), self._replays[i]
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
        found = {int(one.state["ticks"]) for one in saved}
        if len(found) != 1:
            raise UserError(f"checkpoints of different steps: {sorted(found)}")
        self.vector_steps = found.pop()
        self.step = min(self.added, self.config.steps)
        restored = []
        for i, ((own, about), replay) in enumerate(zip(saved, self._replays)):
            replay.restore(about["replay"])
            if replay.added != self.added:
                raise Damaged(f"replay: {replay.added} transitions, expected {self.added}")
            state = self.state(i)
            ring = Transition(*(np.zeros(leaf.shape, leaf.dtype) for leaf in state.ring))
            numbers, rows = replay.newest()
            for array, values in zip(ring, rows):
                array[numbers % len(array)] = values
            learner, environments, observation = tree_of(_without_ring(state), own, "state")
            rows = Transition(*map(jnp.asarray, ring))
            restored.append(FusedState(learner, rows, environments, observation))
            self.runs[i].restore(own, about)
        self.states = self._placed(restored)

    @property
    def added(self) -> int:
        """Transitions ever stored, of each seed."""
        return self.vector_steps * self.config.num_envs

    def parameters(self, i: int) -> dict[str, Any]:
        """A copy of the online networks' parameters of a seed."""
        if not self._vectorised:
            return jax.tree.map(np.array, self.states[i].learner.online)
        return jax.tree.map(lambda leaf: np.array(leaf[i]), self.states[0].learner.online)

    def _placed(self, seeds: Sequence[Any]) -> list[Any]:
        """One tree for each program: programs on different devices run at the same time."""
        if self._vectorised:
            return [jax.tree.map(lambda *leaves: jnp.stack(leaves), *seeds)]
        devices = jax.local_devices()
        return [jax.device_put(own, devices[i % len(devices)]) for i, own in enumerate(seeds)]

    def _take(self, count: int) -> None:
        """One chunk of vector steps, for every seed."""
        numbers = self.vector_steps + np.arange(self._size, dtype=np.int64)
        epsilon = limits(self.config.epsilon_schedule(numbers * self.config.num_envs))
        counters = map(np.int32, (self.vector_steps, count, self.config.steps))
        arguments = (epsilon, *counters)
        records = []
        for j, keys in enumerate(self._keys):  # dispatched one after the other, run side by side
            self.states[j], new = self._chunk(self.states[j], keys, *arguments)
            records.append(new)
        diverged = [np.asarray(state.learner.diverged_at) for state in self.states]
        host = [jax.tree.map(lambda leaf: np.asarray(leaf)[:count], new) for new in records]
        for i, run in enumerate(self.runs):
            if self._vectorised:
                own = jax.tree.map(lambda leaf, i=i: leaf[:, i], host[0])
                run.add(own, int(diverged[0][i]))
            else:
                run.add(own := host[i], int(diverged[i]))
            self._check(i, own.reward)
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
        state, index = (self.states[0], (i, slots)) if self._vectorised else (self.states[i], slots)
        for rows in _seen(state.ring, index):
            space.checked(np.asarray(rows)[: rewards.size], "observation", *at)


def _due(config: Config, period: int, step: int) -> int:
    """How often something was due up to a step: multiples of a period once learning began."""
    return max(0, step // period - config.learns_after // period)


@jax.jit
def _seen(ring: Transition, index: Any) -> tuple[jax.Array, jax.Array]:
    return ring.observation[index], ring.next_observation[index]


@jax.jit
def _fetched(ring: Transition, slots: jax.Array) -> Transition:
    return jax.tree.map(lambda leaf: leaf[slots], ring)


def _without_ring(state: FusedState) -> tuple[Any, Any, Any]:
    return state.learner, state.environments, state.observation
