"""How the runs of a sweep stand: what workers say of it, and the table of ``movi status``.

Rows of metrics come once an iteration, which may be an hour; a worker's progress file comes every
few seconds. It decides nothing: results are in the run directories.
"""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

from momentum_rl.errors import UserError, plain
from momentum_rl.plumbing.files import write_aside
from momentum_rl.plumbing.reading import as_json, read, read_rows
from momentum_rl.runs.files import ENDED, METRICS, read_config, read_status
from momentum_rl.runs.finding import directories, is_run
from momentum_rl.runs.lock import SWEEP_LOCK, is_locked
from momentum_rl.runs.sweep import SWEEP_FILE, read_sweep
from momentum_rl.sweeps.plan import Job, jobs_of

PERIOD = 2.0
"""Seconds between two writings of a progress file."""
STATES = ("waiting", "running", "interrupted", "finished", "diverged", "failed", "unreadable")
DEPTH = 4
"""How many folders deep runs are looked for below a directory that holds no sweep."""


@dataclass(frozen=True)
class ProgressFile:
    """What a job's worker says of it."""

    state: Literal["running", "stopped", "failed"]
    step: int = 0
    """Agent steps that each run of the job has taken."""
    steps_per_second: float | None = None
    """The speed of each run."""
    message: str = ""

    def write(self, file: Path) -> None:
        """Writes the file, if that is possible: a full disk is reported by the runs themselves."""
        with suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True)
            write_aside(file, as_json(asdict(self)) + "\n")


class Progress:
    """Keeps a job's progress file up to date while the job is under way."""

    def __init__(self, file: Path) -> None:
        self._file, self._next = file, 0.0
        self._start: tuple[float, int] | None = None
        self.says = ProgressFile("running")
        self.says.write(file)

    def reach(self, step: int) -> None:
        """Notes how far the runs are; the speed is that since the first time."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + PERIOD
        start, first = self._start = self._start or (now, step)
        speed = round((step - first) / (now - start), 1) if now > start else None
        self.says = ProgressFile("running", step, speed)
        self.says.write(self._file)

    def end(self, state: Literal["stopped", "failed"], message: str = "") -> None:
        """Notes how the job ended."""
        self.says = ProgressFile(state, self.says.step, None, message)
        self.says.write(self._file)


def read_progress(file: Path) -> ProgressFile:
    """What a progress file says; one that cannot be read says nothing."""
    try:
        return read(file, ProgressFile)
    except UserError:
        return ProgressFile("stopped")


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
    log: Path | None = None
    """What its worker printed, of a run that failed."""

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
        driven = is_locked(directory / SWEEP_LOCK)
        runs = (run for job in jobs_of(sweep) for run in job_status(directory, job, driven))
        return Overview(f"sweep {sweep.name}, {sweep.scale}", tuple(runs), driven)
    places = [path for path, files in directories(directory, DEPTH) if is_run(files)]
    if not places:
        raise UserError(
            f"{directory}: no sweep and no runs in it (no {SWEEP_FILE}, no config.json)"
        )
    return Overview(f"{len(places)} runs", tuple(map(_single_status, places)), None)


def job_status(directory: Path, job: Job, driven: bool = False) -> Iterator[RunStatus]:
    """The runs of a job, from their directories and its progress file."""
    progress, steps = read_progress(job.progress(directory)), job.cell.config.steps
    for seed, path in zip(job.seeds, job.runs(directory)):
        run = _of_files(path, RunStatus(job.cell.env, job.cell.label, seed, "waiting", 0, steps))
        if run.state not in (*ENDED, "unreadable"):
            if progress.state == "running" and driven:
                step, speed = max(run.step, progress.step), progress.steps_per_second
                run = replace(run, state="running", step=step, speed=speed, message="")
            elif progress.state == "failed":
                run = replace(run, state="failed", message=progress.message)
            elif run.state == "running":
                run = replace(run, state="interrupted")
            run = replace(run, step=min(run.step, steps))
        yield run


def _single_status(path: Path) -> RunStatus:
    """A run that belongs to no sweep."""
    try:
        config = read_config(path)
    except UserError as error:
        return _unreadable(path, RunStatus(str(path), "?", None, ""), error)
    run = RunStatus(config.env, config.algorithm, config.seed, "waiting", 0, config.steps)
    return _of_files(path, run)


def _of_files(path: Path, run: RunStatus) -> RunStatus:
    """A run as its status.json has it, and its metrics if it is under way."""
    try:
        status = read_status(path)
    except UserError as error:
        return _unreadable(path, run, error)
    if status is None:
        return run
    step = max(status.step, _last_step(path)) if status.status == "running" else status.step
    return replace(run, state=status.status, step=step, message=status.message)


def _unreadable(path: Path, run: RunStatus, error: UserError) -> RunStatus:
    return replace(run, state="unreadable", message=str(error).removeprefix(f"{path}/"))


@dataclass(frozen=True)
class _Row:
    step: int


def _last_step(path: Path) -> int:
    """The step of the last whole row of metrics; 0 if there is none that can be read."""
    try:
        return max((row.step for row in read_rows(path / METRICS, _Row)), default=0)
    except UserError:
        return 0


_STYLES = {"running": "bold", "failed": "red", "unreadable": "red", "diverged": "yellow"}


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
