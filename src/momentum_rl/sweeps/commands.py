"""The commands ``sweep`` and ``status``."""

import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional, arg

from momentum_rl.errors import UserError, plain
from momentum_rl.plumbing.arguments import Trust

if TYPE_CHECKING:
    from momentum_rl.sweeps.local import ThisMachine
    from momentum_rl.sweeps.ray_cluster import RayCluster


@dataclass(frozen=True)
class RunSweep:
    """Run a matrix of training runs, or continue it; finished runs are not repeated."""

    name: Positional[Annotated[str | None, arg(metavar="NAME")]] = None
    """paper-atari, paper-beta, minatar or minatar-beta; or a file (.toml or .json) with a matrix of
    your own; left out, it continues what --out holds."""
    out: Annotated[Path | None, arg(metavar="DIR")] = None
    """The sweep's directory, new or empty, or one to continue (default: sweeps/NAME-SCALE)."""
    scale: Annotated[str | None, arg(metavar="SCALE")] = None
    """The size of a sweep by name: quick, laptop or paper. quick only shows that everything works:
    its numbers mean nothing. laptop takes a night on two cores. paper is the full protocol. Or one
    of the scales of your file. See docs/sweeps.md."""
    workers: Annotated[int | None, arg(metavar="N")] = None
    """Processes at once, the cores divided among them (default: one per core)."""
    ray: Annotated[str | None, arg(metavar="ADDRESS")] = None
    """Run on the Ray cluster at this address instead (HOST:PORT, or auto)."""
    cpus: Annotated[float | None, arg(metavar="N")] = None
    """With --ray: CPUs per task (default: 1)."""
    gpus: Annotated[float | None, arg(metavar="N")] = None
    """With --ray: GPUs per task (default: 0); 0.5 lets two tasks share one."""
    trust: Trust = ()
    dry_run: bool = False
    """Say what would be done, and do nothing."""

    def execute(self) -> None:
        """Run, and name the runs that failed."""
        import jax

        from momentum_rl.runs.sweep import slug
        from momentum_rl.sweeps.drive import run_sweep, sweep_named, to_stdout

        jax.config.update("jax_platforms", "cpu")  # a GPU is for the workers
        pool, sweep, out = self._pool(), None, self.out
        if self.name is not None:
            sweep = sweep_named(self.name, self.scale, self.trust)
        elif self.scale is not None:
            raise UserError("scale: only with a sweep's name")
        if out is None:
            if sweep is None:
                raise UserError("sweep: nothing, expected a name, a file, or --out to continue")
            out = Path("sweeps") / slug(f"{sweep.name}-{self.scale}" if self.scale else sweep.name)
        words = ["movi", "sweep", *([self.name] if self.name else [])]
        words += ["--scale", self.scale] if self.scale else []
        failures = run_sweep(
            sweep,
            out,
            pool,
            command=" ".join(words),
            trust=self.trust,
            dry_run=self.dry_run,
            say=to_stdout,
        )
        for run in failures:
            line = f"{run.env} {run.label} seed {run.seed} failed: {run.message}"
            print(plain(f"movi: {line}"), file=sys.stderr)
        if failures:
            sys.exit(1)
        if not self.dry_run:
            print(f"results      {out}")

    def _pool(self) -> "ThisMachine | RayCluster":
        if self.ray is None:
            from momentum_rl.sweeps.local import ThisMachine

            for name in ("cpus", "gpus"):
                if getattr(self, name) is not None:
                    raise UserError(f"{name}: only with --ray")
            return ThisMachine(self.workers)
        if self.workers is not None:
            raise UserError("workers: not with --ray; --cpus says how many a task takes")
        from momentum_rl.sweeps.ray_cluster import RayCluster

        cpus = 1.0 if self.cpus is None else self.cpus
        return RayCluster(self.ray, cpus, self.gpus or 0.0)


@dataclass(frozen=True)
class ShowStatus:
    """Show how the runs of a sweep stand: progress, speed, time left."""

    directory: Positional[Annotated[Path, arg(metavar="DIR")]]
    """The directory of a sweep, or any directory with runs in it."""
    watch: bool = False
    """Show it again every two seconds, until all runs have ended or you interrupt it."""

    def execute(self) -> None:
        """Print the table."""
        from rich.console import Console
        from rich.live import Live

        from momentum_rl.sweeps.status import overview, table

        seen = overview(self.directory)
        console = Console() if sys.stdout.isatty() else Console(width=160)
        live = Live(table(seen), console=console, auto_refresh=False)
        with suppress(KeyboardInterrupt), live:
            while self.watch and not seen.over:
                time.sleep(2)
                seen = overview(self.directory)
                live.update(table(seen), refresh=True)
