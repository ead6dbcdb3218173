"""What is in the files of a run and of a sweep, and their readers: light, for whoever only looks.

The schemas of ``movi.reading``. Who writes these files is in ``run_directory`` and in
``movi.sweeps``.
"""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from movi.errors import UserError
from movi.reading import LARGE, LARGEST, checked, of_format, read, read_rows, text
from movi.training.config import Config, upgraded

Status = Literal["running", "finished", "diverged", "interrupted", "failed"]
CONFIG = "config.json"
STATUS = "status.json"
METRICS = "metrics.jsonl"
TIMING = "timing.jsonl"
EVALUATION = "evaluation.json"
EVALUATIONS = "evaluations.jsonl"
VERSIONS = "versions.json"
GROUP = "group.json"
EXTENDED = "extended.json"
SWEEP_FILE = "sweep.json"
SWEEP_FORMAT = 1
LARGEST_SWEEP = 64 * 2**20


@dataclass(frozen=True)
class StatusFile:
    """How a run stands; one that was killed is still "running"."""

    status: Status
    step: int
    message: str = ""


@dataclass(frozen=True)
class EvaluationFile:
    """The evaluation at the end of a run."""

    returns: list[float]
    lengths: list[int]


@dataclass(frozen=True)
class EvaluationRow:
    """An evaluation during a run."""

    step: int
    mean: float
    std: float
    returns: list[float]
    lengths: list[int]


@dataclass(frozen=True)
class Since:
    """The versions that trained a run from a step on, and the learner's fingerprint."""

    step: int
    versions: dict[str, str]
    learner: str = ""


@dataclass(frozen=True)
class VersionsFile:
    """All versions that trained a run."""

    since: list[Since]


@dataclass(frozen=True)
class GroupFile:
    """The seeds that are trained together."""

    seeds: list[int]


@dataclass(frozen=True)
class TimingRow:
    """When an iteration ended, in seconds since the run began."""

    iteration: int
    step: int
    seconds: float
    steps_per_second: float


@dataclass(frozen=True)
class CellFile:
    """The runs of a variant on an environment."""

    env: str
    label: str
    seeds: list[int]
    config: dict[str, Any]
    together: int | None = None


@dataclass(frozen=True)
class SweepFile:
    """A matrix of runs, with the command and the version that made it."""

    name: str
    scale: str
    command: str
    version: str
    cells: list[CellFile]

    def __post_init__(self) -> None:
        """Checks that there is something."""
        if not self.cells:
            raise UserError("cells: none, expected at least one")


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
    found = read_rows(file, EvaluationRow) if file.exists() else []
    return [asdict(row) for row in found]


def read_if_there(run: str | Path, name: str, expected: type[Any]) -> Any:
    """The content of a file of a run; None if there is none."""
    file = Path(run) / name
    largest = LARGE if name == EVALUATION else LARGEST  # it has a number for every episode
    return read(file, expected, largest) if file.exists() else None


def sweep_of(content: str, name: str) -> SweepFile:
    """The content of the text of a ``sweep.json``."""
    found: SweepFile = checked(of_format(content, SWEEP_FORMAT, name), SweepFile, name)
    return found


def cell_config(cell: CellFile, name: str) -> Config:
    """The config of the first run of a cell."""
    seed = cell.seeds[0] if cell.seeds else 0
    return Config.from_dict(upgraded({**cell.config, "seed": seed}), name)
