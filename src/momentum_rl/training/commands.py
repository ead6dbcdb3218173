"""The commands ``train``, ``resume``, ``evaluate``, ``record`` and ``export``.

Each is a dataclass of its options with an ``execute`` that prints the result; a mistake of the
user's is a ``UserError``.
"""

import os
import re
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, fields, make_dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from tyro.conf import Positional, arg

from momentum_rl.agents.registry import find, known, module_named, names, title_of
from momentum_rl.core.options import Options
from momentum_rl.errors import UserError, check_count, check_fraction, check_seed
from momentum_rl.plumbing.arguments import Trust, value_of
from momentum_rl.plumbing.modules import module_of
from momentum_rl.plumbing.reading import checked
from momentum_rl.runs.config import Config
from momentum_rl.runs.presets import chosen_fields, preset_options

MOST_SEEDS = 10_000
MOST_EPISODES = 1_000_000

if TYPE_CHECKING:
    from momentum_rl.agents.agent import Agent


@dataclass(frozen=True)
class Train(Config):
    """Train an agent; the result is a run directory. A run that was stopped goes on.

    The algorithm's own options are shown with its name: movi train momentum-dqn --help.
    """

    algorithm: Positional[Annotated[str, arg(metavar="ALGORITHM")]]
    """Its name (dqn, momentum-dqn, …: movi train --help lists them all), or MODULE:NAME for one of
    your own."""
    out: Path | None = None
    """The run directory: new or empty, or that of the same run, which goes on. None:
    runs/ENV-ALGORITHM-PRESET-SEED."""
    seeds: int = 1
    """The number of runs, with seeds from --seed on, one after the other (several at once: movi
    sweep). Each has its own run directory, with --out OUT/seed-SEED."""

    @classmethod
    def given(cls, arguments: Sequence[str]) -> "tuple[type[Train], Train]":
        """The command with the options of the algorithm and the defaults of the preset named."""
        name = _algorithm(arguments)
        kind: Any = Options if name is None else find(name, (module_named(name),))
        chosen = _with_options(kind, title_of(name or "") or "own")
        named, env = (value_of(arguments, option) for option in ("--preset", "--env"))
        fields = chosen_fields(named, env or "", name)
        options = kind(**preset_options(fields["preset"], kind))
        defaults = {**fields, "options": options}
        return chosen, chosen(algorithm=tyro.MISSING, env=tyro.MISSING, **defaults)

    @classmethod
    def hint(cls, arguments: Sequence[str]) -> str:
        """The options that the algorithm among these arguments has of its own."""
        name = _algorithm(arguments)
        if name is None:
            return "an algorithm's own options need its name"
        words = [f"--{field.name.replace('_', '-')}" for field in fields(find(name))]
        return f"{name}'s own are {', '.join(words)}" if words else f"{name} has none of its own"

    def execute(self) -> None:
        """Train, and say where the agent is."""
        config = Config(**{field.name: getattr(self, field.name) for field in fields(Config)})
        check_count("seeds", self.seeds, most=MOST_SEEDS)
        trust = module_of(config.env, "env"), module_named(config.algorithm)
        configs = [replace(config, seed=config.seed + i) for i in range(self.seeds)]
        _train([(one, self._out(one)) for one in configs], trust)

    def _out(self, config: Config) -> Path:
        """The directory of one of the runs."""
        if self.out is None:
            return default_directory(config)
        return self.out if self.seeds == 1 else self.out / f"seed-{config.seed}"


@dataclass(frozen=True)
class Resume:
    """Continue a run that was stopped, exactly as if it had not been; or make it longer."""

    run: Positional[Annotated[Path, arg(metavar="RUN")]]
    """A run directory, or one with those of several seeds (seed-0, seed-1, …)."""
    steps: int | None = None
    """More agent steps than the run has; None: as many as it has."""
    trust: Trust = ()

    def execute(self) -> None:
        """Train to the end, and say where the agents are."""
        from momentum_rl.training.run_directory import as_asked, runs_in

        runs = runs_in(self.run)
        configs = [as_asked(run) for run in runs]
        longest = max(config.steps for config in configs)  # a kill may have come in an extension
        steps = longest if self.steps is None else self.steps
        configs = [replace(config, steps=steps) for config in configs]
        if len({replace(config, seed=0) for config in configs}) > 1:
            raise UserError(f"{self.run}: its runs have different configs; resume each by itself")
        _train(list(zip(configs, runs)), self.trust)


@cache
def _with_options(kind: Any, title: str) -> Any:
    """``Train`` with the options of an algorithm in the place of any."""
    return make_dataclass(
        Train.__name__,
        [("options", Annotated[kind, arg(name=title)], field(default_factory=kind))],
        bases=(Train,),
        frozen=True,
        namespace={"__doc__": f"{Train.__doc__}\nAlgorithms: {', '.join(names())}."},
    )


def _train(runs: Sequence[tuple[Config, Path]], trust: Sequence[str]) -> None:
    """Trains new runs or continues them, one after the other; a signal stops with a checkpoint."""
    from momentum_rl.plumbing.signals import stopping
    from momentum_rl.spaces import is_gymnax
    from momentum_rl.training.build import known_config
    from momentum_rl.training.train import known_run, train

    if is_gymnax(runs[0][0].env):
        # A chunk's arrays are so small that threads which share an update lose more time than they
        # save. XLA reads this once, before JAX's first computation.
        os.environ.setdefault("NPROC", "1")
    for config, out in runs:  # all before the first is trained
        known_run(known_config(config, None, trust), out)
    with stopping() as stop:
        for config, out in runs:
            start = time.monotonic()
            result = train(config, out, stop=stop, trust=trust)
            _print_result(out, result, time.monotonic() - start)
            del result  # and with it the loop, before there is another


def _print_result(out: Path, result: Any, seconds: float) -> None:
    """Prints how a run ended and where its agent is."""
    from momentum_rl.agents.agent import AGENT_FILE, BEST_FILE

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
        for name, other in evaluation.average.items():
            print(
                f"by the mean of its last copies' {name}: "
                f"mean {other.mean:.1f}, standard deviation {other.std:.1f}"
            )
    print(f"agent: {out / AGENT_FILE}")
    if result.best is not None:
        about = checked(result.best.about, _BestAbout, str(out / BEST_FILE))
        played = about.evaluation
        print(
            f"best: {out / BEST_FILE}, of step {about.step:,}, "
            f"mean {played.mean:.1f} over {played.episodes} episodes"
        )


@dataclass(frozen=True)
class _Played:
    episodes: int
    mean: float


@dataclass(frozen=True)
class _BestAbout:
    """What the best agent's file says of how it was found."""

    step: int
    evaluation: _Played


@dataclass(frozen=True)
class _OfAgent:
    run: Positional[Annotated[Path, arg(metavar="RUN")]]
    """A run directory, or an agent's file."""
    best: bool = field(default=False, kw_only=True)
    """The run's best agent by its evaluations on the way (--evaluate-every), not its last."""
    trust: Trust = field(default=(), kw_only=True)

    def _agent(self) -> "tuple[Agent, _About]":
        """The agent, and what its file says of its environment."""
        from momentum_rl.agents.agent import load

        agent = load(self.run, trust=self.trust, best=self.best)
        return agent, checked(agent.about, _About, str(self.run))


@dataclass(frozen=True)
class Evaluate(_OfAgent):
    """Play whole episodes with a trained agent and print their raw returns."""

    episodes: int = 100
    """The number of episodes."""
    epsilon: float | None = None
    """Probability of a random action; None: what the run's config says (Dopamine: 0.001)."""
    seed: int = 0
    """Seed of the environments and the random actions."""
    num_envs: int = 10
    """Environments that step together, each with its share of the episodes."""

    def execute(self) -> None:
        """Play, and print the mean, the standard deviation and each return."""
        check_count("episodes", self.episodes, most=MOST_EPISODES)
        check_count("num_envs", self.num_envs)
        check_fraction("epsilon", self.epsilon or 0.0)
        check_seed(self.seed)
        agent, about = self._agent()

        from momentum_rl.envs.make import make_environment
        from momentum_rl.training.evaluation import evaluate

        count = min(self.num_envs, self.episodes)
        with closing(make_environment(about.env, count, trust=self.trust)) as environment:
            if environment.spaces != agent.spaces:
                raise UserError(f"env: {about.env} has other spaces than the agent was trained on")
            epsilon = about.evaluation_epsilon if self.epsilon is None else self.epsilon
            result = evaluate(agent, environment, self.episodes, epsilon=epsilon, seed=self.seed)
        print(f"episodes            {self.episodes}")
        print(f"mean                {result.mean:.6g}")
        print(f"standard deviation  {result.std:.6g}")
        print(f"returns             {' '.join(f'{value:.6g}' for value in result.returns)}")


@dataclass(frozen=True)
class Record(_OfAgent):
    """Write a video of a trained agent at play."""

    out: Path = field(kw_only=True)
    """The file to write, .mp4."""
    episodes: int = 1
    """The number of episodes, one after the other."""
    epsilon: float = 0.0
    """Probability of a random action."""
    seed: int = 0
    """Seed of the environment and the random actions."""

    def execute(self) -> None:
        """Play, write the video, and print the returns."""
        check_count("episodes", self.episodes, most=MOST_EPISODES)
        check_fraction("epsilon", self.epsilon)
        check_seed(self.seed)
        agent, about = self._agent()

        from momentum_rl.training.recording import record

        given: Any = {"episodes": self.episodes, "epsilon": self.epsilon, "seed": self.seed}
        returns = record(agent, about.env, self.out, **given, trust=self.trust)
        print(f"{self.out}: returns {' '.join(f'{value:.10g}' for value in returns)}")


@dataclass(frozen=True)
class Export(_OfAgent):
    """Write a run's agent to one file, for ``momentum_rl.load(FILE)``, or as ONNX."""

    file: Positional[Annotated[Path, arg(metavar="FILE")]]
    """The file to write: .safetensors, or .onnx (its policy alone, for other programs)."""

    def execute(self) -> None:
        """Write the file."""
        if self.file.suffix not in (".safetensors", ".onnx"):
            raise UserError(
                f"file: {self.file}, expected a name that ends in .safetensors or .onnx"
            )
        from momentum_rl.agents.agent import load, save
        from momentum_rl.agents.onnx_file import save_onnx
        from momentum_rl.plumbing.files import file_to_write

        file_to_write(self.file, "file")
        write = save if self.file.suffix == ".safetensors" else save_onnx
        write(load(self.run, trust=self.trust, best=self.best), self.file)
        print(self.file)


@dataclass(frozen=True)
class _About:
    """What an agent's file says of its evaluation."""

    env: str
    evaluation_epsilon: float = 0.001

    def __post_init__(self) -> None:
        check_fraction("epsilon", self.evaluation_epsilon)


def default_directory(config: Config) -> Path:
    """Where a run goes that was given no place."""
    env, algorithm = (re.sub(r"[^A-Za-z0-9.-]+", "-", n) for n in (config.env, config.algorithm))
    return Path("runs") / f"{env}-{algorithm}-{config.preset}-{config.seed}"


def _algorithm(arguments: Sequence[str]) -> str | None:
    """The name of the algorithm among a command's words, before the others can be parsed."""
    for before, word in zip(("", *arguments), arguments):
        free = not before.startswith("--") or "=" in before or before in _flags()
        names_one = word in names() or ":" in word or word is arguments[0]
        if free and names_one and not word.startswith("-"):
            return word
    return None


def _flags() -> set[str]:
    """The options that take no value."""
    kinds: list[Any] = [Config, *filter(None, (known(name) for name in names()))]
    flags = (field.name for kind in kinds for field in fields(kind) if field.type in (bool, "bool"))
    return {f"--{name.replace('_', '-')}" for name in flags}
