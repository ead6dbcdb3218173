"""The commands ``train``, ``resume``, ``evaluate``, ``record`` and ``export``.

Each is a dataclass of its options with an ``execute`` that prints the result; a mistake of the
user's is a ``UserError``.
"""

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import tyro
from tyro.conf import Positional

from movi.errors import UserError
from movi.training.config import Config
from movi.training.presets import preset_fields, usual_preset


@dataclass(frozen=True)
class Train(Config):
    """Train an agent; the result is a run directory. A run that was stopped goes on."""

    algorithm: Positional[str]
    """dqn, momentum-dqn, deep-sql or deep-dpp."""
    out: Path | None = None
    """The run directory: new or empty, or that of the same run, which goes on. None:
    runs/ENV-ALGORITHM-PRESET-SEED."""
    seeds: int = 1
    """Runs, with the seeds from --seed on: side by side on JAX-native environments
    (MinAtar/…, gymnax/…), one after the other elsewhere. Each has its own run directory, with --out
    OUT/seed-SEED."""

    @classmethod
    def default(cls, arguments: Sequence[str]) -> "Train":
        """The defaults of the preset that these arguments name."""
        preset = _value(arguments, "--preset") or usual_preset(_value(arguments, "--env") or "")
        return cls(**{"algorithm": tyro.MISSING, "env": tyro.MISSING, **preset_fields(preset)})

    def execute(self) -> None:
        """Train, and say where the agent is."""
        config = Config(**{field.name: getattr(self, field.name) for field in fields(Config)})

        if self.seeds < 1:
            raise UserError(f"seeds: {self.seeds}, expected at least 1")

        _train(config, [config.seed + i for i in range(self.seeds)], self._outs(config))

    def _outs(self, config: Config) -> list[Path]:
        configs = [replace(config, seed=config.seed + i) for i in range(self.seeds)]
        if self.out is None:
            return [default_directory(own) for own in configs]
        return [self.out] if self.seeds == 1 else [self.out / f"seed-{c.seed}" for c in configs]


@dataclass(frozen=True)
class Resume:
    """Go on with a run that was stopped, exactly as if it had not been; or make it longer."""

    run: Positional[Path]
    """A run directory, or one with those of several seeds (seed-0, seed-1, …)."""
    steps: int | None = None
    """More agent steps than the run has; None: as many as it has."""
    checkpoint_every: int | None = None
    """Agent steps between two checkpoints from now on; None: as before."""

    def execute(self) -> None:
        """Train to the end, and say where the agents are."""
        from movi.training.resume import runs_in
        from movi.training.run_directory import read_config

        runs = runs_in(self.run)
        configs = [read_config(run) for run in runs]
        given = {"steps": self.steps, "checkpoint_every": self.checkpoint_every}
        changes: dict[str, Any] = {name: v for name, v in given.items() if v is not None}
        configs = [replace(config, **changes) for config in configs]
        if len({replace(config, seed=0) for config in configs}) > 1:
            raise UserError(f"{self.run}: its runs have different configs; resume each by itself")
        _train(configs[0], [config.seed for config in configs], runs)


def _train(config: Config, seeds: list[int], outs: list[Path]) -> None:
    """Trains, begins or goes on; stops with a checkpoint when a signal asks for it."""
    from movi.envs.gymnax_env import is_gymnax
    from movi.training.processors import prepare_fused
    from movi.training.progress import bar
    from movi.training.stopping import stopping
    from movi.training.train import train

    if is_gymnax(config.env):
        prepare_fused(len(seeds))
    start = time.monotonic()
    with stopping() as stop, bar(f"{config.algorithm} {config.env}", config.steps) as watcher:
        if len(seeds) > 1 and is_gymnax(config.env):
            from movi.training.fused_train import train_seeds

            results = train_seeds(config, seeds, outs, watcher=watcher, stop=stop)
        else:
            results = [
                train(replace(config, seed=seed), out, watcher=watcher, stop=stop)
                for seed, out in zip(seeds, outs)
            ]
    seconds = time.monotonic() - start
    for out, result in zip(outs, results):
        _tell(out, result, seconds)


def _tell(out: Path, result: Any, seconds: float) -> None:
    """Prints how a run ended and where its agent is."""
    from movi.agents.agent import AGENT_FILE

    if result.status == "diverged":
        print(f"diverged at step {result.step:,}; its last finite parameters are kept")
    elif result.loop is None:
        print(f"had already finished its {result.step:,} steps")
    else:
        print(f"finished {result.step:,} steps in {seconds:.0f} s")
    if result.evaluation is not None:
        evaluation = result.evaluation
        print(
            f"evaluation over {len(evaluation.returns)} episodes: "
            f"mean {evaluation.mean:.1f}, standard deviation {evaluation.std:.1f}"
        )
    print(f"agent: {out / AGENT_FILE}")


@dataclass(frozen=True)
class Evaluate:
    """Play whole episodes with a trained agent and print their raw returns."""

    run: Positional[Path]
    """A run directory, or an agent's file."""
    episodes: int = 100
    """How many."""
    epsilon: float | None = None
    """Probability of a random action; None: what the run's config says (Dopamine: 0.001)."""
    seed: int = 0
    """Of the environments and the random actions."""
    num_envs: int = 10
    """Environments that step together, each with its share of the episodes."""

    def execute(self) -> None:
        """Play, and print the mean, the standard deviation and each return."""
        for name in ("episodes", "num_envs"):
            if getattr(self, name) < 1:
                raise UserError(f"{name}: {getattr(self, name)}, expected at least 1")
        if self.epsilon is not None and not 0 <= self.epsilon <= 1:
            raise UserError(f"epsilon: {self.epsilon}, expected a number in [0, 1]")
        agent, env_id = _agent(self.run)

        from movi.envs.make import make_environment
        from movi.training.evaluation import evaluate as run_evaluate

        environment = make_environment(env_id, min(self.num_envs, self.episodes))
        try:
            if environment.spaces != agent.spaces:
                raise UserError(f"env: {env_id} has other spaces than the agent was trained on")
            epsilon = self.epsilon
            if epsilon is None:
                epsilon = float(agent.about.get("evaluation_epsilon", 0.001))
            result = run_evaluate(
                agent, environment, self.episodes, epsilon=epsilon, seed=self.seed
            )
        finally:
            environment.close()
        print(f"episodes            {self.episodes}")
        print(f"mean                {result.mean:.10g}")
        print(f"standard deviation  {result.std:.10g}")
        print(f"returns             {' '.join(f'{value:.10g}' for value in result.returns)}")


@dataclass(frozen=True)
class Record:
    """Write a video of a trained agent at play."""

    run: Positional[Path]
    """A run directory, or an agent's file."""
    out: Path
    """The file to write, .mp4."""
    episodes: int = 1
    """How many, one after the other."""
    epsilon: float = 0.0
    """Probability of a random action."""
    seed: int = 0
    """Of the environment and the random actions."""

    def execute(self) -> None:
        """Play, write the video, and print the returns."""
        if self.episodes < 1:
            raise UserError(f"episodes: {self.episodes}, expected at least 1")
        agent, env_id = _agent(self.run)

        from movi.training.recording import record as run_record

        returns = run_record(
            agent,
            env_id,
            self.out,
            episodes=self.episodes,
            epsilon=self.epsilon,
            seed=self.seed,
        )
        print(f"{self.out}: returns {' '.join(f'{value:.10g}' for value in returns)}")


@dataclass(frozen=True)
class Export:
    """Write a run's agent to one file, for ``movi.load(FILE).act(observation)``."""

    run: Positional[Path]
    """A run directory, or an agent's file."""
    file: Positional[Path]
    """The file to write, .safetensors."""

    def execute(self) -> None:
        """Write the file."""
        if self.file.suffix != ".safetensors":
            raise UserError(f"file: {self.file}, expected a name that ends in .safetensors")
        if not self.file.parent.is_dir():
            raise UserError(f"file: {self.file.parent} is no directory")

        from movi.agents.agent import load, save

        save(load(self.run), self.file)
        print(self.file)


def default_directory(config: Config) -> Path:
    """Where a run goes that was given no place."""
    env = re.sub(r"[^A-Za-z0-9.-]+", "-", config.env)
    return Path("runs") / f"{env}-{config.algorithm}-{config.preset}-{config.seed}"


def _agent(run: Path) -> Any:
    from movi.agents.agent import load

    agent = load(run)
    if "env" not in agent.about:
        raise UserError(f"{run}: does not say which environment its agent is for")
    return agent, str(agent.about["env"])


def _value(argv: Sequence[str], option: str) -> str | None:
    """The value of an option, before the others can be parsed."""
    for i, word in enumerate(argv):
        if word == option and i + 1 < len(argv):
            return argv[i + 1]
        if word.startswith(f"{option}="):
            return word.partition("=")[2]
    return None
