"""Runs from their beginning or their newest checkpoint to their end, whatever loop they are in."""

import logging
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from momentum_rl.agents.agent import AGENT_FILE, BEST_FILE, Agent, encoded, load
from momentum_rl.errors import Interrupted, Unwritable, UserError
from momentum_rl.plumbing.signals import Stop
from momentum_rl.runs.files import EVALUATION, Status
from momentum_rl.training.build import Built, Loop
from momentum_rl.training.checkpoint import KEPT, Checkpoints, Saved, newest
from momentum_rl.training.evaluation import Evaluation, evaluate_config
from momentum_rl.training.kept import Best, Copies, best_in
from momentum_rl.training.loop import Result, Watcher
from momentum_rl.training.metrics import Warnings
from momentum_rl.training.run_directory import RunDirectory, is_grouped, result_of

log = logging.getLogger("movi")


def drive(
    built: Built, directories: Sequence[RunDirectory], watcher: Watcher, stop: Stop
) -> list[Result]:
    """Trains to the end; the results in the seeds' order.

    There is a directory for each seed, or none. ``stop`` is asked often; a signal's number makes
    the runs stop with a checkpoint and ``Interrupted``.
    """
    loop, config = built.loop, built.configs[0]
    runs = [
        _Run(built, i, directories[i] if directories else None, watcher, stop)
        for i in range(len(built.configs))
    ]
    _begin(runs, loop, directories, watcher)
    with _status_on_error(runs, directories, loop):
        checkpointer = Checkpointer(
            directories, config.checkpoint_every, stop, config.num_envs, loop.headroom
        )
        checkpointer.begin(loop.step)

        def on_saveable(loop: Loop) -> None:
            last = loop.step == config.steps
            checkpointer.check(loop.step, last, lambda: [run.content() for run in runs])

        def steps_left(loop: Loop) -> int:
            return checkpointer.steps_left(loop.step)

        while going := [run for run in runs if run.result is None]:
            done = max(len(run.rows) for run in going)
            until = min(config.steps, (done + 1) * config.iteration_steps)
            while loop.step < until and not all(loop.diverged(i) for i in range(len(runs))):
                for run in runs:
                    run.copy()
                due = runs[0].copies.next(loop.step) if config.average else until
                loop.advance(min(due, until), watcher.progress, on_saveable, steps_left)
            for run in runs:
                run.copy()
            for run in going:
                run.end_iteration(until)
        results = [run.result for run in runs if run.result is not None]
        diverged = [result.status == "diverged" for result in results]
        for directory, one in zip(directories, diverged):
            unused = one and (all(diverged) or not is_grouped(directory.path))
            if unused or not Checkpoints(directory.path).steps():
                shutil.rmtree(directory.replay, ignore_errors=True)
        return results


def _begin(
    runs: Sequence["_Run"], loop: Loop, directories: Sequence[RunDirectory], watcher: Watcher
) -> None:
    """From the newest checkpoint that all have, or from the beginning."""
    notices: list[str] = []

    def restore(saved: list[Saved]) -> None:
        loop.restore(saved)
        notices[:] = [run.restore(one) for run, one in zip(runs, saved)]

    if directories and runs[0].config.checkpoint_every:
        checkpoints = [Checkpoints(directory.path) for directory in directories]
        if newest(checkpoints, restore) is not None:
            watcher.announce(f"goes on from the checkpoint of step {loop.step:,}")
            for notice in dict.fromkeys(filter(None, notices)):
                watcher.announce(notice)
            return
    loop.begin()
    for directory in directories:
        directory.begin()


class _Run:
    """One seed's run: its rows, its files and its end."""

    def __init__(
        self,
        built: Built,
        i: int,
        directory: RunDirectory | None,
        watcher: Watcher,
        stop: Stop,
    ) -> None:
        self.config = built.configs[i]
        self._built, self._loop, self._i = built, built.loop, i
        self._directory, self._watcher, self._stop = directory, watcher, stop
        self.rows: list[dict[str, Any]] = []
        self.copies = Copies(self.config.average, self.config.average_every)
        self._best = Best()
        self._saved = 0  # the step at which the agent was written last
        self._valued = built.what.method.values_are_returns
        self._warnings = Warnings(self.config, self._valued)
        self.result: Result | None = None

    def content(self) -> Saved:
        """What a checkpoint holds of the run."""
        arrays, state = self._loop.snapshot(self._i)
        more = {"saved": self._saved, "has_ended": self.result is not None}
        saved = self.copies.saved_with(Saved(arrays, {**state, **more}))
        return self._best.saved_with(saved)

    def restore(self, saved: Saved) -> str:
        """Goes on from a checkpoint that the loop has restored; a notice, or ""."""
        assert self._directory is not None
        self._saved, self.result = int(saved.state["saved"]), None
        agent = self._built.agent(self._i, 0)
        self.copies = self.copies.restored(saved, agent)
        if saved.state["has_ended"]:
            self.result = result_of(self._directory.path, agent.networks)
            return ""
        content = best_in(saved)
        notice = self._directory.begin(self._loop.step, saved.state["written"], content)
        self.rows = list(self._directory.rows)
        for row in self.rows:
            self._warnings.after(row)
        means = (row.mean for row in self._directory.evaluations)
        score = max((mean for mean in means if mean is not None), default=Best.score)
        best = None if content is None else load(self._directory.path / BEST_FILE, agent.networks)
        self._best = Best(score, best, content)
        return notice

    def copy(self) -> None:
        """Keeps a copy of the network that acts, if one is due."""
        step = self._loop.step
        if self.config.average and self.copies.is_due(step):
            self.copies = self.copies.with_one_of(self._built.agent(self._i, step), step)

    def end_iteration(self, until: int) -> None:
        """Writes a row of metrics, and does what is due at the end of an iteration."""
        row = self._loop.row(self._i, until, len(self.rows))
        step = int(row["step"])
        played = self._evaluate_on_the_way(step) if self.config.evaluates_at(step) else None
        if played is not None and self._valued:
            row["bias"] = played.bias
        self.rows.append(row)
        self._watcher.row(row)
        for notice in self._warnings.after(row):
            seed = f"seed {self.config.seed}: " if len(self._built.configs) > 1 else ""
            log.warning("movi: warning: %s%s", seed, notice)
        if self._directory is not None:
            self._directory.row(row)
            if step - self._saved >= self.config.save_every:
                self._directory.write(AGENT_FILE, encoded(self._built.agent(self._i, step)))
                self._saved = step
        if self._loop.diverged(self._i) or until == self.config.steps:
            self._end(step)

    def _evaluate_on_the_way(self, step: int) -> Evaluation:
        """Evaluates the agent, and keeps it if it is the best so far."""
        agent = self._built.agent(self._i, step)
        played = self._evaluation(agent, step)
        self._watcher.evaluated(step, played)
        before, self._best = self._best, self._best.after(agent, played)
        if self._directory is not None:
            self._directory.evaluation(step, played)
            if self._best is not before and self._best.content is not None:
                self._directory.write(BEST_FILE, self._best.content)
        return played

    def _end(self, step: int) -> None:
        """Saves and evaluates the agent, and writes how the run ended."""
        directory, diverged = self._directory, self._loop.diverged(self._i)
        agent = self._built.agent(self._i, step)
        if directory is not None:
            directory.write(AGENT_FILE, encoded(agent))
        evaluation = None
        if self.config.final_episodes and self._built.make_environment is not None:
            evaluation = self._evaluation(agent)
            if directory is not None:
                directory.write_json(EVALUATION, evaluation.to_json())
        status: Status = "diverged" if diverged else "finished"
        at = diverged or step
        if directory is not None:
            directory.status(status, at, f"diverged at step {diverged}" if diverged else "")
        self.result = Result(status, at, agent, self.rows, evaluation, self._loop, self._best.agent)

    def _evaluation(self, agent: Agent, at: int | None = None) -> Evaluation:
        """Of the agent, and of the mean of its copies."""
        assert self._built.make_environment is not None
        play = partial(
            evaluate_config,
            config=self.config,
            make_environment=self._built.make_environment,
            stop=self._stop,
            at=at,
        )
        played = play(agent, values_are_returns=self._valued)
        others = self.copies.players(agent)
        return played._replace(average={name: play(other) for name, other in others.items()})


class Checkpointer:
    """Makes the checkpoints of runs that are in one loop (one, or one per seed).

    One is due every so many agent steps; at the end of the run; when somebody asks to stop; and
    before the replay would overwrite what the older of the last two checkpoints needs.
    """

    def __init__(
        self,
        directories: Sequence[RunDirectory],
        every: int,
        stop: Stop,
        margin: int,
        headroom: Callable[[Mapping[str, Any]], int],
    ) -> None:
        """One ``every`` so many agent steps, 0 for none; ``margin`` may pass between two checks.

        ``headroom`` gives the steps until the replay's files overwrite what a snapshot of theirs
        refers to.
        """
        self._directories = directories
        self._checkpoints = [Checkpoints(directory.path) for directory in directories if every]
        self._every, self._stop = every, stop
        self._margin, self._headroom = margin, headroom
        self._replays: list[Mapping[str, Any]] = []  # their snapshots in the last checkpoints
        self.step = 0

    def begin(self, step: int) -> None:
        """Starts at this step, and notes what the checkpoints on disk need of the replay."""
        self.step = step
        for old in self._checkpoints[0].steps() if self._checkpoints else ():
            with suppress(Exception):  # one that makes no sense needs nothing
                replay = self._checkpoints[0].read(old).state["replay"]
                self._headroom(replay)
                self._replays.append(replay)

    def steps_left(self, step: int) -> int:
        """Agent steps until the next checkpoint is due."""
        if not self._checkpoints:
            return sys.maxsize
        return min([self.step + self._every - step, *map(self._headroom, self._replays[-KEPT:])])

    def check(self, step: int, last: bool, content: Callable[[], Sequence[Saved]]) -> None:
        """Makes a checkpoint if one is due; raises ``Interrupted`` if somebody asks to stop.

        The loop can be saved at this step, which may be its last.
        """
        signal = self._stop()
        due = last or signal is not None or self.steps_left(step) < self._margin
        if due and self._checkpoints and step > self.step:
            self.save(step, content())
        if signal is not None:
            raise Interrupted(f"interrupted at step {step:,}", signal)

    def save(self, step: int, contents: Sequence[Saved]) -> None:
        """Makes a checkpoint of every run."""
        for directory, checkpoints, saved in zip(self._directories, self._checkpoints, contents):
            state = {**saved.state, "written": directory.written()}
            checkpoints.write(step, Saved(saved.arrays, state))
        self.step = step
        self._replays = [*self._replays, contents[0].state["replay"]][-KEPT:]


@contextmanager
def _status_on_error(
    runs: Sequence[_Run], directories: Sequence[RunDirectory], loop: Loop
) -> Iterator[None]:
    """Writes what stops runs into their status; the error's line then says how to resume them."""
    try:
        yield
    except BaseException as error:
        going = [one for one, run in zip(directories, runs) if run.result is None]
        stopped = isinstance(error, KeyboardInterrupt | Interrupted)
        for directory in going:
            with suppress(UserError):  # a full disk: the status stays "running"
                if stopped:
                    directory.status("interrupted", loop.step, f"interrupted at step {loop.step}")
                else:
                    directory.status("failed", loop.step, repr(error))
        if going and isinstance(error, Interrupted | Unwritable):
            line = f"{error}; {_how_to_resume(directories)}"
            if isinstance(error, Interrupted):
                raise Interrupted(line, error.signal) from None
            raise Unwritable(line) from None
        raise


def _how_to_resume(directories: Sequence[RunDirectory]) -> str:
    paths = [directory.path for directory in directories]
    where = paths[0].parent if len(paths) > 1 else paths[0]
    steps = set.intersection(*(set(Checkpoints(path).steps()) for path in paths))
    since = f"from its checkpoint of step {max(steps):,}" if steps else "from the beginning"
    return f"`movi resume {where}` goes on {since}"
