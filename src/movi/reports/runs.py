"""Run directories, found below a folder and read as far as they can be.

A report is often wanted of runs that are still going on, were killed, or were copied in half. So
nothing in a file stops the search: what cannot be used is named in ``Found.problems``, and the rest
is read.
"""

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from movi.errors import UserError
from movi.reading import read_rows, text
from movi.reports.tables import Array
from movi.training.config import Config
from movi.training.run_files import (
    CONFIG,
    EVALUATION,
    LARGEST_SWEEP,
    METRICS,
    STATUS,
    SWEEP_FILE,
    cell_config,
    read_config,
    read_if_there,
    read_status,
    sweep_of,
)

MOST_ITERATIONS = 1_000_000
"""Of a run that is still reported: the paper's have 200."""

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
    values = config.to_dict()
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
            if CONFIG in files:
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
    found = sweep_of(text(file, LARGEST_SWEEP), str(file))
    labels: dict[tuple[str, str], str] = {}
    for i, cell in enumerate(found.cells):
        config = cell_config(cell, f"{file}: cell {i}")
        labels[config.env, settings(config)] = cell.label
    return Sweep(
        directory,
        found.name,
        found.scale,
        found.command,
        found.version,
        labels,
        sum(len(cell.seeds) for cell in found.cells),
    )


def read_run(path: Path, sweep: Sweep | None = None) -> tuple[Run, str]:
    """A run directory, and what is odd about it, if anything; UserError if it cannot be used."""
    config = read_config(path)
    if iterations_of(config) > MOST_ITERATIONS:
        raise UserError(
            f"{path / CONFIG}: {iterations_of(config):,} iterations, expected at most "
            f"{MOST_ITERATIONS:,}"
        )
    steps, scores, odd = _read_metrics(path / METRICS)
    status, diverged_at, problem = _read_status(path)
    odd = odd or problem
    complete = iterations_of(config)
    if steps.size > complete:
        odd = f"{path / METRICS}: {steps.size} iterations, expected at most {complete}"
        raise UserError(odd)
    state: State = "unfinished"
    if status == "diverged":
        state = "diverged"
    elif status == "finished" and steps.size == complete:
        state = "finished"
    elif status == "finished":
        odd = odd or (
            f"{path / METRICS}: {steps.size} of {complete} iterations of a run that "
            "finished; counted as unfinished"
        )
    evaluation, problem = _read_evaluation(path)
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


@dataclass(frozen=True)
class _Row:
    """An iteration, as far as the report needs it."""

    step: float
    score: float | None = None


@dataclass(frozen=True)
class _Evaluation:
    """An evaluation, as far as the report needs it."""

    mean: float


def _read_metrics(file: Path) -> tuple[Array, Array, str]:
    """Steps and scores by iteration, and what is odd; an incomplete last line is left out."""
    if not file.exists():
        return np.empty(0), np.empty(0), f"{file}: not there, no iteration to show"
    rows = read_rows(file, _Row)
    steps = np.array([row.step for row in rows], float)
    back = np.flatnonzero(np.diff(steps, prepend=0) <= 0)
    if back.size:
        where = f"{file}: line {back[0] + 1}"
        raise UserError(f"{where}: step {steps[back[0]]:g}, expected increasing steps")
    scores = [math.nan if row.score is None else row.score for row in rows]
    return steps, np.array(scores, float), ""


def _read_status(run: Path) -> tuple[str, int | None, str]:
    try:
        found = read_status(run)
    except UserError as error:
        return "", None, f"{error}; the run is counted as unfinished"
    if found is None:
        return "", None, f"{run / STATUS}: not there; the run is counted as unfinished"
    return found.status, found.step, ""


def _read_evaluation(run: Path) -> tuple[float | None, str]:
    try:
        found: _Evaluation | None = read_if_there(run, EVALUATION, _Evaluation)
    except UserError as error:
        return None, str(error)
    return (None if found is None else found.mean), ""
