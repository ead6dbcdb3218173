"""How the runs of a sweep are going, by their directories alone: the table of ``movi status``.

A run is under way while its process holds its lock; how far it is, its rows of metrics say.
"""

from collections import Counter
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from momentum_rl.errors import UserError, plain
from momentum_rl.plumbing.files import write_aside
from momentum_rl.plumbing.reading import as_json, read_rows
from momentum_rl.plumbing.versions import now
from momentum_rl.runs.files import (
    ENDED,
    STATUS,
    TIMING,
    StatusFile,
    TimingRow,
    read_config,
    read_status,
)
from momentum_rl.runs.finding import directories, is_run
from momentum_rl.runs.lock import RUN_LOCK, SWEEP_LOCK, is_locked
from momentum_rl.runs.sweep import SWEEP_FILE, Job, jobs_of, read_sweep

STATES = ("waiting", "running", "interrupted", "finished", "diverged", "failed", "unreadable")
_STYLES = {"running": "bold", "failed": "red", "unreadable": "red", "diverged": "yellow"}


@dataclass(frozen=True)
class RunStatus:
    """One run."""

    env: str
    label: str
    seed: int | None
    state: str = "waiting"
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
        return (
            None if not self.speed or self.steps is None else (self.steps - self.step) / self.speed
        )


@dataclass(frozen=True)
class Overview:
    """All runs of a directory."""

    title: str
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
        speed = sum(run.speed or 0.0 for run in self.runs)
        if self.driven is False or not speed or any(run.steps is None for run in self.runs):
            return None
        todo = [run for run in self.runs if run.state in ("waiting", "running", "interrupted")]
        return sum((run.steps or 0) - run.step for run in todo) / speed

    @property
    def over(self) -> bool:
        """Whether nothing is left that a `movi sweep` under way could change."""
        return self.driven is False or not {"waiting", "running", "interrupted"} & set(
            self.counts()
        )


def overview(directory: Path) -> Overview:
    """The runs of a sweep's directory, or of any directory with runs in it."""
    if not directory.exists():
        raise UserError(f"{directory}: no such directory")
    if not directory.is_dir():
        raise UserError(f"{directory}: is a file, expected a directory of runs")
    if (directory / SWEEP_FILE).exists():
        sweep = read_sweep(directory)
        runs = (job_status(directory, job) for job in jobs_of(sweep))
        driven = is_locked(directory / SWEEP_LOCK)
        return Overview(f"sweep {sweep.name}, {sweep.scale}", tuple(runs), driven)
    places = [path for path, files in directories(directory) if is_run(files)]
    if not places:
        raise UserError(
            f"{directory}: no sweep and no runs in it (no {SWEEP_FILE}, no config.json)"
        )
    return Overview(f"{len(places)} runs", tuple(map(_single_status, places)), None)


def job_status(directory: Path, job: Job) -> RunStatus:
    """The run of a job."""
    run = RunStatus(job.cell.env, job.cell.label, job.seed, steps=job.cell.config.steps)
    return _of_files(job.run(directory), run)


def _single_status(path: Path) -> RunStatus:
    """A run that belongs to no sweep."""
    try:
        config = read_config(path)
    except UserError as error:
        return _unreadable(path, RunStatus(str(path), "?", None), error)
    run = RunStatus(config.env, config.algorithm, config.seed, steps=config.steps)
    return _of_files(path, run)


def _of_files(path: Path, run: RunStatus) -> RunStatus:
    """A run as its files have it, and whether a process is at work on it."""
    try:
        status = read_status(path)
    except UserError as error:
        return _unreadable(path, run, error)
    if status is not None:
        run = replace(run, state=status.status, step=status.step, message=status.message)
    if run.state not in ENDED:
        under_way = is_locked(path / RUN_LOCK)
        for row in _last_row(path):
            step = min(max(run.step, row.step), run.steps or row.step)
            run = replace(run, step=step, speed=row.steps_per_second if under_way else None)
        if under_way:
            run = replace(run, state="running", message="")
        elif run.state == "running":
            run = replace(run, state="interrupted")
    return run


def _unreadable(path: Path, run: RunStatus, error: UserError) -> RunStatus:
    return replace(run, state="unreadable", message=str(error).removeprefix(f"{path}/"))


def _last_row(run: Path) -> list[TimingRow]:
    """The last whole row about a run's iterations, if there is one that can be read."""
    with suppress(UserError):
        return read_rows(run / TIMING, TimingRow)[-1:]
    return []


def note_failure(directory: Path, job: Job, reason: str) -> None:
    """Writes what ended a job into its run, if that has not said it itself."""
    path, run = job.run(directory), job_status(directory, job)
    if run.state in ("waiting", "interrupted"):
        status = asdict(StatusFile("failed", run.step, reason, now()))
        with suppress(OSError, UserError):  # the disk may be full
            path.mkdir(parents=True, exist_ok=True)
            write_aside(path / STATUS, as_json(status) + "\n")


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
        share = f"{100 * run.step / run.steps:.0f}" if run.steps else "–"
        speed = f"{run.speed:,.0f}" if run.speed is not None else "–"
        seed = "–" if run.seed is None else str(run.seed)
        numbers = (seed, run.state, f"{run.step:,}", share, speed, duration(run.left))
        texts = (Text(plain(text)) for text in (run.env, run.label, *numbers, run.message))
        drawn.add_row(*texts, style=_STYLES.get(run.state))
    return drawn


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

    >>> duration(3720), duration(200_000), duration(None)
    ('1:02:00', '2 days, 7:33:20', '–')
    """
    if seconds is None or seconds > timedelta.max.total_seconds():
        return "–"
    return str(timedelta(seconds=round(seconds)))
