"""The page on the paper's experiments: tables of `python -m paper …`, and runs of deep agents."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from momentum_rl.errors import one_line


@dataclass(frozen=True)
class Report:
    """Judge the paper's sentences on a directory of results, on one self-contained HTML page."""

    directory: Positional[Annotated[Path, arg(metavar="DIR")]]
    """What the other commands wrote, and what `movi train` and `movi sweep` did below it."""
    out: Annotated[Path | None, arg(metavar="PAGE")] = None
    """The page; figures go next to it (default: DIR/report.html)."""
    format: tuple[Literal["pdf", "png", "svg", "csv"], ...] = ("pdf", "png", "svg")
    """What the figures are written as; csv for their numbers."""

    def execute(self) -> None:
        """Write the page and say where it is."""
        page = write_report(self.directory, self.out, self.format)
        print(f"report       {page}")


def write_report(
    directory: Path,
    out: Path | None = None,
    formats: Sequence[str] = ("pdf", "png", "svg"),
) -> Path:
    """Write the page; what could not be used is named on it and on standard error."""
    from momentum_rl.report.chapters import check_shown
    from momentum_rl.report.page import Chapter, page_to_write, write_page
    from momentum_rl.report.results import results_of
    from momentum_rl.runs.finding import find_runs
    from paper.claims.atari import chapter_on
    from paper.claims.experiments import chapters_of_tables

    file = page_to_write(directory, out, formats)
    below = find_runs(directory)
    results, odd = results_of(below.runs)
    pairs = chapters_of_tables(directory) + [chapter_on(one, directory) for one in results]
    judged = [remark for _, remarks in pairs for remark in remarks]
    chapters = [chapter for chapter, _ in pairs]
    problems = (*below.problems, *(line.replace(f"{directory}{os.sep}", "") for line in odd))
    if problems:
        unused = Chapter("problems", "What could not be used", "", problems=problems)
        chapters.insert(0, unused)
    check_shown(directory, chapters, "`python -m paper`, `movi train` or `movi sweep`")
    write_page(
        file, "Momentum in Reinforcement Learning: the results", lead(judged), chapters, formats
    )
    for chapter in chapters:
        for problem in chapter.problems:
            print(f"movi: {one_line(f'{directory}{os.sep}{problem}')}", file=sys.stderr)
    return file


def lead(judged: Sequence[object]) -> str:
    """The page's first paragraph: how many sentences are judged, and how."""
    from paper.verdict import HOLDS, Verdict

    verdicts = [one for one in judged if isinstance(one, Verdict)]
    kinds = {
        "observations are reproduced": [v for v in verdicts if v.affirmed != HOLDS],
        "theorems hold": [v for v in verdicts if v.affirmed == HOLDS],
    }
    parts = [
        f"{sum(v.confirmed is True for v in kind)} of {len(kind)} {words}"
        for words, kind in kinds.items()
        if kind
    ]
    empty = sum(bool(v.but) for v in kinds["theorems hold"])
    undecided = sum(v.confirmed is None for v in verdicts)
    parts += [f"{empty} of them by bounds that say nothing here"] if empty else []
    parts += [f"{undecided} cannot be decided"] if undecided else []
    return (
        "What the paper claims, what these runs show, and the verdict computed from the data. A "
        "verdict is given only where the paper makes a statement, which is quoted: "
        f"{', '.join(parts) or 'none is judged by these runs'}."
    )


def draw(directory: Path, table: str) -> None:
    """Draw the figures of one experiment's table next to it, and say what they show."""
    from momentum_rl.plumbing.files import check_own_directory
    from momentum_rl.report.page import FIGURES
    from paper.claims.experiments import EXPERIMENTS

    (experiment,) = [one for one in EXPERIMENTS if one.table == table]
    check_own_directory(directory / FIGURES, directory)
    chapter, judged = experiment.chapter(directory)
    files = [path for figure in chapter.figures for path in figure.save(directory / FIGURES)]
    print(f"figures      {', '.join(sorted({str(file.with_suffix('')) for file in files}))}")
    for remark in judged:
        print(f"\n{remark.heading}\n  {remark.seen}")
