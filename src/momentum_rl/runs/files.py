"""A run directory: what is in its files, and their readers.

config.json         the config, as it was given
metrics.jsonl       one row per iteration, deterministic: equal runs have equal bytes
evaluations.jsonl   one row per evaluation during the run, deterministic too
timing.jsonl        one row per iteration: seconds and speeds
events.out.*        the same metrics for TensorBoard
versions.json       the versions and the machine that trained it, each with the step since which
                    they did, and the time
status.json         running, finished, diverged, interrupted or failed; the step; a message; when
evaluation.json     the evaluation at the end
agent.safetensors   the agent
best.safetensors    the agent with the highest of the evaluations during the run, if it had any
checkpoint/         the last two checkpoints: see docs/resume.md
replay/             the replay, if the run has checkpoints
lock                while a process has the run

The dataclasses are schemas of ``plumbing.reading``; ``training.run_directory`` writes the files.
"""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from momentum_rl.errors import UserError
from momentum_rl.plumbing.reading import LARGE, LARGEST, read, read_rows, text
from momentum_rl.runs.config import Config

CONFIG = "config.json"
STATUS = "status.json"
METRICS = "metrics.jsonl"
TIMING = "timing.jsonl"
EVALUATION = "evaluation.json"
EVALUATIONS = "evaluations.jsonl"
VERSIONS = "versions.json"

Status = Literal["running", "finished", "diverged", "interrupted", "failed"]
ENDED = ("finished", "diverged")
"""The statuses of runs that have nothing left to do."""


@dataclass(frozen=True)
class StatusFile:
    """How a run stands; one that was killed is still "running"."""

    status: Status
    step: int
    message: str = ""
    time: str = ""
    """When this was written, so that of a run that has ended: its end."""


@dataclass(frozen=True)
class EvaluationFile:
    """The evaluation at the end of a run."""

    mean: float | None
    std: float | None
    returns: list[float | None]
    """null is a number that is not finite."""
    lengths: list[int]
    average: dict[str, "EvaluationFile"] = field(default_factory=dict, kw_only=True)
    """The same by the mean of the agent's last copies: of their values, of their parameters."""


@dataclass(frozen=True)
class EvaluationRow(EvaluationFile):
    """An evaluation during a run."""

    step: int


@dataclass(frozen=True)
class Since:
    """The versions that trained a run from a step on, and the learner's fingerprint."""

    step: int
    versions: dict[str, str]
    learner: str = ""
    machine: dict[str, str] = field(default_factory=dict)
    """The processor, the threads of a program and XLA's flags: numbers agree to rounding only where
    these differ."""
    started: str = ""
    """When it began to train there."""


@dataclass(frozen=True)
class VersionsFile:
    """All versions that trained a run."""

    since: list[Since]
    sha256: str
    """Of the text of these."""


@dataclass(frozen=True)
class TimingRow:
    """When an iteration ended, in seconds since the run began."""

    iteration: int
    step: int
    seconds: float
    steps_per_second: float


def holds_run(path: str | Path) -> bool:
    """Whether a directory is that of a run."""
    return (Path(path) / CONFIG).is_file()


def read_config(run: str | Path) -> Config:
    """The config of a run directory."""
    if not holds_run(run):
        raise UserError(f"{run}: not a run directory (it has no {CONFIG})")
    file = Path(run) / CONFIG
    return Config.from_json(text(file), str(file))


def read_status(run: str | Path) -> StatusFile | None:
    """How a run stands; None if nothing says so."""
    return read_if_there(run, STATUS, StatusFile)


def read_metrics(run: str | Path) -> list[dict[str, Any]]:
    """The rows of a run's metrics; one that is only half written yet is left out."""
    file = Path(run) / METRICS
    if not file.is_file():
        raise UserError(f"{run}: not a run directory (it has no {METRICS})")
    rows: list[dict[str, Any]] = read_rows(file, dict[str, float | None])
    return rows


def read_evaluations(run: str | Path) -> list[dict[str, Any]]:
    """The rows of a run's evaluations during the run; none if it had none."""
    file = Path(run) / EVALUATIONS
    return [asdict(row) for row in read_rows(file, EvaluationRow)] if file.exists() else []


def read_if_there(run: str | Path, name: str, expected: type[Any]) -> Any:
    """The content of a file of a run; None if there is none."""
    file = Path(run) / name
    largest = LARGE if name == EVALUATION else LARGEST  # it has a number for every episode
    return read(file, expected, largest) if file.exists() else None
