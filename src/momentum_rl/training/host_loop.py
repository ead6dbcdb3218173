"""The host loop: environments and replay in NumPy, the learner in compiled calls.

The order within an agent step k and its gates are Dopamine's (and Algorithm 1's):

    store the transition; update if due; synchronise if due; act

    update due:       k > config.learns_after and k mod F = 0
    synchronise due:  k > config.learns_after and k mod C = 0

k counts the transitions of all environments: a *vector step*, one step of all n of them, is n agent
steps, gone through one after the other. So updates and synchronisations per agent step are the same
whatever n is.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from momentum_rl.agents.exploration import epsilon_greedy, exploring, limits, words_of
from momentum_rl.agents.learner import Learner
from momentum_rl.envs.interface import Environment, Outcome, check_rewards, is_restorable
from momentum_rl.replay.interface import Replay, can_be_checkpointed
from momentum_rl.runs.config import Config
from momentum_rl.training.checkpoint import Saved
from momentum_rl.training.draws import ACTING, SAMPLING, Draws, env_seeds, key_of
from momentum_rl.training.health import Inspection
from momentum_rl.training.host_learner import HostLearner
from momentum_rl.training.loop import CHUNK
from momentum_rl.training.scores import Scores, metrics_row
from momentum_rl.transitions import Transition

CHECK_PERIOD = 1_000  # agent steps between two looks at whether the values are still finite


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
        self._minibatches = learner.minibatches
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
        """See ``Loop``: vector step by vector step, each of which can be saved when it is over."""
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

    def diverged(self, i: int = 0) -> int | None:
        """The step at which the run diverged, if it did."""
        return self.learner.diverged_at()

    def row(self, i: int, until: int, iteration: int) -> dict[str, Any]:
        """The metrics since the last row."""
        counts = {"updates": self.updates, "syncs": self.syncs, "stored": len(self.replay)}
        means, health, seed = self.learner.take_means(), {}, self.config.seed
        if not self._waiting and not self.learner.diverged_at():
            health = self._inspection.row(seed, self.learner.state, self.replay.sample, self.step)
        return metrics_row(self.config, iteration, self.step, self.scores, means, health, counts)

    def parameters(self, i: int = 0) -> dict[str, Any]:
        """A copy of the online networks' parameters."""
        return self.learner.parameters()

    def headroom(self, snapshot: Mapping[str, Any]) -> int:
        """Agent steps until the replay's files overwrite what a snapshot of theirs refers to."""
        assert can_be_checkpointed(self.replay)
        return self.replay.headroom(snapshot)

    def snapshot(self, i: int = 0) -> Saved:
        """All that ``restore`` needs; between two vector steps only."""
        assert is_restorable(self.environment)
        assert can_be_checkpointed(self.replay)
        environment = self.environment.snapshot()
        arrays = {
            **self.learner.snapshot(),
            **{f"environment.{name}": array for name, array in environment.items()},
        }
        counters = {name: getattr(self, own) for name, own in _COUNTERS.items()}
        scores, replay = self.scores.snapshot(), self.replay.snapshot()
        return Saved(arrays, {**counters, "scores": scores, "replay": replay})

    def restore(self, saved: Sequence[Saved]) -> None:
        """Continues from a snapshot, exactly as if it had never stopped."""
        ((arrays, state),) = saved
        assert is_restorable(self.environment)
        self.replay = self._make_replay(state["replay"])
        assert can_be_checkpointed(self.replay)
        self.replay.restore(state["replay"])
        m = self._minibatches, self.config.batch_size
        self.learner.restore(arrays, self.environment.spaces, m)
        prefix = "environment."
        self._observation = self.environment.restore(
            {name.removeprefix(prefix): a for name, a in arrays.items() if name.startswith(prefix)}
        )
        self.scores.restore(state["scores"])
        for name, own in _COUNTERS.items():
            setattr(self, own, int(state[name]))
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
        self._waiting = np.flatnonzero(outcome.valid)[::-1].tolist()
        self.vector_steps += 1

    def _act(self) -> np.ndarray:
        """The policy's actions, or random ones where the environments explore."""
        words, spaces = self._acting(self.vector_steps), self.environment.spaces
        exploration = exploring(words, limits(float(self._epsilon(self.step))), spaces)
        if exploration.where.all():
            self.learner.start()  # no action waits for this update: it runs beside the environments
        return epsilon_greedy(
            exploration, lambda: self.learner.act(self._observation, self.vector_steps)
        )

    def _transition(self, i: int) -> None:
        """One agent step, with the transition of environment i."""
        outcome, config = self._outcome, self.config
        assert outcome is not None
        self.step += 1
        ended = self.scores.add(outcome, i)
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
