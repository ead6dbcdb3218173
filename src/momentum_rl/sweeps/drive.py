"""From a matrix to results: what is done already, what is left, and how it went."""

import sys
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from momentum_rl.errors import UserError, door, plain
from momentum_rl.plumbing.files import check_own_directory, directory_to_write
from momentum_rl.plumbing.sizes import readable, require
from momentum_rl.runs.files import CONFIG, ENDED, read_config
from momentum_rl.runs.lock import SWEEP_LOCK, Lock
from momentum_rl.runs.matrix import read_sweep_file
from momentum_rl.runs.sweep import (
    SWEEP_FILE,
    Sweep,
    config_changes,
    difference,
    read_sweep,
    write_sweep,
)
from momentum_rl.sweeps.jobs import Job, jobs_of
from momentum_rl.sweeps.local import Listener, ThisMachine
from momentum_rl.sweeps.named import named_sweep
from momentum_rl.sweeps.needs import needs_of
from momentum_rl.sweeps.plan import Plan, grouped
from momentum_rl.sweeps.progress import write_failure
from momentum_rl.sweeps.status import RunStatus, job_status
from momentum_rl.training.footprint import Footprint
from momentum_rl.version import __version__

Say = Callable[[str], None]


class Pool(Protocol):
    """What runs jobs: this machine's cores, or a cluster."""

    def connected(self) -> AbstractContextManager[None]:
        """Within it, the pool can be used."""

    def plan(self, sweep: Sweep, needs: tuple[Footprint, ...], jobs: Sequence[Job] | None) -> Plan:
        """How a sweep fits, or what is left of one that has begun; UserError if it does not."""

    def run(
        self,
        directory: Path,
        plan: Plan,
        jobs: Sequence[Job],
        listener: Listener,
        trust: Collection[str],
    ) -> None:
        """Runs the jobs until each has ended."""


@dataclass(frozen=True)
class Failure:
    """A run that has no result."""

    run: RunStatus
    log: Path
    """What its worker said."""


def run_sweep(
    sweep: Sweep | None,
    directory: Path,
    pool: Pool | None = None,
    *,
    command: str = "momentum_rl.sweeps.drive.run_sweep",
    trust: Collection[str] = (),
    dry_run: bool = False,
    say: Say = lambda line: None,
) -> list[Failure]:
    """Runs what a sweep's directory lacks; the runs that failed.

    Args:
      sweep: the matrix; None continues the one of the directory.
      directory: of the sweep; new, empty, or of this sweep.
      pool: what runs the jobs; this machine by default.
      command: what to write into ``sweep.json`` as its origin.
      trust: modules that environments and algorithms may name (MODULE:NAME): importing one runs
        its code.
      dry_run: say what would be done, and do nothing.
      say: is given lines for people.
    """
    pool = pool or ThisMachine()
    stored = existing(sweep, directory)
    if stored is None:
        assert sweep is not None
        left, needs = None, needs_of(sweep, trust)
        sweep = grouped(replace(sweep, command=command, version=__version__), needs)
    else:
        sweep, left = stored, left_over(directory, stored)
        if not left:
            say(_title(sweep))
            say(f"runs         {sweep.runs}, all complete")
            return []
        needs = needs_of(sweep, trust)
    with pool.connected():
        plan = pool.plan(sweep, needs, left)
        jobs = list(jobs_of(plan.sweep)) if left is None else left
        describe(plan, jobs, say)
        require("out: the runs", disk=sum(plan.disk(jobs)), directory=directory)
        if dry_run:
            for job in jobs:
                say(f"task         {job}: {job.cell.config.steps:,} steps each")
            return []
        if left is None:
            write_sweep(directory, plan.sweep)
        if sweep.version != __version__:
            say(f"version      begun with movi {sweep.version}, goes on with {__version__}")
        say(f"progress     movi status {directory} --watch")
        with closing(Lock(directory / SWEEP_LOCK, "sweep", patience=1.0)):
            discard_done(directory, plan.sweep)
            reporter = Reporter(directory, len(jobs), say)
            pool.run(directory, plan, jobs, reporter, trust)
    return reporter.failures


def existing(sweep: Sweep | None, directory: Path) -> Sweep | None:
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
    stored = read_sweep(directory)
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
    return stored


def left_over(directory: Path, sweep: Sweep) -> list[Job]:
    """The jobs that are not complete; refuses runs with another config than the matrix says."""
    left = []
    for job in jobs_of(sweep):
        for seed, path in zip(job.seeds, job.runs(directory)):
            check_own_directory(path, directory)
            if (path / CONFIG).exists():
                changed = config_changes(job.cell.config_of(seed), read_config(path))
                if changed:
                    raise UserError(f"{path}: has another config: {', '.join(changed)}")
        check_own_directory(job.log(directory).parent, directory)
        runs = list(job_status(directory, job))
        for run, path in zip(runs, job.runs(directory)):
            if run.state == "unreadable":
                raise UserError(f"{path}: {run.message}")
        if not all(run.state in ENDED for run in runs):
            left.append(job)
    return left


def describe(plan: Plan, jobs: Sequence[Job], say: Say) -> None:
    """Says what will be done."""
    sweep = plan.sweep
    left = sum(len(job.seeds) for job in jobs)
    steps = sum(len(job.seeds) * job.cell.config.steps for job in jobs)
    done = sweep.runs - left
    say(_title(sweep))
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
    at_once, results = plan.disk(jobs)
    say(
        f"disk         at most {readable(disk)} per run under way, {readable(at_once)} at once; "
        f"{readable(results)} of results"
    )


def _title(sweep: Sweep) -> str:
    means = " (only shows that everything works: its numbers mean nothing)"
    return f"sweep        {sweep.name}, scale {sweep.scale}{means * (sweep.scale == 'quick')}"


def discard_done(directory: Path, sweep: Sweep) -> None:
    """Removes what complete jobs no longer need; a driver that was killed may have left it."""
    for job in jobs_of(sweep):
        if all(run.state in ENDED for run in job_status(directory, job)):
            job.discard(directory)


class Reporter(Listener):
    """Says how the jobs go, and keeps account of those that failed."""

    def __init__(self, directory: Path, count: int, say: Say) -> None:
        self.failures: list[Failure] = []
        self._directory, self._count, self._say = directory, count, say
        self._ended = 0

    def started(self, job: Job, attempt: int) -> None:
        """Says which, and how often it was tried."""
        again = f" (attempt {attempt})" if attempt > 1 else ""
        self._say(f"started      {job}{again}")

    def ended(self, job: Job, reason: str) -> None:
        """Says how, by what the runs' own files say."""
        self._ended += 1
        runs = list(job_status(self._directory, job))
        lost = [run for run in runs if run.state not in ENDED]
        if lost and not any(run.state == "failed" for run in lost):
            write_failure(job.progress(self._directory), reason or "ended early")
            lost = [run for run in job_status(self._directory, job) if run.state not in ENDED]
        self.failures += [Failure(run, job.log(self._directory)) for run in lost]
        if not lost:
            job.discard(self._directory)
        word = "failed" if lost else runs[0].state if len(runs) == 1 else "finished"
        self._say(f"{word:12} {job} ({self._ended}/{self._count})")


def to_stdout(line: str) -> None:
    """Prints a line at once, so that a log of the driver is never behind."""
    print(plain(line))
    sys.stdout.flush()


@door
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
    command = f"momentum_rl.sweep({chosen.name!r})"
    return run_sweep(chosen, Path(out), ThisMachine(workers), command=command, trust=trust, say=say)


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
