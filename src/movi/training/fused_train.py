"""Training runs on JAX-native environments, all seeds at once; each has its own run directory."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import flax.linen as nn
import jax
import optax

from movi.agents.agent import AGENT_FILE, Agent, save
from movi.agents.algorithms import deep_algorithm
from movi.agents.networks import make_network
from movi.envs.gymnax_env import make_gymnax
from movi.envs.interface import Environment
from movi.envs.jax_env import HostedEnvironment, JaxEnvironment
from movi.errors import UserError
from movi.replay.device import bytes_per_transition
from movi.replay.memory import readable
from movi.targets import Algorithm
from movi.training.config import Config
from movi.training.fused_loop import FusedLoop
from movi.training.run_directory import RunDirectory, Status, check_free
from movi.training.train import (
    Result,
    Watcher,
    evaluate_config,
    learner_of,
    network_spec,
)


def seed_directories(out: Path, seeds: Sequence[int]) -> list[Path]:
    """Where the runs of several seeds go: a directory for each inside one.

    >>> [path.name for path in seed_directories(Path("out"), [0, 1])]
    ['seed-0', 'seed-1']
    """
    return [out / f"seed-{seed}" for seed in seeds]


def train_seeds(
    config: Config,
    seeds: Sequence[int],
    outs: Sequence[str | Path] | None = None,
    *,
    algorithm: Algorithm | None = None,
    environment: JaxEnvironment | None = None,
    network: nn.Module | None = None,
    optimiser: optax.GradientTransformation | None = None,
    vectorised: bool | None = None,
    watcher: Watcher | None = None,
) -> list[Result]:
    """Trains one agent per seed; each is that of its own single run, to float precision.

    Args:
      config: the runs' config; its seed is replaced by each of ``seeds``.
      seeds: different seeds.
      outs: a run directory for each seed, new or empty; None writes nothing.
      algorithm: your own, in place of the config's.
      environment: your own, in place of the config's.
      network: any flax module from observations to action values, in place of the config's.
      optimiser: any optax transformation, in place of the config's.
      vectorised: one program for all seeds, or the same program for each. By default whichever is
        faster: convolutions on a CPU gain nothing from a common program.
      watcher: is told about the runs as they go.
    """
    watcher = watcher or Watcher()
    if len(set(seeds)) != len(seeds) or not seeds:
        raise UserError(f"seeds: {list(seeds)}, expected at least one, all different")
    for out in outs or ():
        check_free(Path(out))
    algorithm = algorithm or deep_algorithm(config.algorithm, config.sign)
    environment = environment or make_gymnax(config.env)
    spaces = environment.spaces
    spec = network_spec(config, spaces) if network is None else None
    if network is None:
        assert spec is not None
        network = make_network(spec, spaces)
    if vectorised is None:
        convolutional = spec is not None and spec.kind != "mlp"
        vectorised = jax.default_backend() != "cpu" or not convolutional
    learner = learner_of(config, algorithm, network, optimiser, spaces)
    size = len(seeds) * config.replay_capacity * bytes_per_transition(spaces.observation)
    watcher.announce(
        f"replay of {config.replay_capacity:,} transitions, {len(seeds)} times: {readable(size)}"
        if len(seeds) > 1
        else f"replay of {config.replay_capacity:,} transitions: {readable(size)}"
    )
    loop = FusedLoop(config, environment, learner, seeds, vectorised=vectorised)
    configs = [replace(config, seed=seed) for seed in seeds]
    directories = [RunDirectory(out, own) for out, own in zip(outs or (), configs)]

    def agent(i: int) -> Agent:
        about = {
            "algorithm": algorithm.name,
            "env": config.env,
            "step": loop.runs[i].step,
            "seed": seeds[i],
            "preset": config.preset,
            "evaluation_epsilon": config.evaluation_epsilon,
        }
        return Agent(
            network,
            loop.parameters(i),
            spaces,
            acts_on=algorithm.acts_on,
            spec=spec,
            about=about,
        )

    made = environment
    runs = _Runs(configs, loop, directories, agent, lambda n: HostedEnvironment(made, n), watcher)
    try:
        return runs.finish()
    except BaseException as error:
        reason = "interrupted" if isinstance(error, KeyboardInterrupt) else repr(error)
        for i, directory in enumerate(directories):
            if i not in runs.results:
                directory.status("failed", loop.step, reason)
        raise
    finally:
        for directory in directories:
            directory.close()


class _Runs:
    """The seeds' rows, files and ends."""

    def __init__(
        self,
        configs: Sequence[Config],
        loop: FusedLoop,
        directories: Sequence[RunDirectory],
        agent: Callable[[int], Agent],
        make_environment: Callable[[int], Environment],
        watcher: Watcher,
    ) -> None:
        self._configs, self._loop, self._directories = configs, loop, directories
        self._agent, self._make, self._watcher = agent, make_environment, watcher
        self._rows: list[list[dict[str, Any]]] = [[] for _ in configs]
        self._saved = [0] * len(configs)
        self.results: dict[int, Result] = {}

    def finish(self) -> list[Result]:
        """Trains to the end; the results in the seeds' order."""
        config, iteration = self._configs[0], 0
        while len(self.results) < len(self._configs):
            iteration += 1
            until = min(config.steps, iteration * config.iteration_steps)
            self._loop.advance(until, self._watcher.tick)
            for i in range(len(self._configs)):
                if i not in self.results:
                    self._row(i, until)
        return [self.results[i] for i in range(len(self._configs))]

    def _row(self, i: int, until: int) -> None:
        run, config = self._loop.runs[i], self._configs[i]
        row = run.row(run.noticed_at(until), len(self._rows[i]))
        self._rows[i].append(row)
        self._watcher.row(row)
        if self._directories:
            self._directories[i].row(row)
            if run.step - self._saved[i] >= config.save_every:
                save(self._agent(i), self._directories[i].path / AGENT_FILE)
                self._saved[i] = run.step
        if run.diverged or until == config.steps:
            self._end(i)

    def _end(self, i: int) -> None:
        run, config = self._loop.runs[i], self._configs[i]
        directory = self._directories[i] if self._directories else None
        final, evaluation = self._agent(i), None
        if directory is not None:
            save(final, directory.path / AGENT_FILE)
        if config.evaluation_episodes:
            evaluation = evaluate_config(final, config, self._make)
            if directory is not None:
                directory.write_json("evaluation.json", evaluation.to_json())
        status: Status = "diverged" if run.diverged else "finished"
        step = run.diverged or run.step
        if directory is not None:
            message = f"diverged at step {run.diverged}" if run.diverged else ""
            directory.status(status, step, message)
        self.results[i] = Result(status, step, final, self._rows[i], evaluation, self._loop)
