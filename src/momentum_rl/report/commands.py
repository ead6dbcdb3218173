"""`movi report` and `movi compare`."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from momentum_rl.errors import UserError, one_line


@dataclass(frozen=True)
class Report:
    """Turn runs into one self-contained HTML page, and figures for papers."""

    directory: Positional[Annotated[Path, arg(metavar="DIR")]]
    """What `movi train` and `movi sweep` wrote, anywhere below it."""
    out: Annotated[Path | None, arg(metavar="PAGE")] = None
    """The page; figures go next to it (default: DIR/report.html)."""
    format: tuple[Literal["pdf", "png", "svg", "csv"], ...] = ("pdf", "png", "svg")
    """What the figures are written as; csv for their numbers."""

    def execute(self) -> None:
        """Write the page and say where it is."""
        from momentum_rl.report.chapters import write_report

        page = write_report(self.directory, self.out, formats=self.format, notify=complain)
        print(f"report       {page}")


@dataclass(frozen=True)
class Compare:
    """Print the scores of runs side by side, with intervals over seeds."""

    runs: Positional[Annotated[tuple[Path, ...], arg(metavar="RUN …")]]
    """Run directories, sweeps, or folders of them."""

    def execute(self) -> None:
        """Print a table for each environment."""
        from momentum_rl.report.chapters import side_by_side

        if not self.runs:
            raise UserError("runs: none, expected run directories, sweeps or folders of them")
        lines, problems = side_by_side(self.runs)
        for problem in problems:
            complain(problem)
        print("\n".join(lines))
        print(
            "\nevaluation: mean score at the end; area: mean score along the run; [95 % bootstrap "
            "interval over runs that ended]"
        )


def complain(problem: str) -> None:
    """Say what could not be used."""
    print(f"movi: {one_line(problem)}", file=sys.stderr)
