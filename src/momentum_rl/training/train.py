"""Train an agent, or go on training it: what ``momentum_rl.train`` and all commands call."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import flax.linen as nn
import jax
import optax

from momentum_rl.core.options import Options
from momentum_rl.core.targets import Algorithm
from momentum_rl.envs.interface import Environment
from momentum_rl.envs.jax_env import JaxEnvironment
from momentum_rl.errors import UserError, door
from momentum_rl.plumbing.progress import Display, display
from momentum_rl.plumbing.signals import Stop, never
from momentum_rl.plumbing.sizes import allow_files
from momentum_rl.replay.interface import Replay
from momentum_rl.runs.config import Config
from momentum_rl.runs.files import holds_run
from momentum_rl.training.build import (
    Loop,
    Overrides,
    built,
    configured_learner,
    known_config,
)
from momentum_rl.training.drive import drive
from momentum_rl.training.loop import Result, Watcher
from momentum_rl.training.run_directory import (
    OPEN_FILES,
    RunDirectory,
    check_free,
    check_group,
    check_learner,
    continued,
    has_ended,
    is_grouped,
    result_of,
)


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
    replay: Replay | None = None,
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
      replay: your own, in place of the environment's usual one; not for a ``JaxEnvironment``.
      watcher: hears of the run as it goes. By default it is a progress bar, on a terminal or in a
        notebook; ``Watcher()`` is silent.
      stop: asked often; a signal's number makes the run stop with a checkpoint and an
        ``Interrupted``: see ``momentum_rl.plumbing.signals``.
      trust: modules that the config's ``env`` and ``algorithm`` may name (MODULE:NAME): importing
        one runs its code.
    """
    config = known_config(config, algorithm, trust)
    overrides = Overrides(
        environment, make_environment, network, optimiser, replay, trust, algorithm
    )
    outs = None if out is None else [out]
    with watching(watcher, config) as hears:
        return _train(config, [config.seed], outs, overrides, None, hears, stop)[0]


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
    vectorised: bool | None = None,
    watcher: Watcher | None = None,
    stop: Stop = never,
    trust: Collection[str] = (),
) -> list[Result]:
    """Trains one agent per seed; each is that of its own single run, to float precision.

    On JAX-native environments the seeds run side by side, elsewhere one after the other.

    Args:
      config: the runs' config; its seed is replaced by each of ``seeds``.
      seeds: different seeds.
      outs: a run directory for each seed; None writes nothing. Runs that are there go on, as in
        ``train``: seeds of one program together, from the newest checkpoint that all have.
      algorithm, network, optimiser, watcher, stop, trust: as in ``train``.
      environment: your own, in place of the config's.
      vectorised: one program for all seeds, or the same program for each. By default as runs that
        go on began, and new ones by what is faster: on a CPU a program for each, on its own device.
    """
    if len(set(seeds)) != len(seeds) or not seeds:
        raise UserError(f"seeds: {list(seeds)}, expected at least one, all different")
    config = known_config(config, algorithm, trust)
    overrides = Overrides(environment, None, network, optimiser, None, trust, algorithm)
    with watching(watcher, config) as hears:
        if overrides.is_fused(config):
            return _train(config, seeds, outs, overrides, vectorised, hears, stop)
        results = []
        for i, seed in enumerate(seeds):
            one = replace(config, seed=seed)
            out = None if outs is None else [outs[i]]
            results += _train(one, [seed], out, overrides, None, hears, stop)
        return results


def _train(
    config: Config,
    seeds: Sequence[int],
    outs: Sequence[str | Path] | None,
    overrides: Overrides,
    vectorised: bool | None,
    watcher: Watcher,
    stop: Stop,
) -> list[Result]:
    """The runs of some seeds in one loop, as far as they have not ended."""
    paths = [Path(out) for out in outs or ()]
    configs = [replace(config, seed=seed) for seed in seeds]
    for i, path in enumerate(paths):
        if holds_run(path):
            configs[i] = continued(path, configs[i], watcher.announce)
        else:
            check_free(path)
    if len({replace(one, seed=0) for one in configs}) > 1:
        raise UserError("seeds: their runs have different kappa, expected to be extended together")
    ended = {i for i, path in enumerate(paths) if holds_run(path) and has_ended(path, configs[i])}
    results = {i: result_of(paths[i], overrides.network) for i in ended}
    for i, result in results.items():
        if overrides.learner:
            what = configured_learner(
                configs[i], result.agent.spaces, overrides.network, overrides.optimiser
            )
            check_learner(paths[i], what.fingerprint)
    if len(ended) == len(seeds):
        return [results[i] for i in range(len(seeds))]
    begun = [path for path in paths if holds_run(path)]
    if vectorised is None:
        vectorised = any(map(is_grouped, begun)) if begun else jax.default_backend() != "cpu"
    together = vectorised and len(seeds) > 1
    group = list(seeds) if together else []
    for path in begun:
        check_group(path, group)
    if together:
        results = {}  # one program: it goes on with all of them
    rest = [i for i in range(len(seeds)) if i not in results]
    left, runs = [configs[i] for i in rest], [paths[i] for i in rest if paths]
    allow_files(OPEN_FILES * (len(runs) + 10))  # and as many as ten runs for everything else
    with ExitStack() as stack:
        run = stack.enter_context(built(left, runs, overrides, watcher, vectorised=vectorised))
        directories = [
            stack.enter_context(closing(RunDirectory(path, one, group, run.what.fingerprint)))
            for path, one in zip(runs, left)
        ]
        results |= dict(zip(rest, drive(run, directories, watcher, stop)))
    return [results[i] for i in range(len(seeds))]


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
