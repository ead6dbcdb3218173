"""From a matrix to results: what is done already, what is left, and how it went."""

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from momentum_rl.errors import UserError, door, plain
from momentum_rl.plumbing.files import check_own_directory, directory_to_write
from momentum_rl.runs.files import CONFIG, ENDED, read_config
from momentum_rl.runs.lock import SWEEP_LOCK, Lock
from momentum_rl.runs.sweep import (
    SWEEP_FILE,
    Job,
    Sweep,
    config_changes,
    difference,
    jobs_of,
    read_sweep,
    read_sweep_file,
    write_sweep,
)
from momentum_rl.sweeps.local import Event, ThisMachine
from momentum_rl.sweeps.status import RunStatus, job_status, note_failure
from momentum_rl.version import __version__

if TYPE_CHECKING:
    from momentum_rl.sweeps.ray_cluster import RayCluster

Say = Callable[[str], None]
NAMED = {file.stem: file for file in sorted((Path(__file__).parent / "named").glob("*.toml"))}
"""The sweeps that have names: ``paper`` is the protocol in full; ``laptop`` keeps the matrix as far
as a night on two cores allows, with shorter runs of the same shape; ``quick`` only shows that
everything works. What each takes is in docs/sweeps.md."""


def run_sweep(
    sweep: Sweep | None,
    directory: Path,
    pool: "ThisMachine | RayCluster",
    *,
    command: str,
    trust: Collection[str] = (),
    dry_run: bool = False,
    say: Say = lambda line: None,
) -> list[RunStatus]:
    """Runs what a sweep's directory lacks; the runs that failed.

    Args:
      sweep: the matrix; None continues the one of the directory.
      directory: of the sweep; new, empty, or of this sweep.
      pool: what runs the jobs.
      command: what to write into ``sweep.json`` as its origin.
      trust: modules that environments and algorithms may name.
      dry_run: say what would be done, and do nothing.
      say: is given lines for people.
    """
    stored = existing(sweep, directory)
    if stored is None:
        assert sweep is not None
        chosen = replace(sweep, command=command, version=__version__)
        jobs = list(jobs_of(chosen))
    else:
        chosen, jobs = stored, left_over(directory, stored)
    if not jobs:
        say(_title(chosen))
        say(f"runs         {chosen.runs}, all complete")
        return []
    require_trainable(chosen, trust)
    with pool.connected():
        describe(chosen, jobs, say)
        if dry_run:
            for job in jobs:
                say(f"task         {job}: {job.cell.config.steps:,} steps")
            return []
        if stored is None:
            write_sweep(directory, chosen)
        say(f"progress     movi status {directory} --watch")
        with closing(Lock(directory / SWEEP_LOCK, "sweep")):
            for job in jobs_of(chosen):
                if job_status(directory, job).state in ENDED:
                    job.discard(directory)  # a driver that was killed may have left it
            with closing(pool.run(directory, jobs, trust)) as events:
                return follow(events, directory, len(jobs), say)


def follow(events: Iterable[Event], directory: Path, count: int, say: Say) -> list[RunStatus]:
    """Says how the jobs go; the runs that failed."""
    failed: list[RunStatus] = []
    ended = 0
    for event in events:
        job = event.job
        if event.attempt:
            again = f" (attempt {event.attempt})" if event.attempt > 1 else ""
            say(f"started      {job}{again}")
            continue
        ended += 1
        reason = event.reason or "ended early"
        note_failure(directory, job, reason)
        run = job_status(directory, job)
        if run.state in ENDED:
            job.discard(directory)
        else:
            log = job.log(directory)
            run = replace(run, state="failed", message=f"{run.message or reason} (log: {log})")
            failed.append(run)
        say(f"{run.state:12} {job} ({ended}/{count})")
    return failed


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
        path = job.run(directory)
        check_own_directory(path, directory)
        if (path / CONFIG).exists():
            changed = config_changes(job.cell.config_of(job.seed), read_config(path))
            if changed:
                raise UserError(f"{path}: has another config: {', '.join(changed)}")
        check_own_directory(job.log(directory).parent, directory)
        run = job_status(directory, job)
        if run.state == "unreadable":
            raise UserError(f"{path}: {run.message}")
        if run.state not in ENDED:
            left.append(job)
    return left


def require_trainable(sweep: Sweep, trust: Collection[str] = ()) -> None:
    """Raises unless every environment and algorithm can be made, and every run would learn."""
    from momentum_rl.envs.make import make_environment
    from momentum_rl.training.build import check_learns, configured_learner, known_config

    configs = [known_config(cell.config, None, trust) for cell in sweep.cells]
    spaces = {}
    for env in dict.fromkeys(config.env for config in configs):
        with closing(make_environment(env, 1, trust=trust)) as environment:
            spaces[env] = environment.spaces
    for config in configs:
        check_learns(config)
        configured_learner(config, spaces[config.env])


def describe(sweep: Sweep, jobs: Sequence[Job], say: Say) -> None:
    """Says what will be done."""
    left = len(jobs)
    steps = sum(job.cell.config.steps for job in jobs)
    runs = f"runs         {sweep.runs} ({len(sweep.cells)} cells)"
    if left < sweep.runs:
        runs += f", {sweep.runs - left} complete, {left} to do"
    say(_title(sweep))
    say(runs)
    say(f"steps        {steps:,} to do")


def _title(sweep: Sweep) -> str:
    title = f"sweep        {sweep.name}, scale {sweep.scale}"
    if sweep.scale == "quick":
        title += " (only shows that everything works: its numbers mean nothing)"
    return title


def to_stdout(line: str) -> None:
    """Prints a line at once, so that a log of the driver is never behind."""
    print(plain(line), flush=True)


@door
def sweep(
    matrix: str | Path | Sweep,
    out: str | Path,
    *,
    scale: str | None = None,
    workers: int | None = None,
    trust: Collection[str] = (),
    say: Say = to_stdout,
) -> list[RunStatus]:
    """Runs many runs, or what is left of them; those that failed.

    Args:
      matrix: the name of a sweep, a file of your own (.toml or .json), or a ``Sweep``.
      out: its directory; new, empty, or of this sweep.
      scale: of a sweep by name: quick, laptop or paper.
      workers: processes at once; by default one for each core.
      trust: modules that environments and algorithms may name (MODULE:NAME).
      say: is given lines for people; they are printed by default.
    """
    chosen = matrix if isinstance(matrix, Sweep) else sweep_named(str(matrix), scale, trust)
    command = f"momentum_rl.sweep({chosen.name!r})"
    return run_sweep(chosen, Path(out), ThisMachine(workers), command=command, trust=trust, say=say)


def sweep_named(name: str, scale: str | None, trust: Collection[str] = ()) -> Sweep:
    """A sweep by its name and scale, or from a file.

    >>> sweep = sweep_named("paper-atari", "paper")
    >>> sweep.runs, sweep.steps, sweep.cells[0].env, sweep.cells[0].label
    (500, 25000000000, 'ALE/Amidar-v5', 'dqn')
    """
    if name.endswith((".toml", ".json")):
        return read_sweep_file(Path(name), trust, scale)
    if name not in NAMED:
        raise UserError(
            f"sweep: {name!r}, expected one of {', '.join(NAMED)} or a file (.toml or .json)"
        )
    return read_sweep_file(NAMED[name], trust, scale)
