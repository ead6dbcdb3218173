"""Run directories, found below a folder and read as far as they can be.

A report is often wanted of runs that are still going on, were killed, or were copied in half. So
nothing in a file stops the search: what cannot be used is named in ``Found.problems``, and the rest
is read.
"""

import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeGuard

import numpy as np

from movi.errors import UserError
from movi.reports.tables import Array
from movi.training.config import Config

SWEEP_FILE = "sweep.json"
SWEEP_FORMAT = 1
LARGEST_FILE = 256 * 2**20
"""Bytes of a file that is still read: 100 times the metrics of the paper's runs."""
STATES = ("running", "finished", "diverged", "interrupted", "failed")

State = Literal["finished", "diverged", "unfinished"]


@dataclass(frozen=True)
class Sweep:
    """What ``sweep.json`` says of the runs below its directory."""

    directory: Path
    """Where it is."""
    name: str
    """The sweep's."""
    scale: str
    """quick, laptop, paper; or how else its size is called."""
    command: str
    """What made it."""
    version: str
    """Of movi, then."""
    labels: Mapping[tuple[str, str], str]
    """By environment and ``settings``: what the variant is called; in the sweep's order."""
    expected: int
    """Runs that it has when it is finished."""


@dataclass(frozen=True)
class Run:
    """A run directory."""

    path: Path
    """Where it is."""
    config: Config
    """What was asked for."""
    state: State
    """Finished and diverged runs have ended; whatever else happened to others, they have not."""
    scores: Array
    """By iteration: the mean raw score of the training episodes that ended in it, NaN for none."""
    diverged_at: int | None = None
    """The agent step, if it diverged."""
    diverged_in: int | None = None
    """The iteration (from 0) that it had not completed when it diverged."""
    evaluation: float | None = None
    """The mean score of the evaluation at its end."""
    sweep: Sweep | None = None
    """The sweep it belongs to."""


@dataclass(frozen=True)
class Found:
    """What is below a folder."""

    runs: tuple[Run, ...] = ()
    """In the order of their paths."""
    problems: tuple[str, ...] = ()
    """What could not be used and why; each begins with the path from the folder."""


def iterations_of(config: Config) -> int:
    """How many iterations a run has when it ends."""
    return math.ceil(config.steps / config.iteration_steps)


def settings(config: Config) -> str:
    """A config without its environment and seed, as text: equal for the runs of one variant."""
    values = {name: getattr(config, name) for name in config.__dataclass_fields__}
    return json.dumps({k: v for k, v in values.items() if k not in ("env", "seed")}, sort_keys=True)


def find_runs(folder: Path) -> Found:
    """All runs below a folder (or in it); links are not followed, and runs are not searched."""
    runs: list[Run] = []
    problems: list[str] = []
    sweeps: dict[Path, Sweep | None] = {}
    for here, below, files in os.walk(folder):
        path = Path(here)
        below[:] = sorted(name for name in below if not name.startswith("."))
        try:
            if SWEEP_FILE in files:
                sweeps[path] = None
                sweeps[path] = read_sweep(path)
            if "config.json" in files:
                below.clear()
                above = [sweeps[parent] for parent in (path, *path.parents) if parent in sweeps]
                run, problem = read_run(path, above[0] if above else None)
                runs.append(run)
                problems += [problem] if problem else []
        except UserError as error:
            problems.append(str(error))
    prefix = f"{folder}{os.sep}"
    return Found(tuple(runs), tuple(problem.removeprefix(prefix) for problem in problems))


def read_sweep(directory: Path) -> Sweep:
    """The ``sweep.json`` of a directory; UserError if it cannot be used."""
    file = directory / SWEEP_FILE
    data = _json(file)
    number = data.get("format") if isinstance(data, dict) else None
    if number != SWEEP_FORMAT:
        raise UserError(f"{file}: format {number!r}, this version of movi reads {SWEEP_FORMAT}")
    texts = {name: data.get(name, "") for name in ("name", "scale", "command", "version")}
    cells = data.get("cells")
    if not all(isinstance(text, str) for text in texts.values()) or not isinstance(cells, list):
        raise UserError(f"{file}: not a sweep's file, expected a name, a command and cells")
    labels: dict[tuple[str, str], str] = {}
    expected = 0
    for i, cell in enumerate(cells):
        where = f"{file}: cell {i}"
        if not isinstance(cell, dict) or not isinstance(cell.get("config"), dict):
            raise UserError(f"{where}: expected env, label, seeds and config")
        label, seeds = cell.get("label"), cell.get("seeds")
        if not isinstance(label, str) or not label or not isinstance(seeds, list):
            raise UserError(f"{where}: label {label!r} and seeds {seeds!r}, expected both")
        fields = {**cell["config"], "seed": 0}
        config = _checked(partial(Config.from_dict, fields, where), file)
        labels[config.env, settings(config)] = label
        expected += len(seeds)
    return Sweep(directory, **texts, labels=labels, expected=expected)


def read_run(path: Path, sweep: Sweep | None = None) -> tuple[Run, str]:
    """A run directory, and what is odd about it, if anything; UserError if it cannot be used."""
    file = path / "config.json"
    config = _checked(lambda: Config.from_json(_text(file), str(file)), file)
    steps, scores, odd = _read_metrics(path / "metrics.jsonl")
    status, diverged_at, problem = _read_status(path / "status.json")
    odd = odd or problem
    complete = iterations_of(config)
    if steps.size > complete:
        odd = f"{path / 'metrics.jsonl'}: {steps.size} iterations, expected at most {complete}"
        raise UserError(odd)
    state: State = "unfinished"
    if status == "diverged":
        state = "diverged"
    elif status == "finished" and steps.size == complete:
        state = "finished"
    elif status == "finished":
        odd = odd or (
            f"{path / 'metrics.jsonl'}: {steps.size} of {complete} iterations of a run that "
            "finished; counted as unfinished"
        )
    evaluation, problem = _read_evaluation(path / "evaluation.json")
    run = Run(
        path,
        config,
        state,
        scores,
        diverged_at if state == "diverged" else None,
        int((steps < (diverged_at or 0)).sum()) if state == "diverged" else None,
        evaluation,
        sweep,
    )
    return run, odd or problem


def _checked(make: Callable[[], Config], file: Path) -> Config:
    """A config whose texts are texts; whatever is wrong with it names the file."""
    try:
        config = make()
    except UserError as error:
        text = str(error)
        raise UserError(text if text.startswith(str(file)) else f"{file}: {text}") from None
    except RecursionError:
        raise UserError(f"{file}: not a run's config") from None
    for name in ("algorithm", "env", "preset"):
        value = getattr(config, name)
        if not isinstance(value, str):
            raise UserError(f"{file}: {name}: {value!r}, expected a text")
    return config


def _text(file: Path) -> str:
    try:
        if file.stat().st_size > LARGEST_FILE:
            raise UserError(f"{file}: larger than {LARGEST_FILE >> 20} MB, expected a run's file")
        return file.read_bytes().decode()
    except OSError as error:
        raise UserError(f"{file}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise UserError(f"{file}: not text, expected JSON") from None


def _json(file: Path) -> Any:
    text = _text(file)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{file}: cannot be read as JSON ({error})") from None


def _is_number(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300


def _read_metrics(file: Path) -> tuple[Array, Array, str]:
    """Steps and scores by iteration, and what is odd; an incomplete last line is left out."""
    if not file.exists():
        return np.empty(0), np.empty(0), f"{file}: not there, no iteration to show"
    lines = _text(file).split("\n")
    steps: list[float] = []
    scores: list[float] = []
    for i, line in enumerate(lines):
        if not line:
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            if i == len(lines) - 1:  # being written, or the writer was killed
                break
            raise UserError(f"{file}: line {i + 1} cannot be read as JSON ({error})") from None
        step, score = (row.get("step"), row.get("score")) if isinstance(row, dict) else (None, None)
        if not _is_number(step) or step <= (steps[-1] if steps else 0):
            raise UserError(f"{file}: line {i + 1}: step {step!r}, expected increasing steps")
        if score is not None and not _is_number(score):
            raise UserError(f"{file}: line {i + 1}: score {score!r}, expected a number or null")
        steps.append(step)
        scores.append(math.nan if score is None else score)
    return np.array(steps, float), np.array(scores, float), ""


def _read_status(file: Path) -> tuple[str, int | None, str]:
    if not file.exists():
        return "", None, f"{file}: not there; the run is counted as unfinished"
    try:
        data = _json(file)
    except UserError as error:
        return "", None, f"{error}; the run is counted as unfinished"
    status, step = (data.get("status"), data.get("step")) if isinstance(data, dict) else ("", None)
    if status not in STATES or not _is_number(step):
        odd = f"{file}: status {status!r} at step {step!r}; the run is counted as unfinished"
        return "", None, odd
    return status, int(step), ""


def _read_evaluation(file: Path) -> tuple[float | None, str]:
    if not file.exists():
        return None, ""
    try:
        data = _json(file)
    except UserError as error:
        return None, str(error)
    mean = data.get("mean") if isinstance(data, dict) else None
    if not _is_number(mean):
        return None, f"{file}: mean {mean!r}, expected a number"
    return float(mean), ""
