"""Run directories, found below a folder and read as far as they can be.

A report is often wanted of runs that are still going on, were killed, or were copied in half. So
nothing in a file stops the search: what cannot be used is named in ``Found.problems``, and the rest
is read.
"""

import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from momentum_rl.errors import UserError
from momentum_rl.plumbing.reading import read_rows
from momentum_rl.runs.config import Config
from momentum_rl.runs.files import (
    CONFIG,
    EVALUATION,
    EVALUATIONS,
    METRICS,
    STATUS,
    EvaluationFile,
    EvaluationRow,
    read_config,
    read_if_there,
    read_status,
)
from momentum_rl.runs.sweep import RUNS, SWEEP_FILE, Sweep, read_sweep

MOST_ITERATIONS = 1_000_000
"""Iterations of a run that is read at most; the paper's runs have 200."""

State = Literal["finished", "diverged", "unfinished"]
Score = Literal["training", "greedy"]
"""Training: of the episodes that ended in an iteration. Greedy: of the evaluations during the run.
The two differ by up to three times and are never mixed."""


@dataclass(frozen=True)
class Curve:
    """Scores of one kind along a run."""

    steps: NDArray[np.float64]
    """The agent steps at which the run has a score of this kind, or should have had."""
    scores: NDArray[np.float64]
    """At the first of them, as far as the run has got; NaN where it has none."""
    diverged_in: int | None = None
    """The first of them (from 0) that a run that diverged did not reach before."""


@dataclass(frozen=True)
class Run:
    """A run directory."""

    path: Path
    config: Config
    state: State
    """Finished and diverged runs have ended; whatever else happened to others, they have not."""
    training: Curve
    """By iteration: the mean raw score of the training episodes that ended in it."""
    greedy: Curve | None = None
    """By evaluation during the run: the mean raw score of its episodes; None if it has none."""
    diverged_at: int | None = None
    """The agent step, if it diverged."""
    evaluation: float | None = None
    """The mean score of the evaluation at its end."""
    sweep: Sweep | None = None
    """The sweep below whose directory it is."""
    root: Path | None = None
    """That directory."""
    cell: int | None = None
    """The number of its cell in the sweep, if it is at a cell's place and has the cell's config."""

    def curve(self, score: Score) -> Curve | None:
        """Its scores of a kind; None if it has none."""
        return self.training if score == "training" else self.greedy

    @property
    def label(self) -> str | None:
        """What the sweep calls its variant, if it has a cell there."""
        if self.sweep is None or self.cell is None:
            return None
        return self.sweep.cells[self.cell].label


@dataclass(frozen=True)
class Found:
    """What is below a folder."""

    runs: tuple[Run, ...] = ()
    """In the order of their paths."""
    problems: tuple[str, ...] = ()
    """What could not be used and why; each begins with the path from the folder."""


def directories(folder: Path) -> Iterator[tuple[Path, set[str]]]:
    """A folder and those below it, with the names of their files.

    Links are not followed, hidden folders are left out, and nothing is looked for below a run.
    """
    for here, below, files in os.walk(folder):
        path, names = Path(here), set(files)
        below[:] = sorted(name for name in below if not name.startswith("."))
        if is_run(names):
            below.clear()
        yield path, names


def is_run(files: set[str]) -> bool:
    """Whether a directory of these files is a run's, and not of some other program."""
    return CONFIG in files and bool({STATUS, METRICS} & files)


def find_runs(folder: Path) -> Found:
    """All runs below a folder, or in it."""
    runs: list[Run] = []
    problems: list[str] = []
    sweeps: dict[Path, Sweep | None] = {}
    for path, files in directories(folder):
        try:
            if SWEEP_FILE in files:
                sweeps[path] = None
                sweeps[path] = read_sweep(path)
            if CONFIG in files:
                root = next((above for above in (path, *path.parents) if above in sweeps), None)
                sweep = None if root is None else sweeps[root]
                run, problem = read_run(path, sweep, root if sweep else None)
                runs.append(run)
                problems += [problem] if problem else []
        except UserError as error:
            problems.append(str(error))
    prefix = f"{folder}{os.sep}"
    return Found(tuple(runs), tuple(problem.removeprefix(prefix) for problem in problems))


def read_run(path: Path, sweep: Sweep | None = None, root: Path | None = None) -> tuple[Run, str]:
    """A run directory, and what is odd about it, if anything; UserError if it cannot be used."""
    config, odd = read_config(path), list[str]()
    scores = _training_scores(path / METRICS, config, odd)
    state: State = "unfinished"
    diverged_at = None
    with _noted(odd, "; the run is counted as unfinished"):
        status = read_status(path)
        if status is None:
            raise UserError(f"{path / STATUS}: not there")
        if status.status == "diverged":
            state, diverged_at = "diverged", status.step
        elif status.status == "finished" and scores.size == config.iterations:
            state = "finished"
        elif status.status == "finished":
            rows = f"{scores.size} of {config.iterations} iterations of a run that finished"
            odd.append(f"{path / METRICS}: {rows}; counted as unfinished")
    evaluation: EvaluationFile | None = None
    with _noted(odd):
        evaluation = read_if_there(path, EVALUATION, EvaluationFile)
    greedy = None
    with _noted(odd):
        greedy = _greedy_curve(path / EVALUATIONS, config, diverged_at, odd)
    cell = None
    if sweep is not None and root is not None and path.is_relative_to(root / RUNS):
        cell = sweep.index_of(PurePosixPath(path.relative_to(root / RUNS).as_posix()), config)
    run = Run(
        path,
        config,
        state,
        _curve(config.iteration_ends, scores, diverged_at),
        greedy,
        diverged_at,
        None if evaluation is None else evaluation.mean,
        sweep,
        root,
        cell,
    )
    return run, next(iter(odd), "")


@contextmanager
def _noted(odd: list[str], meaning: str = "") -> Iterator[None]:
    """What is wrong with a file is odd about the run, and no more."""
    try:
        yield
    except UserError as error:
        odd.append(f"{error}{meaning}")


@dataclass(frozen=True)
class _Row:
    """An iteration, as far as its score goes."""

    step: float
    score: float | None = None


def _training_scores(file: Path, config: Config, odd: list[str]) -> NDArray[np.float64]:
    """The scores by iteration; an incomplete last line is left out."""
    if config.iterations > MOST_ITERATIONS:
        raise UserError(
            f"{file.with_name(CONFIG)}: {config.iterations:,} iterations, expected at most "
            f"{MOST_ITERATIONS:,}"
        )
    if not file.exists():
        odd.append(f"{file}: not there, no iteration to show")
        return np.empty(0)
    rows = read_rows(file, _Row)
    steps = np.array([row.step for row in rows], float)
    back = np.flatnonzero(np.diff(steps, prepend=0) <= 0)
    if back.size:
        where = f"{file}: line {back[0] + 1}"
        raise UserError(f"{where}: step {steps[back[0]]:g}, expected increasing steps")
    if steps.size > config.iterations:
        raise UserError(f"{file}: {steps.size} iterations, expected at most {config.iterations}")
    return np.array([math.nan if row.score is None else row.score for row in rows], float)


def _curve(steps: Sequence[int], scores: NDArray[np.float64], diverged_at: int | None) -> Curve:
    due = np.array(steps, float)
    return Curve(due, scores, None if diverged_at is None else int((due < diverged_at).sum()))


def _greedy_curve(
    file: Path, config: Config, diverged_at: int | None, odd: list[str]
) -> Curve | None:
    """The evaluations during a run; those that were not due are left out."""
    due = [step for step in config.iteration_ends if config.evaluates_at(step)]
    if not due or not file.exists():
        return None
    means = {row.step: row.mean for row in read_rows(file, EvaluationRow)}
    other = next((step for step in means if step not in set(due)), None)
    if other is not None:
        odd.append(f"{file}: step {other}, at which no evaluation was due")
    got = [step for step in due if step <= max(means, default=0)]
    scores = np.array([means.get(step, math.nan) for step in got], float)
    return _curve(due, scores, diverged_at)
