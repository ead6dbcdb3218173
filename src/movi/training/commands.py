"""The commands ``train``, ``evaluate``, ``record`` and ``export``.

Each takes its arguments and prints its result; a mistake of the user's is a ``UserError``.
"""

import contextlib
import io
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

import tyro
from tyro.conf import Positional

from movi.errors import UserError
from movi.training.config import Config
from movi.training.presets import preset_fields

T = TypeVar("T")


@dataclass(frozen=True)
class Train(Config):
    """Train an agent; the result is a run directory."""

    algorithm: Positional[str]
    """dqn, momentum-dqn, deep-sql or deep-dpp."""
    out: Path | None = None
    """The run directory, new or empty; None: runs/ENV-ALGORITHM-PRESET-SEED."""


@dataclass(frozen=True)
class Evaluate:
    """Play whole episodes with a trained agent and print their raw returns."""

    run: Positional[Path]
    """A run directory, or an agent's file."""
    episodes: int = 100
    """How many."""
    epsilon: float | None = None
    """Probability of a random action; None: what the run's config says (paper: 0.001)."""
    seed: int = 0
    """Of the environments and the random actions."""
    num_envs: int = 10
    """Environments that step together, each with its share of the episodes."""


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


@dataclass(frozen=True)
class Export:
    """Write a run's agent to one file, for ``movi.load(FILE).act(observation)``."""

    run: Positional[Path]
    """A run directory, or an agent's file."""
    file: Positional[Path]
    """The file to write, .safetensors."""


def train(argv: Sequence[str]) -> None:
    """``movi train ALGORITHM --env ID …``."""
    preset = _value(argv, "--preset") or "control"
    default = Train(**{"algorithm": tyro.MISSING, "env": tyro.MISSING, **preset_fields(preset)})
    options = parse(Train, argv, "movi train", default)
    config = Config(**{field.name: getattr(options, field.name) for field in fields(Config)})

    from movi.agents.agent import AGENT_FILE
    from movi.training.progress import bar
    from movi.training.train import train as run

    out = options.out or default_directory(config)
    start = time.monotonic()
    with bar(f"{config.algorithm} {config.env}", config.steps) as watcher:
        result = run(config, out, watcher=watcher)
    seconds = time.monotonic() - start
    if result.status == "diverged":
        print(f"diverged at step {result.step:,}; its last finite parameters are kept")
    else:
        print(f"finished {result.step:,} steps in {seconds:.0f} s")
    if result.evaluation is not None:
        evaluation = result.evaluation
        print(
            f"evaluation over {len(evaluation.returns)} episodes: "
            f"mean {evaluation.mean:.1f}, standard deviation {evaluation.std:.1f}"
        )
    print(f"agent: {out / AGENT_FILE}")


def evaluate(argv: Sequence[str]) -> None:
    """``movi evaluate RUN --episodes N``."""
    options = parse(Evaluate, argv, "movi evaluate")
    for name in ("episodes", "num_envs"):
        if getattr(options, name) < 1:
            raise UserError(f"{name}: {getattr(options, name)}, expected at least 1")
    if options.epsilon is not None and not 0 <= options.epsilon <= 1:
        raise UserError(f"epsilon: {options.epsilon}, expected a number in [0, 1]")
    agent, env_id = _agent(options.run)

    from movi.envs.gym_vector import make_gymnasium
    from movi.training.evaluation import evaluate as run

    environment = make_gymnasium(env_id, min(options.num_envs, options.episodes))
    try:
        if environment.spaces != agent.spaces:
            raise UserError(f"env: {env_id} has other spaces than the agent was trained on")
        epsilon = agent.about["evaluation_epsilon"] if options.epsilon is None else options.epsilon
        result = run(agent, environment, options.episodes, epsilon=epsilon, seed=options.seed)
    finally:
        environment.close()
    print(f"episodes            {options.episodes}")
    print(f"mean                {result.mean:.10g}")
    print(f"standard deviation  {result.std:.10g}")
    print(f"returns             {' '.join(f'{value:.10g}' for value in result.returns)}")


def record(argv: Sequence[str]) -> None:
    """``movi record RUN --out FILE.mp4``."""
    options = parse(Record, argv, "movi record")
    if options.episodes < 1:
        raise UserError(f"episodes: {options.episodes}, expected at least 1")
    agent, env_id = _agent(options.run)

    from movi.training.recording import record as run

    returns = run(
        agent,
        env_id,
        options.out,
        episodes=options.episodes,
        epsilon=options.epsilon,
        seed=options.seed,
    )
    print(f"{options.out}: returns {' '.join(f'{value:.10g}' for value in returns)}")


def export(argv: Sequence[str]) -> None:
    """``movi export RUN FILE.safetensors``."""
    options = parse(Export, argv, "movi export")
    if options.file.suffix != ".safetensors":
        raise UserError(f"file: {options.file}, expected a name that ends in .safetensors")
    if not options.file.parent.is_dir():
        raise UserError(f"file: {options.file.parent} is no directory")

    from movi.agents.agent import load, save

    save(load(options.run), options.file)
    print(options.file)


def parse(command: type[T], argv: Sequence[str], prog: str, default: Any = None) -> T:
    """The arguments as a dataclass; what is wrong with them as one line."""
    errors = io.StringIO()
    extra = {} if default is None else {"default": default}
    try:
        with contextlib.redirect_stderr(errors):
            return tyro.cli(command, args=list(argv), prog=prog, **extra)
    except SystemExit as stop:
        if not stop.code:
            raise
    raise UserError(_one_line(errors.getvalue()))


def _one_line(box: str) -> str:
    """What tyro says in a box of several lines, without the box and its advice."""
    text = " ".join(re.sub(r"[─│╭╮╰╯]", " ", box).split())
    text = re.sub(r"^Parsing error ", "", text)
    return text.split(" For full helptext")[0]


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
