"""Train an agent, or go on training it: what ``momentum_rl.train`` and all commands call.

A run goes from its beginning or its newest checkpoint to its end, whatever loop it is in. The host
loop steps environments on the host; the fused loop runs in compiled chunks. Of both are used
``step`` and ``updates``; ``begin`` or ``restore``, then ``advance``; and ``row``, ``diverged``,
``parameters``, ``snapshot`` and ``headroom``.
"""

import logging
import shutil
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import flax.linen as nn
import optax

from momentum_rl.agents.agent import AGENT_FILE, BEST_FILE, Agent, encoded, load
from momentum_rl.core.options import Options
from momentum_rl.core.targets import Algorithm
from momentum_rl.envs.jax_env import JaxEnvironment
from momentum_rl.errors import Interrupted, Unwritable, UserError, door
from momentum_rl.plumbing.progress import Display, display
from momentum_rl.plumbing.signals import Stop, never
from momentum_rl.runs.config import Config
from momentum_rl.runs.files import EVALUATION, Status, holds_run
from momentum_rl.spaces import Environment
from momentum_rl.training.build import (
    Built,
    Loop,
    Overrides,
    built,
    configured_learner,
    known_config,
)
from momentum_rl.training.evaluation import Discounted, Evaluation, evaluate
from momentum_rl.training.kept import Best, Copies, best_in
from momentum_rl.training.loop import Warnings
from momentum_rl.training.run_directory import (
    Checkpointer,
    Result,
    RunDirectory,
    Saved,
    check_free,
    check_learner,
    continued,
    has_ended,
    newest,
    result_of,
)

log = logging.getLogger("movi")


class Watcher:
    """Hears of runs as they go; this one ignores it all."""

    def announce(self, line: str) -> None:
        """Before and during the run: something to know about it."""

    def progress(self, loop: Any) -> None:
        """After every vector step; in the fused loop, after every chunk. ``loop.step`` and
        ``loop.updates`` are the agent steps and the updates of the run so far."""

    def row(self, row: dict[str, Any]) -> None:
        """After every iteration."""


@door
def train(
    config: Config,
    out: str | Path | None = None,
    *,
    algorithm: Algorithm | type[Options] | None = None,
    environment: Environment | JaxEnvironment | None = None,
    make_environment: Callable[[int], Environment] | None = None,
    network: nn.Module | Mapping[str, nn.Module] | None = None,
    optimiser: optax.GradientTransformation | None = None,
    watcher: Watcher | None = None,
    stop: Stop = never,
    trust: Collection[str] = (),
) -> Result:
    """Trains an agent, or goes on training it.

    Args:
      config: the run's config.
      out: the run directory; None writes nothing. In a new or empty one a run begins. The same run
        goes on from its newest checkpoint, with more ``steps`` also after its end; of one that has
        ended the result is read from the files. A run of another config is refused.
      algorithm: your own, in place of the config's: an ``Algorithm``, under whose name the run is
        recorded; or a dataclass of its options, which the config names as you like.
      environment: your own, in place of the config's; closed at the end. A ``JaxEnvironment`` is
        trained on in the fused loop, as those that the config names are.
      make_environment: makes n environments, for the evaluation; the config's by default. With an
        environment of your own and without this there is none, but of a ``JaxEnvironment``.
      network: any flax module from observations to action values, in place of the config's; or one
        for each network of the algorithm, by name.
      optimiser: any optax transformation, in place of the config's.
      watcher: hears of the run as it goes. By default it is a progress bar, on a terminal or in a
        notebook; ``Watcher()`` is silent.
      stop: asked often; a signal's number makes the run stop with a checkpoint and an
        ``Interrupted``: see ``momentum_rl.plumbing.signals``.
      trust: modules that the config's ``env`` and ``algorithm`` may name (MODULE:NAME): importing
        one runs its code.
    """
    config = known_config(config, algorithm, trust)
    overrides = Overrides(environment, make_environment, network, optimiser, trust, algorithm)
    with watching(watcher, config) as hears:
        return _train(config, None if out is None else Path(out), overrides, hears, stop)


@door
def train_seeds(
    config: Config,
    seeds: Sequence[int],
    outs: Sequence[str | Path] | None = None,
    *,
    algorithm: Algorithm | type[Options] | None = None,
    environment: JaxEnvironment | None = None,
    network: nn.Module | Mapping[str, nn.Module] | None = None,
    optimiser: optax.GradientTransformation | None = None,
    watcher: Watcher | None = None,
    stop: Stop = never,
    trust: Collection[str] = (),
) -> list[Result]:
    """Trains one agent per seed, one after the other; each is that of its own single run.

    Several at once are a sweep: ``momentum_rl.sweeps.drive.run_sweep``.

    Args:
      config: the runs' config; its seed is replaced by each of ``seeds``.
      seeds: different seeds.
      outs: a run directory for each seed; None writes nothing. Runs that are there go on, as in
        ``train``.
      algorithm, network, optimiser, watcher, stop, trust: as in ``train``.
      environment: your own, in place of the config's.
    """
    if len(set(seeds)) != len(seeds) or not seeds:
        raise UserError(f"seeds: {list(seeds)}, expected at least one, all different")
    config = known_config(config, algorithm, trust)
    overrides = Overrides(environment, None, network, optimiser, trust, algorithm)
    paths = [None] * len(seeds) if outs is None else [Path(out) for out in outs]
    if len(paths) != len(seeds) or (outs is not None and len(set(paths)) < len(paths)):
        raise UserError(f"outs: {len(paths)} directories, expected a different one for each seed")
    runs = [(replace(config, seed=seed), path) for seed, path in zip(seeds, paths, strict=True)]
    for one, path in runs:  # all before the first is trained
        known_run(one, path)
    with watching(watcher, config) as hears:
        return [_train(one, path, overrides, hears, stop) for one, path in runs]


def known_run(
    config: Config, path: Path | None, announce: Callable[[str], None] = lambda line: None
) -> Config:
    """The config with which a run begins or goes on in a directory; UserError if it cannot."""
    if path is None:
        return config
    if holds_run(path):
        return continued(path, config, announce)
    check_free(path)
    return config


def _train(
    config: Config, path: Path | None, overrides: Overrides, watcher: Watcher, stop: Stop
) -> Result:
    """A run, as far as it has not ended."""
    config = known_run(config, path, watcher.announce)
    if path is not None and holds_run(path) and has_ended(path, config):
        result = result_of(path, overrides.network)
        if overrides.learner:
            what = configured_learner(
                config, result.agent.spaces, overrides.network, overrides.optimiser
            )
            check_learner(path, what.fingerprint)
        return result
    with built(config, path, overrides, watcher.announce) as run:
        if path is None:
            return drive(run, None, watcher, stop)
        with closing(RunDirectory(path, config, run.what.fingerprint)) as directory:
            return drive(run, directory, watcher, stop)


# From the beginning to the end ------------------------------------------------------------------


def drive(built: Built, directory: RunDirectory | None, watcher: Watcher, stop: Stop) -> Result:
    """Trains to the end.

    ``stop`` is asked often; a signal's number makes the run stop with a checkpoint and
    ``Interrupted``.
    """
    loop, config = built.loop, built.config
    run = _Run(built, directory, watcher, stop)
    run.begin()
    with _status_on_error(directory, loop):
        checkpointer = Checkpointer(
            directory, config.checkpoint_every, stop, config.num_envs, loop.headroom
        )
        checkpointer.begin(loop.step)

        def on_saveable(loop: Loop) -> None:
            checkpointer.check(loop.step, loop.step == config.steps, run.content)

        def steps_left(loop: Loop) -> int:
            return checkpointer.steps_left(loop.step)

        while run.result is None:
            until = min(config.steps, (len(run.rows) + 1) * config.iteration_steps)
            while loop.step < until and not loop.diverged():
                run.copy()
                due = run.copies.next(loop.step) if config.average else until
                loop.advance(min(due, until), watcher.progress, on_saveable, steps_left)
            run.copy()
            run.end_iteration(until)
    diverged = run.result.status == "diverged"
    if directory is not None and (diverged or not directory.checkpoints.steps()):
        shutil.rmtree(directory.replay, ignore_errors=True)
    return run.result


class _Run:
    """A run's rows, its files and its end."""

    def __init__(
        self, built: Built, directory: RunDirectory | None, watcher: Watcher, stop: Stop
    ) -> None:
        self.config, self._built, self._loop = built.config, built, built.loop
        self._directory, self._watcher, self._stop = directory, watcher, stop
        self.rows: list[dict[str, Any]] = []
        self.copies = Copies(self.config.average, self.config.average_every)
        self._best = Best()
        self._saved = 0  # the step at which the agent was written last
        self._valued = built.what.method.values_are_returns
        self._warnings = Warnings(self.config, self._valued)
        self.result: Result | None = None

    def begin(self) -> None:
        """Starts from the newest checkpoint, or from the beginning."""
        if self._directory is not None and self.config.checkpoint_every:
            notice = newest(self._directory.checkpoints, self._restore)
            if notice is not None:
                self._watcher.announce(f"goes on from the checkpoint of step {self._loop.step:,}")
                if notice:
                    self._watcher.announce(notice)
                return
        self._loop.begin()
        if self._directory is not None:
            self._directory.begin()

    def content(self) -> Saved:
        """What a checkpoint holds of the run."""
        arrays, state = self._loop.snapshot()
        saved = self.copies.saved_with(Saved(arrays, {**state, "saved": self._saved}))
        return self._best.saved_with(saved)

    def _restore(self, saved: Saved) -> str:
        """Goes on from a checkpoint; a notice, or ""."""
        assert self._directory is not None
        self._loop.restore(saved)
        self._saved = int(saved.state["saved"])
        agent = self._built.agent(0)
        self.copies = self.copies.restored(saved, agent)
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
            self.copies = self.copies.with_one_of(self._built.agent(step), step)

    def end_iteration(self, until: int) -> None:
        """Writes a row of metrics, and does what is due at the end of an iteration."""
        row = self._loop.row(until, len(self.rows))
        step = int(row["step"])
        played = self._evaluate_on_the_way(step) if self.config.evaluates_at(step) else None
        if played is not None and self._valued:
            row["bias"] = played.bias
        self.rows.append(row)
        self._watcher.row(row)
        for notice in self._warnings.after(row):
            log.warning("movi: warning: %s", notice)
        if self._directory is not None:
            self._directory.row(row)
            if step - self._saved >= self.config.save_every:
                self._directory.write(AGENT_FILE, encoded(self._built.agent(step)))
                self._saved = step
        if self._loop.diverged() or until == self.config.steps:
            self._end(step)

    def _evaluate_on_the_way(self, step: int) -> Evaluation:
        """Evaluates the agent, and keeps it if it is the best so far."""
        agent = self._built.agent(step)
        played = self._evaluation(agent, step)
        before, self._best = self._best, self._best.after(agent, played)
        if self._directory is not None:
            self._directory.evaluation(step, played)
            if self._best is not before and self._best.content is not None:
                self._directory.write(BEST_FILE, self._best.content)
        return played

    def _end(self, step: int) -> None:
        """Saves and evaluates the agent, and writes how the run ended."""
        directory, diverged = self._directory, self._loop.diverged()
        agent = self._built.agent(step)
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
        """Of the agent, at the run's end or at a step on the way, and of the mean of its copies."""
        config, make_environment = self.config, self._built.make_environment
        assert make_environment is not None
        episodes = config.final_episodes if at is None else config.periodic_episodes

        def look(done: int) -> None:
            if (signal := self._stop()) is not None and done < episodes:
                raise Interrupted("interrupted in the evaluation", signal)

        def play(player: Agent, discounted: Discounted | None = None) -> Evaluation:
            with closing(make_environment(min(episodes, 10 if at is None else 20))) as environment:
                return evaluate(
                    player,
                    environment,
                    episodes,
                    epsilon=config.evaluation_epsilon,
                    seed=config.seed,
                    at=at,
                    discounted=discounted,
                    on_step=look,
                )

        discounted = Discounted(config.gamma, config.reward_clip) if self._valued else None
        played = play(agent, discounted)
        others = self.copies.players(agent)
        return played._replace(average={name: play(other) for name, other in others.items()})


@contextmanager
def _status_on_error(directory: RunDirectory | None, loop: Loop) -> Iterator[None]:
    """Writes what stops a run into its status; the error's line then says how to resume it."""
    try:
        yield
    except BaseException as error:
        if directory is None:
            raise
        stopped = isinstance(error, KeyboardInterrupt | Interrupted)
        with suppress(UserError):  # a full disk: the status stays "running"
            if stopped:
                directory.status("interrupted", loop.step, f"interrupted at step {loop.step}")
            else:
                directory.status("failed", loop.step, repr(error))
        if isinstance(error, Interrupted | Unwritable):
            line = f"{error}; {_how_to_resume(directory)}"
            if isinstance(error, Interrupted):
                raise Interrupted(line, error.signal) from None
            raise Unwritable(line) from None
        raise


def _how_to_resume(directory: RunDirectory) -> str:
    steps = directory.checkpoints.steps()
    since = f"from its checkpoint of step {steps[-1]:,}" if steps else "from the beginning"
    return f"`movi resume {directory.path}` goes on {since}"


# Progress ---------------------------------------------------------------------------------------


class _Bar(Watcher):
    """The progress of a run with its score and speed, shown ten times a second at most."""

    def __init__(self, description: str, total: int, stack: ExitStack) -> None:
        self._description, self._total, self._stack = description, total, stack
        self._score, self._next = "–", 0.0
        self._loop: Loop | None = None
        self._start, self._first = 0.0, 0

    @cached_property
    def _display(self) -> Display:
        """There is none until there is something to say."""
        return self._stack.enter_context(display(self._description, self._total))

    def announce(self, line: str) -> None:
        self._display.say(line)

    def progress(self, loop: Loop) -> None:
        now = time.monotonic()
        if self._loop is not loop:  # the first, or the next of several seeds
            self.show()
            self._loop, self._start, self._first, self._next = loop, now, 0, now
        if now >= self._next:
            self._next = now + 0.1
            self.show()

    def show(self) -> None:
        """Shows how far the run is, if there is one yet."""
        if self._loop is None:
            return
        now, step = time.monotonic(), self._loop.step
        if self._first == 0 and self._loop.updates:  # the first call of each function compiles it
            self._start, self._first = now, step
        speed = (step - self._first) / max(now - self._start, 1e-9)
        self._display.update(step, f"score {self._score}, {speed:,.0f} steps/s")

    def row(self, row: dict[str, Any]) -> None:
        if row["score"] is not None:
            self._score = f"{row['score']:,.1f}"


@contextmanager
def watching(watcher: Watcher | None, config: Config) -> Iterator[Watcher]:
    """Who hears of a run: the one that is given, or else a progress bar where one can be shown."""
    if watcher is not None:
        yield watcher
        return
    with ExitStack() as stack:
        bar = _Bar(f"{config.algorithm} {config.env}", config.steps, stack)
        yield bar
        bar.show()
