"""Runs from their beginning or their newest checkpoint to their end, whatever loop they are in."""

import logging
import shutil
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from typing import Any, NamedTuple

from momentum_rl.agents.agent import Agent
from momentum_rl.envs.interface import Environment
from momentum_rl.errors import Interrupted
from momentum_rl.runs.config import Config
from momentum_rl.runs.files import EVALUATION, Status
from momentum_rl.training.averages import Copies
from momentum_rl.training.best import Best, content_of, restored
from momentum_rl.training.checkpoint import Checkpoints, Saved, newest
from momentum_rl.training.checkpointing import Checkpointer, status_on_error
from momentum_rl.training.evaluation import Discounted, Evaluation, evaluate
from momentum_rl.training.health import Warnings
from momentum_rl.training.loop import Loop, Result, Watcher
from momentum_rl.training.resume import is_grouped, result_of
from momentum_rl.training.run_directory import RunDirectory
from momentum_rl.training.stopping import Stop, never

log = logging.getLogger("movi")


class Built(NamedTuple):
    """Everything that a run of some seeds needs."""

    configs: Sequence[Config]
    """The config of each seed's run."""
    loop: Loop
    """The loop of all of them."""
    agent: Callable[[int, int], Agent]
    """``agent(i, step)``, the agent of a seed at a step."""
    make_environment: Callable[[int], Environment] | None
    """Makes n environments, for evaluations; None for none."""
    fingerprint: str
    """The learner's fingerprint."""
    values_are_returns: bool = False
    """Whether the agents' values estimate discounted returns."""


def drive(
    built: Built, directories: Sequence[RunDirectory], watcher: Watcher, stop: Stop
) -> list[Result]:
    """Trains to the end; the results in the seeds' order.

    Args:
      built: what to train.
      directories: one for each seed, or none.
      watcher: hears of the runs.
      stop: asked often; a signal's number makes them stop with a checkpoint and ``Interrupted``.
    """
    runs = _Runs(built, directories, watcher, stop)
    runs.begin()
    with status_on_error(directories, lambda: built.loop.step, runs.results.__contains__):
        return runs.finish()


class _Runs:
    """The seeds' rows, files and ends."""

    def __init__(
        self, built: Built, directories: Sequence[RunDirectory], watcher: Watcher, stop: Stop
    ) -> None:
        self._built, self._configs, self._loop = built, built.configs, built.loop
        self._directories, self._watcher, self._stop = directories, watcher, stop
        self._rows: list[list[dict[str, Any]]] = [[] for _ in built.configs]
        self._saved = [0] * len(built.configs)  # the step at which each agent was written last
        self._best = [Best() for _ in built.configs]
        self._copies = [Copies.of(config) for config in built.configs]
        self._warnings = [Warnings(config, built.values_are_returns) for config in built.configs]
        self.results: dict[int, Result] = {}

    def begin(self) -> None:
        """From the newest checkpoint that all have, or from the beginning."""
        notices: list[str] = []

        def restore(saved: list[Saved]) -> None:
            notices.clear()
            self._loop.restore(saved)
            for i, own in enumerate(saved):
                self._saved[i] = int(own.state["saved"])
                agent = self._built.agent(i, 0)
                networks = agent.networks
                self._copies[i] = self._copies[i].restored(own, agent)
                if own.state.get("has_ended", False):
                    self.results[i] = Result(**result_of(self._directories[i].path, networks))
                    continue
                directory, best = self._directories[i], content_of(own)
                notices.append(directory.begin(self._loop.step, own.state["written"], best))
                self._rows[i] = list(directory.rows)
                for row in self._rows[i]:
                    self._warnings[i].after(row)
                self._best[i] = restored(directory, best, networks)

        if self._directories and self._configs[0].checkpoint_every:
            checkpoints = [Checkpoints(directory.path) for directory in self._directories]
            if newest(checkpoints, restore) is not None:
                step = self._loop.step
                self._watcher.announce(f"goes on from the checkpoint of step {step:,}")
                for notice in dict.fromkeys(filter(None, notices)):
                    self._watcher.announce(notice)
                return
        self._loop.begin()
        for directory in self._directories:
            directory.begin()

    def finish(self) -> list[Result]:
        """Trains to the end."""
        config, loop = self._configs[0], self._loop
        checkpointer = Checkpointer(
            self._directories,
            config.checkpoint_every,
            self._stop,
            margin=config.num_envs,
            headroom=loop.headroom,
        )
        checkpointer.begin(loop.step)

        def on_saveable(loop: Loop) -> None:
            checkpointer.check(loop.step, loop.step == config.steps, self._content)

        def steps_left(loop: Loop) -> int:
            return checkpointer.steps_left(loop.step)

        while len(self.results) < len(self._configs):
            done = max(len(rows) for i, rows in enumerate(self._rows) if i not in self.results)
            until = min(config.steps, (done + 1) * config.iteration_steps)
            while loop.step < until and not self._all_diverged():
                self._copy()
                due = self._copies[0].next(loop.step) if config.average else until
                loop.advance(min(due, until), self._watcher.progress, on_saveable, steps_left)
            self._copy()
            for i in range(len(self._configs)):
                if i not in self.results:
                    self._end_iteration(i, until)
        results = [self.results[i] for i in range(len(self._configs))]
        final = [result.status == "diverged" for result in results]
        for i, directory in enumerate(self._directories):
            unused = final[i] and (all(final) or not is_grouped(directory.path))
            if unused or not Checkpoints(directory.path).steps():
                shutil.rmtree(directory.replay, ignore_errors=True)
        return results

    def _content(self) -> list[Saved]:
        contents = []
        for i in range(len(self._configs)):
            arrays, state = self._loop.snapshot(i)
            more = {"saved": self._saved[i], "has_ended": i in self.results}
            saved = self._copies[i].saved_with(Saved(arrays, {**state, **more}))
            contents.append(self._best[i].saved_with(saved))
        return contents

    def _all_diverged(self) -> bool:
        return all(self._loop.diverged(i) for i in range(len(self._configs)))

    def _copy(self) -> None:
        """Keeps copies of the networks that act, if they are due."""
        step = self._loop.step
        for i, copies in enumerate(self._copies):
            if copies.is_due(step):
                self._copies[i] = copies.with_one_of(self._built.agent(i, step), step)

    def _end_iteration(self, i: int, until: int) -> None:
        """Writes a seed's row of metrics, and does what is due at the end of an iteration."""
        config = self._configs[i]
        row = self._loop.row(i, until, len(self._rows[i]))
        step = int(row["step"])
        played = self._evaluate_on_the_way(i, step) if config.evaluates_at(step) else None
        if played is not None and self._built.values_are_returns:
            row["bias"] = played.bias
        self._rows[i].append(row)
        self._watcher.row(row)
        for notice in self._warnings[i].after(row):
            seed = f"seed {config.seed}: " if len(self._configs) > 1 else ""
            log.warning("movi: warning: %s%s", seed, notice)
        if self._directories:
            self._directories[i].row(row)
            if step - self._saved[i] >= config.save_every:
                self._directories[i].save(self._built.agent(i, step))
                self._saved[i] = step
        if self._loop.diverged(i) or until == config.steps:
            self._end(i, step)

    def _evaluate_on_the_way(self, i: int, step: int) -> Evaluation:
        """Evaluates a seed's agent, and keeps it if it is the best so far."""
        agent = self._built.agent(i, step)
        played = self._evaluation(i, agent, step)
        self._watcher.evaluated(step, played)
        before, self._best[i] = self._best[i], self._best[i].after(agent, played)
        if self._directories:
            self._directories[i].evaluation(step, played)
            if self._best[i] is not before and (content := self._best[i].content) is not None:
                self._directories[i].save_best(content)
        return played

    def _end(self, i: int, step: int) -> None:
        """Saves and evaluates a seed's agent, and writes how its run ended."""
        directory = self._directories[i] if self._directories else None
        agent, diverged = self._built.agent(i, step), self._loop.diverged(i)
        if directory is not None:
            directory.save(agent)
        evaluation = None
        if self._configs[i].final_episodes and self._built.make_environment is not None:
            evaluation = self._evaluation(i, agent)
            if directory is not None:
                directory.write_json(EVALUATION, evaluation.to_json())
        status: Status = "diverged" if diverged else "finished"
        if directory is not None:
            message = f"diverged at step {diverged}" if diverged else ""
            directory.status(status, diverged or step, message)
        self.results[i] = Result(
            status,
            diverged or step,
            agent,
            self._rows[i],
            evaluation,
            self._loop,
            self._best[i].agent,
        )

    def _evaluation(self, i: int, agent: Agent, at: int | None = None) -> Evaluation:
        assert self._built.make_environment is not None
        play = partial(
            evaluate_config,
            config=self._configs[i],
            make_environment=self._built.make_environment,
            stop=self._stop,
            at=at,
        )
        played = play(agent, values_are_returns=self._built.values_are_returns)
        others = self._copies[i].players(agent)
        return played._replace(average={name: play(other) for name, other in others.items()})


def evaluate_config(
    agent: Agent,
    config: Config,
    make_environment: Callable[[int], Environment],
    stop: Stop = never,
    at: int | None = None,
    *,
    values_are_returns: bool = False,
) -> Evaluation:
    """The evaluation at the end of a run, or during it, at a step; the bias if it means one."""
    episodes = config.final_episodes if at is None else config.periodic_episodes

    def look(done: int) -> None:
        if (signal := stop()) is not None and done < episodes:
            raise Interrupted("interrupted in the evaluation", signal)

    with closing(make_environment(min(episodes, 10 if at is None else 20))) as environment:
        return evaluate(
            agent,
            environment,
            episodes,
            epsilon=config.evaluation_epsilon,
            seed=config.seed,
            at=at,
            discounted=Discounted(config.gamma, config.reward_clip) if values_are_returns else None,
            on_step=look,
        )
