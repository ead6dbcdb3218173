"""Training runs on JAX-native environments, all seeds at once; each has its own run directory."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import flax.linen as nn
import jax
import optax

from movi.agents.agent import Agent
from movi.agents.learner import fingerprint
from movi.agents.options import Options
from movi.envs.gymnax_env import make_gymnax
from movi.envs.interface import Environment
from movi.envs.jax_env import HostedEnvironment, JaxEnvironment
from movi.envs.make import MOST
from movi.errors import UserError, check_count
from movi.replay.device import bytes_per_transition, packed_space
from movi.replay.interface import slack_of
from movi.replay.uniform import UniformReplay, require
from movi.sizes import readable
from movi.spaces import ObservationSpace
from movi.targets import Algorithm
from movi.training.checkpoint import Checkpoints, Saved, newest
from movi.training.config import Config
from movi.training.fused_loop import FusedLoop
from movi.training.keeping import Keeper, said_how_it_ended
from movi.training.resume import check_group, continued, has_ended, is_grouped, result_of
from movi.training.run_directory import REPLAY, RunDirectory, check_free
from movi.training.run_files import holds_run
from movi.training.stopping import Stop, never
from movi.training.train import (
    Result,
    Watcher,
    agent_of,
    check_batch,
    end_run,
    evaluate_config,
    evaluation_due,
    known_config,
    learner_of,
    method_of,
    networks_of,
)


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

    Args:
      config: the runs' config; its seed is replaced by each of ``seeds``.
      seeds: different seeds.
      outs: a run directory for each seed; None writes nothing. Runs that are there go on, as in
        ``train``: seeds of one program together, from the newest checkpoint that all have.
      algorithm: your own, in place of the config's; the runs are recorded under its name.
      environment: your own, in place of the config's.
      network: any flax module from observations to action values, in place of the config's; or one
        for each network of the algorithm, by name.
      optimiser: any optax transformation, in place of the config's.
      vectorised: one program for all seeds, or the same program for each. By default as runs that
        go on began, and new ones by what is faster: on a CPU a program for each, on its own device.
      watcher: is told about the runs as they go.
      stop: asked between chunks, as in ``train``.
      trust: modules that the config's ``algorithm`` may name, as in ``train``.
    """
    watcher = watcher or Watcher()
    if len(set(seeds)) != len(seeds) or not seeds:
        raise UserError(f"seeds: {list(seeds)}, expected at least one, all different")
    config = known_config(config, algorithm, trust)
    asked, own_network = config, network
    paths = None if outs is None else [Path(out) for out in outs]
    configs = [replace(config, seed=seed) for seed in seeds]
    for i, path in enumerate(paths or ()):
        if holds_run(path):
            configs[i] = continued(path, configs[i], watcher.announce)
        else:
            check_free(path)
    if len({replace(own, seed=0) for own in configs}) > 1:
        raise UserError("seeds: their runs have different kappa, expected to be extended together")
    config = configs[0]
    ended = [path for path, own in zip(paths or (), configs) if _has_ended(path, own)]
    if paths and len(ended) == len(seeds):
        return [Result(**result_of(path, own_network)) for path in paths]
    check_count("num_envs", config.num_envs, most=MOST)
    environment = environment or make_gymnax(config.env)
    spaces = environment.spaces
    check_batch(config, spaces)
    method = method_of(config)
    networks, spec = networks_of(config, method, network, spaces)
    if vectorised is None:
        begun = [path for path in paths or () if holds_run(path)]
        vectorised = any(map(is_grouped, begun)) if begun else jax.default_backend() != "cpu"
    together = vectorised and len(seeds) > 1
    for path in paths or ():
        if holds_run(path):
            check_group(path, seeds if together else [])
    if ended and paths and not together:  # each is a run of its own: only the others go on
        rest = [i for i, path in enumerate(paths) if path not in ended]
        new = train_seeds(
            asked,
            [seeds[i] for i in rest],
            [paths[i] for i in rest],
            environment=environment,
            network=own_network,
            optimiser=optimiser,
            vectorised=False,
            watcher=watcher,
            stop=stop,
        )
        results = {i: new[j] for j, i in enumerate(rest)}
        return [
            results[i] if i in results else Result(**result_of(path, own_network))
            for i, path in enumerate(paths)
        ]
    learner = learner_of(config, method, networks, optimiser, spaces)
    size = len(seeds) * config.replay_capacity * bytes_per_transition(spaces.observation)
    watcher.announce(
        f"replay of {config.replay_capacity:,} transitions, {len(seeds)} times: {readable(size)}"
        if len(seeds) > 1
        else f"replay of {config.replay_capacity:,} transitions: {readable(size)}"
    )
    row = packed_space(spaces.observation)
    slack = slack_of(config.replay_capacity, config.checkpoint_every)
    loop = FusedLoop(config, environment, learner, seeds, vectorised=vectorised)
    if paths and config.checkpoint_every:
        require(len(seeds) * config.replay_capacity, row, len(seeds) * slack, paths[0] / REPLAY)

    def agent(i: int) -> Agent:
        parameters, step = loop.parameters(i), loop.runs[i].step
        return agent_of(configs[i], method, networks, spec, spaces, parameters, step)

    made = environment

    @cache  # compiled once, for all evaluations of a run
    def hosted(n: int) -> HostedEnvironment:
        return HostedEnvironment(made, n)

    runs = _Runs(configs, loop, agent, hosted, watcher, stop)
    made_by = fingerprint(learner, spaces) if paths else None
    group = seeds if together else ()
    with ExitStack() as stack:
        directories = [
            stack.enter_context(closing(RunDirectory(path, own, group, made_by)))
            for path, own in zip(paths or (), configs)
        ]
        return runs.go(directories, row)


def _has_ended(path: Path, config: Config) -> bool:
    return holds_run(path) and has_ended(path, config)


class _Runs:
    """The seeds' rows, files and ends."""

    def __init__(
        self,
        configs: Sequence[Config],
        loop: FusedLoop,
        agent: Callable[[int], Agent],
        make_environment: Callable[[int], Environment],
        watcher: Watcher,
        stop: Stop,
    ) -> None:
        self._configs, self._loop, self._agent = configs, loop, agent
        self._make, self._watcher, self._stop = make_environment, watcher, stop
        self._directories: Sequence[RunDirectory] = ()
        self._kept: list[UniformReplay] = []
        self._rows: list[list[dict[str, Any]]] = [[] for _ in configs]
        self._saved = [0] * len(configs)
        self._results: dict[int, Result] = {}

    def go(self, directories: Sequence[RunDirectory], row: ObservationSpace) -> list[Result]:
        """Trains to the end, from the beginning or the newest common checkpoint.

        Args:
          directories: one for each seed, or none.
          row: the space of the replay's rows.
        """
        self._directories = directories
        self._begin(row)
        ended = self._results.__contains__
        with said_how_it_ended(directories, lambda: self._loop.step, ended):
            return self._finish()

    def _begin(self, row: ObservationSpace) -> None:
        config, directories = self._configs[0], self._directories
        capacity = config.replay_capacity
        notices: list[str] = []

        def open_rings(slack: int, new: bool) -> None:
            self._kept = [
                UniformReplay(capacity, row, slack=slack, directory=directory.replay, new=new)
                for directory in directories
            ]

        def restore(saved: list[Saved]) -> None:
            notices.clear()
            open_rings(int(saved[0].state["replay"]["slack"]), new=False)
            states = [one.state for one in saved]
            self._loop.restore([one.arrays for one in saved], states, self._kept)
            for i, state in enumerate(states):
                self._saved[i] = int(state["saved"])
                if state["has_ended"]:
                    self._results[i] = Result(
                        **result_of(directories[i].path, self._agent(i).networks)
                    )
                else:
                    notices.append(directories[i].begin(self._loop.step, state["written"]))
                    self._rows[i] = list(directories[i].rows)

        if directories and config.checkpoint_every:
            found = newest([Checkpoints(directory.path) for directory in directories], restore)
            if found is not None:
                step = self._loop.step
                self._watcher.announce(f"goes on from the checkpoint of step {step:,}")
                for notice in dict.fromkeys(filter(None, notices)):
                    self._watcher.announce(notice)
                return
            open_rings(slack_of(capacity, config.checkpoint_every), new=True)
        for directory in directories:
            directory.begin()

    def _finish(self) -> list[Result]:
        """Trains to the end; the results in the seeds' order."""
        config, loop = self._configs[0], self._loop
        n = config.num_envs
        keeper = Keeper(
            self._directories,
            config.checkpoint_every,
            self._stop,
            margin=n,
            room=lambda moment: self._kept[0].room(moment) + self._kept[0].added - loop.added,
        )
        keeper.begin(loop.step)

        def settled(loop: FusedLoop) -> None:
            if loop.added == loop.step:  # else the last tick is cut, and a longer run's is not
                keeper.look(loop.step, loop.step == config.steps, self._content)

        while len(self._results) < len(self._configs):
            told = max(len(rows) for i, rows in enumerate(self._rows) if i not in self._results)
            until = min(config.steps, (told + 1) * config.iteration_steps)
            self._loop.advance(
                until, self._watcher.tick, settled, lambda loop: keeper.left(loop.step)
            )
            for i in range(len(self._configs)):
                if i not in self._results:
                    self._row(i, until)
        return [self._results[i] for i in range(len(self._configs))]

    def _content(self) -> list[Saved]:
        contents = []
        for i, kept in enumerate(self._kept):
            arrays, state = self._loop.snapshot(i, kept)
            more = {"saved": self._saved[i], "has_ended": i in self._results}
            contents.append(Saved(arrays, {**state, **more}))
        return contents

    def _row(self, i: int, until: int) -> None:
        run, config = self._loop.runs[i], self._configs[i]
        row = run.row(run.noticed_at(until), len(self._rows[i]))
        self._rows[i].append(row)
        self._watcher.row(row)
        if self._directories:
            self._directories[i].row(row)
            if run.step - self._saved[i] >= config.save_every:
                self._directories[i].save(self._agent(i))
                self._saved[i] = run.step
        if evaluation_due(config, run.step):
            played = evaluate_config(self._agent(i), config, self._make, self._stop, at=run.step)
            self._watcher.evaluated(run.step, played)
            if self._directories:
                self._directories[i].evaluation(run.step, played)
        if run.diverged or until == config.steps:
            self._end(i)

    def _end(self, i: int) -> None:
        self._results[i] = end_run(
            self._configs[i],
            self._directories[i] if self._directories else None,
            self._agent(i),
            self._loop.runs[i].diverged,
            self._rows[i],
            self._loop,
            self._make,
            self._stop,
        )
