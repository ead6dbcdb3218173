"""The host loop: environments and replay in NumPy, the learner in compiled calls.

The order within an agent step k and its gates are Dopamine's (and Algorithm 1's):

    store the transition; update if due; synchronise if due; act

    update due:       k > config.learns_after and k mod F = 0
    synchronise due:  k > config.learns_after and k mod C = 0

k counts the transitions of all environments: a *vector step*, one step of all n of them, is n agent
steps, gone through one after the other. So updates and synchronisations per agent step are the same
whatever n is.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from momentum_rl.agents.learner import Learner, LearnerState
from momentum_rl.plumbing.compilation import library_takes, shared
from momentum_rl.plumbing.trees import arrays_of, tree_of
from momentum_rl.runs.config import Config
from momentum_rl.spaces import (
    Environment,
    Outcome,
    Replay,
    Transition,
    check_rewards,
    is_restorable,
)
from momentum_rl.training.loop import (
    ACTING,
    CHECK_PERIOD,
    CHUNK,
    INITIALISATION,
    LEARNING,
    POLICY,
    SAMPLING,
    Draws,
    Inspection,
    Scores,
    env_seeds,
    epsilon_greedy,
    exploring,
    key_of,
    limits,
    metrics_row,
    words_of,
)
from momentum_rl.training.run_directory import Saved

_COUNTERS = {"step": "step", "ticks": "vector_steps", "updates": "updates", "syncs": "syncs"}
"""The counters, by their names in a checkpoint."""


class HostLoop:
    """A run in progress; ``advance`` continues it."""

    def __init__(
        self,
        config: Config,
        environment: Environment,
        learner: Learner,
        make_replay: Callable[[Mapping[str, Any] | None], Replay],
    ) -> None:
        """Resets the environments and initialises the learner, by the config's seed.

        ``make_replay(snapshot)`` opens the files of a replay with this snapshot; with None it makes
        a new one.
        """
        self.config, self.environment, self._make_replay = config, environment, make_replay
        self.learner = HostLearner(learner, config.seed)
        self.scores = Scores(environment.num_envs)
        self.step = self.vector_steps = self.updates = self.syncs = 0
        self._inspection = Inspection(config, learner)
        self._epsilon = config.epsilon_schedule
        self._acting = Draws(
            key_of(config.seed, ACTING), (environment.num_envs, words_of(environment.spaces))
        )
        self._sampling = Draws(
            key_of(config.seed, SAMPLING), (learner.minibatches, config.batch_size)
        )
        self._observation = environment.reset(env_seeds(config.seed, environment.num_envs))
        environment.spaces.observation.checked(self._observation, "observation", config.env)
        self._waiting: list[int] = []  # environments whose last transition is yet to be processed
        self._outcome: Outcome | None = None
        self._before = self._observation
        self._actions = np.zeros(environment.num_envs, np.int64)

    def begin(self) -> None:
        """Starts with an empty replay."""
        self.replay = self._make_replay(None)

    def advance(
        self,
        until: int,
        on_progress: Callable[["HostLoop"], None] = lambda loop: None,
        on_saveable: Callable[["HostLoop"], None] = lambda loop: None,
        steps_left: Callable[["HostLoop"], int] = lambda loop: CHUNK,
    ) -> None:
        """Continues until agent step ``until``, or until the run has diverged.

        ``on_progress`` is called after every vector step and ``on_saveable`` between two of them,
        whenever ``snapshot`` can be called: no ``steps_left`` is asked for.
        """
        del steps_left
        while self.step < until:
            if not self._waiting:
                on_saveable(self)
                self._step_environments()
                on_progress(self)
            self._transition(self._waiting.pop())
            if self.step % CHECK_PERIOD == 0 and self.learner.diverged_at():
                return
        if not self._waiting:
            on_saveable(self)

    def diverged(self) -> int | None:
        """The step at which the run diverged, if it did."""
        return self.learner.diverged_at()

    def row(self, until: int, iteration: int) -> dict[str, Any]:
        """The metrics since the last row; what is in them is said in ``training.loop``."""
        counts = {"updates": self.updates, "syncs": self.syncs, "stored": len(self.replay)}
        means, health = self.learner.take_means(), {}
        if not self._waiting and not self.learner.diverged_at():
            health = self._inspection.row(self.learner.state, self.replay.sample, self.step)
        return metrics_row(self.config, iteration, self.step, self.scores, means, health, counts)

    def parameters(self) -> dict[str, Any]:
        """A copy of the online networks' parameters."""
        return self.learner.parameters()

    def headroom(self, snapshot: Mapping[str, Any]) -> int:
        """Agent steps until the replay's files overwrite what a snapshot of theirs refers to."""
        return self.replay.headroom(snapshot)

    def snapshot(self) -> Saved:
        """All that ``restore`` needs; between two vector steps only."""
        assert is_restorable(self.environment)
        environment = self.environment.snapshot()
        arrays = {
            **self.learner.snapshot(),
            **{f"environment.{name}": array for name, array in environment.items()},
        }
        counters = {name: getattr(self, field) for name, field in _COUNTERS.items()}
        scores, replay = self.scores.snapshot(), self.replay.snapshot()
        return Saved(arrays, {**counters, "scores": scores, "replay": replay})

    def restore(self, saved: Saved) -> None:
        """Continues from a snapshot, exactly as if it had never stopped."""
        arrays, state = saved
        assert is_restorable(self.environment)
        self.replay = self._make_replay(state["replay"])
        self.replay.restore(state["replay"])
        self.learner.restore(arrays)
        prefix = "environment."
        self._observation = self.environment.restore(
            {name.removeprefix(prefix): a for name, a in arrays.items() if name.startswith(prefix)}
        )
        self.scores.restore(state["scores"])
        for name, field in _COUNTERS.items():
            setattr(self, field, int(state[name]))
        self._waiting = []

    def _step_environments(self) -> None:
        """One vector step: acts in every environment."""
        self._before = self._observation
        self._actions = self._act()
        self._outcome = outcome = self.environment.step(self._actions)
        space, at = self.environment.spaces.observation, (self.config.env, self.step + 1)
        check_rewards(outcome.reward, self.config.reward_clip, *at)
        space.checked(outcome.next_observation, "observation", *at)
        if outcome.observation is not outcome.next_observation:
            space.checked(outcome.observation, "observation", *at)
        self._observation = outcome.observation
        self._waiting = list(reversed(range(self.environment.num_envs)))
        self.vector_steps += 1

    def _act(self) -> np.ndarray:
        """The policy's actions, or random ones where the environments explore."""
        words, spaces = self._acting(self.vector_steps), self.environment.spaces
        exploration = exploring(words, limits(float(self._epsilon(self.step))), spaces)
        return epsilon_greedy(
            exploration, lambda: self.learner.act(self._observation, self.vector_steps)
        )

    def _transition(self, i: int) -> None:
        """One agent step, with the transition of environment i."""
        outcome, config = self._outcome, self.config
        assert outcome is not None
        self.step += 1
        ended = bool(outcome.terminated[i] or outcome.truncated[i])
        self.scores.count(i, float(outcome.reward[i]), ended)
        terminal = outcome.terminated[i] or (config.timeouts_are_terminal and outcome.truncated[i])
        self.replay.add(
            i,
            Transition(
                observation=self._before[i],
                action=self._actions[i],
                reward=outcome.reward[i],
                discount=0.0 if terminal else config.gamma,
                next_observation=outcome.next_observation[i],
            ),
            ended,
        )
        learning = self.step > config.learns_after
        if learning and self.step % config.update_period == 0:
            batches = self.replay.sample(self._sampling(self.updates))
            self.learner.update(batches, self.step)
            self.updates += 1
        if learning and self.step % config.sync_period == 0:
            self.learner.sync()
            self.syncs += 1


# The learner -------------------------------------------------------------------------------------


class _Carry(NamedTuple):
    state: LearnerState
    means: dict[str, jax.Array]
    updates: jax.Array


class _Keys(NamedTuple):
    learning: jax.Array
    policy: jax.Array


class _Compiled(NamedTuple):
    init: Callable[..., LearnerState]
    update: Callable[..., _Carry]
    sync: Callable[[LearnerState], LearnerState]
    act: Callable[..., jax.Array]


@shared
def _compiled(learner: Learner) -> _Compiled:
    """What the host loop calls, compiled; the carry's buffers are taken over."""

    def update(carry: _Carry, keys: _Keys, batches: Transition, step: jax.Array) -> _Carry:
        before = carry.state.diverged_at
        key = jax.random.fold_in(keys.learning, step)
        state, metrics = learner.update(carry.state, batches, step, key)
        live = (before == 0) & (state.diverged_at == 0)
        updates = carry.updates + live
        weight = live / jnp.maximum(updates, 1)
        means = {
            name: jnp.where(live, mean + (metrics[name] - mean) * weight, mean)
            for name, mean in carry.means.items()
        }
        return _Carry(state, means, updates)

    def act(state: LearnerState, keys: _Keys, observation: Any, number: Any) -> jax.Array:
        return learner.act(state, observation, jax.random.fold_in(keys.policy, number))

    options = library_takes("products")
    return _Compiled(
        init=jax.jit(learner.init),
        update=jax.jit(update, donate_argnums=0, compiler_options=options),
        sync=jax.jit(learner.sync, donate_argnums=0),
        act=jax.jit(act, compiler_options=options),
    )


class HostLearner:
    """Holds the state; ``update``, ``sync`` and ``act`` are a compiled call each.

    A call returns at once, and what it computes runs beside the environments until ``act`` or a
    look at the numbers needs it.
    """

    def __init__(self, learner: Learner, seed: int) -> None:
        self._run = _compiled(learner)
        self._keys = _Keys(key_of(seed, LEARNING), key_of(seed, POLICY))
        state = self._run.init(key_of(seed, INITIALISATION))
        means = {name: jnp.float32(0) for name in learner.metrics}
        self._carry = _Carry(state, means, jnp.int32(0))

    @property
    def state(self) -> LearnerState:
        """The state, after all calls so far; valid until the next one."""
        return self._carry.state

    def update(self, batches: Transition, step: int) -> None:
        """One update of every network."""
        self._carry = self._run.update(self._carry, self._keys, batches, np.int32(step))

    def sync(self) -> None:
        """Synchronises the lagged networks."""
        self._carry = self._carry._replace(state=self._run.sync(self._carry.state))

    def act(self, observation: np.ndarray, vector_step: int) -> np.ndarray:
        """The policy's actions at the vector step of this number."""
        number = np.int32(vector_step)
        return np.asarray(self._run.act(self._carry.state, self._keys, observation, number))

    def take_means(self) -> dict[str, float | None]:
        """The mean of each metric over the updates since the last call; None without any."""
        count = int(self._carry.updates)
        means = {name: float(mean) if count else None for name, mean in self._carry.means.items()}
        self._carry = self._carry._replace(
            means={name: jnp.float32(0) for name in means}, updates=jnp.int32(0)
        )
        return means

    def diverged_at(self) -> int | None:
        """The step of the first update that was not finite, or None."""
        return int(self.state.diverged_at) or None

    def parameters(self) -> dict[str, Any]:
        """A copy of the online networks' parameters."""
        return jax.tree.map(lambda leaf: np.array(leaf), self.state.online)

    def snapshot(self) -> dict[str, np.ndarray]:
        """All that ``restore`` needs."""
        return arrays_of(self._carry, "learner")

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Continues from a snapshot."""
        self._carry = tree_of(self._carry, arrays, "learner")
