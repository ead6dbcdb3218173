"""`movi upload`: run directories, sent afterwards to MLflow or to Weights & Biases.

A run directory is the source of truth, and everything in it is plain; so nothing is sent while a
run trains, and either tool takes ten lines. Both are for the user to install and to point at a
server by their own settings (MLFLOW_TRACKING_URI; `wandb login`, WANDB_MODE).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from tyro.conf import Positional, arg

from movi.errors import Interrupted, UserError, one_line
from movi.reading import read_rows
from movi.runs.config import flat
from movi.runs.files import (
    CONFIG,
    EVALUATION,
    TIMING,
    EvaluationFile,
    TimingRow,
    read_config,
    read_evaluations,
    read_if_there,
    read_metrics,
    read_status,
)

FILES = (CONFIG, "agent.safetensors", "best.safetensors")
"""What is sent of a run beside its settings and numbers, as far as it is there."""


@dataclass(frozen=True)
class Upload:
    """Send runs to MLflow or Weights & Biases: their settings, metrics and agents."""

    run: Positional[Annotated[Path, arg(metavar="RUN")]]
    """A run directory, or a folder with run directories anywhere below it."""
    to: Annotated[Literal["mlflow", "wandb"], arg(metavar="{mlflow,wandb}")]
    """Where to: installed by you, and set up by its own means."""
    project: str = "movi"
    """MLflow's experiment, or the project of Weights & Biases."""

    def execute(self) -> None:
        """Send them one after the other, and say which."""
        from movi.runs.finding import directories, is_run

        runs = [path for path, files in directories(self.run) if is_run(files)]
        if not runs:
            raise UserError(f"{self.run}: no runs, expected a run directory or a folder of them")
        try:
            tool = import_module(self.to)
        except ModuleNotFoundError:
            raise UserError(
                f"to: {self.to} is not installed, expected `pip install {self.to}` before"
            ) from None
        top = self.run.resolve().name
        for path in runs:
            sent = gathered(path, Path(top, path.relative_to(self.run)).as_posix())
            try:
                SENDERS[self.to](tool, self.project, sent)
            except Interrupted:
                raise
            except Exception as error:  # whatever a tool says of its server or its settings
                said = one_line(f"{type(error).__name__} {error}", 200)
                raise UserError(f"to: {self.to} did not take {path}: {said}") from None
            print(f"sent         {path} ({len(sent.history)} rows)")


class Sent(NamedTuple):
    """What is sent of a run."""

    name: str
    settings: Mapping[str, Any]
    """The config and the algorithm's options, side by side."""
    history: Mapping[int, Mapping[str, float]]
    """By agent step, in order: all numbers that are known there."""
    outcome: Mapping[str, Any]
    """The status, and the evaluation at the end if there was one."""
    files: tuple[Path, ...]


def gathered(run: Path, name: str) -> Sent:
    """All of a run that is worth sending."""
    history: dict[int, dict[str, float]] = {}
    timing = read_rows(run / TIMING, TimingRow) if (run / TIMING).exists() else []
    evaluations = (
        {"step": row["step"], "evaluation/mean": row["mean"], "evaluation/std": row["std"]}
        for row in read_evaluations(run)
    )
    for row in (*read_metrics(run), *(vars(own) for own in timing), *evaluations):
        known = {key: float(value) for key, value in row.items() if value is not None}
        history.setdefault(int(known.pop("step")), {}).update(known)
    status, ended = read_status(run), read_if_there(run, EVALUATION, EvaluationFile)
    outcome = {"status": "unknown" if status is None else status.status}
    return Sent(
        name,
        flat(read_config(run)),
        dict(sorted(history.items())),
        outcome if ended is None else {**outcome, "evaluation": ended.mean},
        tuple(file for file in (run / own for own in FILES) if _is_own(file)),
    )


def _is_own(file: Path) -> bool:
    """Whether a file of a run is there, and no link to something that is not to be sent."""
    return file.is_file() and not file.is_symlink()


def _to_mlflow(mlflow: Any, project: str, sent: Sent) -> None:
    mlflow.set_experiment(project)
    with mlflow.start_run(run_name=sent.name):
        mlflow.log_params(sent.settings)
        mlflow.set_tags(sent.outcome)
        for step, numbers in sent.history.items():
            mlflow.log_metrics(numbers, step=step)
        for file in sent.files:
            mlflow.log_artifact(str(file))


def _to_wandb(wandb: Any, project: str, sent: Sent) -> None:
    with wandb.init(project=project, name=sent.name, config=dict(sent.settings)) as run:
        for step, numbers in sent.history.items():
            run.log(dict(numbers), step=step)
        run.summary.update(dict(sent.outcome))
        for file in sent.files:
            run.save(str(file), base_path=str(file.parent), policy="now")


SENDERS: Mapping[str, Callable[[Any, str, Sent], None]] = {"mlflow": _to_mlflow, "wandb": _to_wandb}
"""By tool: takes its module, the project and a run."""
