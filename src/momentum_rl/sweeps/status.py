"""How the runs of a sweep stand, read from their directories; nothing here writes."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from momentum_rl.errors import UserError, plain
from momentum_rl.plumbing.reading import read_last_row
from momentum_rl.runs.files import ENDED, METRICS, read_config, read_status
from momentum_rl.runs.finding import directories, is_run
from momentum_rl.runs.lock import SWEEP_LOCK, is_locked
from momentum_rl.runs.sweep import SWEEP_FILE, read_sweep
from momentum_rl.sweeps.jobs import Job, jobs_of
from momentum_rl.sweeps.progress import read_progress

STATES = ("waiting", "running", "interrupted", "finished", "diverged", "failed", "unreadable")
DEPTH = 4
"""How many folders deep runs are looked for below a directory that holds no sweep."""


@dataclass(frozen=True)
class RunStatus:
    """One run."""

    env: str
    label: str
    seed: int | None
    state: str
    """One of STATES."""
    step: int = 0
    steps: int | None = None
    """Agent steps in all."""
    speed: float | None = None
    """Agent steps per second, of a run under way."""
    message: str = ""
    """What there is to say about it."""

    @property
    def left(self) -> float | None:
        """Seconds left, of a run under way."""
        if self.state != "running" or not self.speed or self.steps is None:
            return None
        return (self.steps - self.step) / self.speed


@dataclass(frozen=True)
class Overview:
    """All runs of a directory."""

    title: str
    """What the runs are."""
    runs: tuple[RunStatus, ...]
    """The runs, in the sweep's order."""
    driven: bool | None
    """Whether a `movi sweep` is at work on it; None if it holds no sweep."""

    def counts(self) -> dict[str, int]:
        """How many runs are in each state, those that occur."""
        counted = Counter(run.state for run in self.runs)
        return {state: counted[state] for state in STATES if counted[state]}

    @property
    def left(self) -> float | None:
        """Seconds left at the present speed of all runs under way together."""
        if self.driven is False:
            return None
        speed = sum(run.speed or 0.0 for run in self.runs if run.state == "running")
        if not speed or any(run.steps is None for run in self.runs):
            return None
        todo = [run for run in self.runs if run.state in ("waiting", "running", "interrupted")]
        return sum((run.steps or 0) - run.step for run in todo) / speed

    @property
    def over(self) -> bool:
        """Whether nothing is left that a `movi sweep` under way could change."""
        under_way = {"waiting", "running", "interrupted"} & set(self.counts())
        return not under_way or self.driven is False


def overview(directory: Path) -> Overview:
    """The runs of a sweep's directory, or of any directory with runs in it."""
    if not directory.exists():
        raise UserError(f"{directory}: no such directory")
    if not directory.is_dir():
        raise UserError(f"{directory}: is a file, expected a directory of runs")
    if (directory / SWEEP_FILE).exists():
        sweep = read_sweep(directory)
        runs = tuple(run for job in jobs_of(sweep) for run in job_status(directory, job))
        title = f"sweep {sweep.name}, {sweep.scale}"
        return Overview(title, runs, is_locked(directory / SWEEP_LOCK))
    places = [path for path, files in directories(directory, DEPTH) if is_run(files)]
    if not places:
        raise UserError(
            f"{directory}: no sweep and no runs in it (no {SWEEP_FILE}, no config.json)"
        )
    return Overview(f"{len(places)} runs", tuple(map(_own_status, places)), None)


def job_status(directory: Path, job: Job) -> Iterator[RunStatus]:
    """The runs of a job, from their directories and its progress file."""
    found, fresh = read_progress(job.progress(directory))
    steps = job.cell.config.steps
    for seed, path in zip(job.seeds, job.runs(directory)):
        about, speed = (job.cell.env, job.cell.label, seed), None
        try:
            state, step, message = _read_status(path)
        except UserError as error:
            yield RunStatus(*about, "unreadable", 0, steps, message=_from(path, error))
            continue
        if state not in ENDED:
            if found is not None and found.state == "running" and fresh:
                state, message, speed = "running", "", found.steps_per_second
                step = max(step, found.step)
            elif found is not None and found.state == "failed":
                state, message = "failed", found.message
            elif state == "running":
                state, step = "interrupted", max(step, _last_step(path))
            step = min(step, steps)
        yield RunStatus(*about, state, step, steps, speed, message)


def _from(path: Path, error: UserError) -> str:
    """A line about a file in a directory, without the directory's name."""
    return str(error).removeprefix(f"{path}/")


def _read_status(path: Path) -> tuple[str, int, str]:
    """What status.json says; a run that has none is waiting."""
    found = read_status(path)
    return ("waiting", 0, "") if found is None else (found.status, found.step, found.message)


@dataclass(frozen=True)
class _Row:
    step: int


def _last_step(path: Path) -> int:
    """The step of the last whole row of metrics; 0 if there is none that can be read."""
    try:
        found = read_last_row(path / METRICS, _Row)
    except UserError:
        return 0
    return 0 if found is None else found.step


def _own_status(path: Path) -> RunStatus:
    """A run that belongs to no sweep."""
    try:
        config = read_config(path)
        state, step, message = _read_status(path)
    except UserError as error:
        return RunStatus(str(path), "?", None, "unreadable", message=_from(path, error))
    step = max(step, _last_step(path)) if state == "running" else step
    return RunStatus(
        config.env, config.algorithm, config.seed, state, step, config.steps, None, message
    )


def table(seen: Overview) -> Any:
    """The runs as a table of rich's."""
    from rich.table import Table
    from rich.text import Text

    drawn = Table(title=Text(plain(seen.title)), title_justify="left", caption=summary(seen))
    drawn.caption_justify = "left"
    for name in ("environment", "algorithm"):
        drawn.add_column(name, overflow="fold")
    for name in ("seed", "state", "step", "%", "steps/s", "left"):
        drawn.add_column(name, justify="left" if name == "state" else "right", no_wrap=True)
    drawn.add_column("", overflow="fold")
    for run in seen.runs:
        drawn.add_row(*(Text(plain(text)) for text in _row(run)), style=_STYLES.get(run.state))
    return drawn


_STYLES = {"running": "bold", "failed": "red", "unreadable": "red", "diverged": "yellow"}


def _row(run: RunStatus) -> Sequence[str]:
    share = f"{100 * run.step / run.steps:.0f}" if run.steps else "–"
    speed = f"{run.speed:,.0f}" if run.speed is not None else "–"
    seed = "–" if run.seed is None else str(run.seed)
    left = duration(run.left)
    return run.env, run.label, seed, run.state, f"{run.step:,}", share, speed, left, run.message


def summary(seen: Overview) -> str:
    """One line about all runs."""
    counts = ", ".join(f"{count} {state}" for state, count in seen.counts().items())
    parts = [f"{len(seen.runs)} runs: {counts}"]
    if seen.left is not None:
        parts.append(f"about {duration(seen.left)} left")
    if seen.driven is False and not set(seen.counts()) <= set(ENDED):
        parts.append("nobody works on it (movi sweep --out DIR continues)")
    return "; ".join(parts)


def duration(seconds: float | None) -> str:
    """Seconds for people.

    >>> duration(42), duration(3720), duration(200_000), duration(None)
    ('42 s', '1 h 02 min', '2 d 07 h', '–')
    """
    if seconds is None or not math.isfinite(seconds):
        return "–"
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min"
    if whole < 2 * 86400:
        return f"{whole // 3600} h {whole % 3600 // 60:02} min"
    return f"{whole // 86400} d {whole % 86400 // 3600:02} h"
