"""From a matrix to results: what is done already, what is left, and how it went."""

import shutil
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from movi.errors import UserError, check_count, plain
from movi.files import check_own_directory, directory_to_write
from movi.sizes import readable, require
from movi.sweeps.files import (
    Stored,
    log_file,
    progress_file,
    read_sweep,
    read_sweep_file,
    run_directory,
    write_sweep,
)
from movi.sweeps.local import Listener, run_local
from movi.sweeps.lock import locked
from movi.sweeps.matrix import Job, Sweep, config_changes, difference, jobs_of
from movi.sweeps.named import named_sweep
from movi.sweeps.needs import needs_of
from movi.sweeps.plan import (
    Plan,
    cores,
    disk_of,
    fitted,
    grouped,
    shares,
)
from movi.sweeps.progress import write_failure
from movi.sweeps.status import ENDED, RunStatus, job_status
from movi.training.footprint import Footprint
from movi.training.run_files import CONFIG, SWEEP_FILE, read_config
from movi.version import __version__


@dataclass(frozen=True)
class Failure:
    """A run that has no result."""

    run: RunStatus
    """The run."""
    log: Path
    """What its worker said."""


Say = Callable[[str], None]


def existing(sweep: Sweep | None, directory: Path) -> Stored | None:
    """The matrix that a directory already has, if it is this one; None if it has none."""
    directory_to_write(directory)
    if not (directory / SWEEP_FILE).exists():
        if sweep is None:
            raise UserError(f"out: {directory} has no {SWEEP_FILE}: say which sweep to run")
        if directory.is_dir() and any(directory.iterdir()):
            raise UserError(
                f"out: {directory} holds files but no sweep, expected a new or empty directory"
            )
        return None
    found = read_sweep(directory)
    stored = found.sweep
    if sweep is not None:
        if (stored.name, stored.scale) != (sweep.name, sweep.scale):
            raise UserError(
                f"out: {directory} holds the sweep {stored.name} ({stored.scale}), not "
                f"{sweep.name} ({sweep.scale}); take another directory"
            )
        changed = difference(stored, sweep)
        if changed:
            raise UserError(
                f"out: {directory} holds another matrix: {changed}; take another directory"
            )
    return found


def left_over(directory: Path, sweep: Sweep) -> list[Job]:
    """The jobs that are not complete; refuses runs with another config than the matrix says."""
    left = []
    for job in jobs_of(sweep):
        for seed in job.seeds:
            path = run_directory(directory, job.cell, seed)
            check_own_directory(path, directory)
            if (path / CONFIG).exists():
                changed = config_changes(job.cell.config_of(seed), read_config(path))
                if changed:
                    raise UserError(f"{path}: has another config: {', '.join(changed)}")
        check_own_directory(log_file(directory, job).parent, directory)
        runs = list(job_status(directory, job))
        for run in runs:
            if run.state == "unreadable":
                path = run_directory(directory, job.cell, run.seed or 0)
                raise UserError(f"{path}: {run.message}")
        if not all(run.state in ENDED for run in runs):
            left.append(job)
    return left


def describe(plan: Plan, jobs: list[Job], say: Say) -> None:
    """Says what will be done."""
    sweep = plan.sweep
    left = sum(len(job.seeds) for job in jobs)
    steps = sum(len(job.seeds) * job.cell.config.steps for job in jobs)
    done = sweep.runs - left
    say(f"sweep        {sweep.name}, scale {sweep.scale}{_means(sweep.scale)}")
    say(
        f"runs         {sweep.runs} ({len(sweep.cells)} cells)"
        + (f", {done} complete, {left} to do" if done else "")
    )
    say(f"steps        {steps:,} to do")
    needs = [plan.needs[job.index] for job in jobs]
    replay, disk = max(n.replay for n in needs), max(n.disk for n in needs)
    memory = sorted((plan.memory(job) for job in jobs), reverse=True)[: plan.workers]
    say(
        f"memory       replay of at most {readable(replay)} per run; "
        f"about {readable(sum(memory))} at once with {plan.workers} workers"
    )
    at_once, results = disk_of(plan, jobs)
    say(
        f"disk         at most {readable(disk)} per run under way, {readable(at_once)} at once; "
        f"{readable(results)} of results"
    )


def _means(scale: str) -> str:
    return " (only shows that everything works: its numbers mean nothing)" * (scale == "quick")


@dataclass(frozen=True)
class Begin:
    """A sweep and its directory, before anything is started."""

    sweep: Sweep
    """The matrix."""
    needs: tuple[Footprint, ...]
    """What a run of each cell takes; not asked if nothing is left to do."""
    begun: bool
    """Whether the directory has it already, so that its grouping is settled."""
    jobs: tuple[Job, ...]
    """What is not complete; of a sweep that has begun."""
    version: str
    """Of movi, that began it."""

    @property
    def complete(self) -> bool:
        """Whether nothing is left to do."""
        return self.begun and not self.jobs


def begin(sweep: Sweep | None, directory: Path, trust: Collection[str] = ()) -> Begin:
    """Looks at what there is; ``None`` continues the sweep of the directory."""
    stored = existing(sweep, directory)
    if stored is not None:
        left = tuple(left_over(directory, stored.sweep))
        needs = needs_of(stored.sweep, trust) if left else ()
        return Begin(stored.sweep, needs, True, left, stored.version)
    assert sweep is not None
    needs = needs_of(sweep, trust)
    return Begin(grouped(sweep, needs), needs, False, (), __version__)


def nothing_left(start: Begin, say: Say) -> list[Failure]:
    """Says that a sweep is complete."""
    say(f"sweep        {start.sweep.name}, scale {start.sweep.scale}{_means(start.sweep.scale)}")
    say(f"runs         {start.sweep.runs}, all complete")
    return []


def settle(
    start: Begin, plan: Plan, directory: Path, command: str, *, dry_run: bool, say: Say
) -> list[Job]:
    """Says what will be done and writes the matrix down, unless it is a dry run; the jobs."""
    jobs = list(start.jobs if start.begun else jobs_of(plan.sweep))
    describe(plan, jobs, say)
    require("out: the runs", disk=sum(disk_of(plan, jobs)), directory=directory)
    if dry_run:
        for job in jobs:
            say(f"task         {job}: {job.cell.config.steps:,} steps each")
        return []
    if not start.begun:
        write_sweep(directory, plan.sweep, command)
    if start.version != __version__:
        say(f"version      begun with movi {start.version}, goes on with {__version__}")
    say(f"progress     movi status {directory} --watch")
    return jobs


def to_stdout(line: str) -> None:
    """Prints a line at once, so that a log of the driver is never behind."""
    print(plain(line))
    sys.stdout.flush()


def run_sweep(
    sweep: Sweep | None,
    directory: Path,
    *,
    workers: int | None = None,
    command: str = "movi.sweeps.drive.run_sweep",
    trust: Collection[str] = (),
    dry_run: bool = False,
    say: Say = lambda line: None,
) -> list[Failure]:
    """Runs what a sweep's directory lacks, on this machine; the runs that failed.

    Args:
      sweep: the matrix; None continues the one of the directory.
      directory: of the sweep; new, empty, or of this sweep.
      workers: processes at once; by default one for each core, as many as memory allows.
      command: what to write into ``sweep.json`` as its origin.
      trust: modules that environments' ids may name (MODULE:NAME): importing one runs its code.
      dry_run: say what would be done, and do nothing.
      say: is given lines for people.
    """
    check_count("workers", 1 if workers is None else workers, most=1_000)
    start = begin(sweep, directory, trust)
    if start.complete:
        return nothing_left(start, say)
    plan = fitted(
        start.sweep,
        start.needs,
        workers,
        jobs=start.jobs if start.begun else None,
    )
    jobs = settle(start, plan, directory, command, dry_run=dry_run, say=say)
    if not jobs:
        return []
    with locked(directory):
        discard_done(directory, plan.sweep)
        listener = Reporter(directory, len(jobs), say)
        run_local(directory, jobs, shares(cores(), plan.workers), listener, trust)
    return listener.failures


def sweep(
    matrix: str | Path | Sweep,
    out: str | Path,
    *,
    scale: str | None = None,
    workers: int | None = None,
    trust: Collection[str] = (),
    say: Say = to_stdout,
) -> list[Failure]:
    """Runs many runs, or what is left of them; those that failed.

    Args:
      matrix: the name of a sweep, a file of your own (.toml or .json), or a ``Sweep``.
      out: its directory; new, empty, or of this sweep.
      scale: of a sweep by name: quick, laptop or paper.
      workers: processes at once; by default one for each core, as many as memory allows.
      trust: modules that environments and algorithms may name (MODULE:NAME).
      say: is given lines for people; they are printed by default.
    """
    chosen = matrix if isinstance(matrix, Sweep) else sweep_named(str(matrix), scale, trust)
    command = f"movi.sweep({chosen.name!r})"
    return run_sweep(chosen, Path(out), workers=workers, command=command, trust=trust, say=say)


def sweep_named(name: str, scale: str | None, trust: Collection[str] = ()) -> Sweep:
    """A sweep by its name and scale, or from a file."""
    if name.endswith((".toml", ".json")):
        if scale is not None:
            raise UserError(f"scale: {scale!r}, but a file has none: it says everything")
        return read_sweep_file(Path(name), trust)
    found = named_sweep(name, scale or "quick")
    if scale is None:
        raise UserError(f"sweep {name}: no --scale, expected quick, laptop or paper")
    return found


def discard_done(directory: Path, sweep: Sweep) -> None:
    """Removes what complete jobs no longer need; a driver that was killed may have left it."""
    for job in jobs_of(sweep):
        if all(run.state in ENDED for run in job_status(directory, job)):
            discard(directory, job)


def discard(directory: Path, job: Job) -> None:
    """Removes checkpoints and replays of a complete job: 400 Atari replays are 3 TB."""
    for seed in job.seeds:
        for name in ("checkpoint", "replay"):
            shutil.rmtree(run_directory(directory, job.cell, seed) / name, ignore_errors=True)


class Reporter(Listener):
    """Says how the jobs go, and keeps account of those that failed."""

    def __init__(self, directory: Path, count: int, say: Say) -> None:
        """Of this many jobs."""
        self.failures: list[Failure] = []
        self._directory, self._count, self._say = directory, count, say
        self._ended = 0

    def started(self, job: Job, attempt: int) -> None:
        """Says so."""
        again = f" (attempt {attempt})" if attempt > 1 else ""
        self._say(f"started      {job}{again}")

    def ended(self, job: Job, reason: str) -> None:
        """Says so, and looks at what the runs' own files say."""
        self._ended += 1
        runs = list(job_status(self._directory, job))
        lost = [run for run in runs if run.state not in ENDED]
        if lost and not any(run.state == "failed" for run in lost):
            write_failure(progress_file(self._directory, job), reason or "ended early")
            lost = [run for run in job_status(self._directory, job) if run.state not in ENDED]
        log = log_file(self._directory, job)
        self.failures += [Failure(run, log) for run in lost]
        if not lost:
            discard(self._directory, job)
        word = "failed" if lost else runs[0].state if len(runs) == 1 else "finished"
        self._say(f"{word:12} {job} ({self._ended}/{self._count})")
