"""What is shown of runs: the chapters of ``movi report``, and the table of ``movi compare``."""

import itertools
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from momentum_rl.errors import UserError
from momentum_rl.report.curves import Curve, CurvesFigure, Panel
from momentum_rl.report.figure import FORMATS
from momentum_rl.report.intervals import Entry, IntervalsFigure, bracketed
from momentum_rl.report.page import Chapter, Table, page_to_write, write_page
from momentum_rl.report.results import Results, Series, results_of
from momentum_rl.report.statistics import Estimate, mean_and_deviation, mean_of_runs
from momentum_rl.report.style import short
from momentum_rl.runs.config import FIELDS, flat
from momentum_rl.runs.files import METRICS
from momentum_rl.runs.finding import Run, find_runs
from momentum_rl.runs.sweep import SWEEP_FILE

INTRO = (
    "A curve is the mean over seeds of the training score or, in a figure of its own, of the "
    "greedy score, that of evaluations during the run; the two are never mixed. The area under a "
    "curve is its mean over its points, and the normalised improvement of an algorithm is "
    "(its area − DQN's area) / |DQN's area|. Intervals hold 95 % of a bootstrap that draws runs "
    "again within each game. From where it diverged (×) a run has the lowest score of its "
    "game; one that is not finished is drawn and not compared."
)
LEAD = "What these runs show. No sentence of a paper is judged by them."
NONE = "–"
RUNS_DRAWN = 9
"""On up to this many games every run has a line; on more, each too small for that, a band."""


def write_report(
    directory: Path,
    out: Path | None = None,
    *,
    formats: Sequence[str] = FORMATS,
    notify: Callable[[str], None] | None = None,
) -> Path:
    """Write the report on the runs below a directory to ``out``, and its figures next to it.

    Files that cannot be used are named on the page, and to ``notify``; if none can be used, or
    ``out`` cannot be written, a UserError says so and no page is written.

    Args:
      directory: with run directories, anywhere below it.
      out: the page; report.html in the directory by default.
      formats: in which the figures are written.
      notify: hears of what could not be used.
    """
    file = page_to_write(Path(directory), out, formats)
    chapters = chapters_of_runs(Path(directory))
    check_shown(Path(directory), chapters, "`movi train` or `movi sweep`")
    write_page(file, "The results of these runs", LEAD, chapters, formats)
    for problem in itertools.chain(*(chapter.problems for chapter in chapters)):
        if notify is not None:
            notify(f"{directory}{os.sep}{problem}")
    return file


def check_shown(directory: Path, chapters: Iterable[Chapter], makers: str) -> None:
    """Raises for a directory of which there is nothing to show."""
    problems = [problem for chapter in chapters for problem in chapter.problems]
    if any(chapter.figures for chapter in chapters):
        return
    if not problems:
        raise UserError(f"{directory}: no results to report, expected files written by {makers}")
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    raise UserError(f"{directory}{os.sep}{problems[0]}{more}")


def chapters_of_runs(directory: Path) -> list[Chapter]:
    """A chapter for each sweep, or suite of environments, below a directory."""
    below = find_runs(directory)
    results, odd = results_of(below.runs)
    problems = (*below.problems, *(line.replace(f"{directory}{os.sep}", "") for line in odd))
    chapters = [chapter_of(one, directory) for one in results]
    if problems:
        chapters.insert(0, Chapter("problems", "What could not be used", "", problems=problems))
    return chapters


def chapter_of(results: Results, directory: Path) -> Chapter:
    """Curves, improvements, and tables of scores, runs and settings."""
    if not any(run.training.scores.size for run in results.runs):
        first, others = results.runs[0].path, len(results.runs) - 1
        more = f", nor in {others} more" if others else ""
        problem = f"{os.path.relpath(first, directory)}: no iteration completed yet{more}"
        return Chapter(results.name, results.title, INTRO, problems=(problem,))
    kinds = [kind for kind in (results, results.greedy) if kind is not None]
    drawn = [draw(kind) for kind in kinds for draw in (all_curves, improvements)]
    roots = dict.fromkeys(run.root for run in results.runs if run.root is not None)
    tables = (
        *(
            Table(f"Improvements over all games, by the area under the {kind.score} curve", rows)
            for kind in kinds
            if (rows := _improvements(kind))
        ),
        Table("Scores, game by game", score_rows(results)),
        Table("The runs", [_listed(run) for run in results.runs], folded=True),
        Table("Settings that all runs share", _settings(results), folded=True),
    )
    return Chapter(
        results.name,
        results.title,
        INTRO,
        (*(figure for figure in drawn if figure is not None), *tables),
        files=tuple(root / SWEEP_FILE for root in roots),
    )


def learning_curves(
    results: Results, name: str, title: str, games: Sequence[str], series: Sequence[Series]
) -> CurvesFigure | None:
    """Some series on some games; None if there is nothing to draw."""
    panels, unfinished = [], []
    few = len(games) <= RUNS_DRAWN and any(len(c.scores) > 1 for c in results.cells.values())
    for game in games:
        curves = []
        for one in series:
            cell = results.cells.get((game, one.label))
            if cell is not None and not np.isnan(cell.scores).all():
                mean, deviation = mean_and_deviation(cell.scores)
                runs, spread = (cell.scores, None) if few else (None, deviation)
                curves.append(Curve(one.style, cell.steps, mean, spread, runs, cell.diverged))
                if not cell.ended.all():
                    unfinished.append(f"{one.style.label} on {game}")
        if curves:
            panels.append(Panel(game, tuple(curves)))
    if not panels:
        return None
    return CurvesFigure(
        f"{results.name}-{name}",
        title,
        f"mean {results.score} score over seeds",
        tuple(panels),
        "agent steps",
        f"{results.score} score",
        note=f"Runs are not finished: {', '.join(unfinished)}." if unfinished else "",
    )


def all_curves(results: Results) -> CurvesFigure | None:
    """Every game, every algorithm."""
    games = results.games
    where = games[0] if len(games) == 1 else "game by game"
    title = f"Learning curves by the {results.score} score, {where}"
    return learning_curves(results, "curves", title, games, results.series)


def improvements(results: Results) -> IntervalsFigure | None:
    """What each algorithm gains over its baseline, the game of the largest gain first."""
    compared = [one for one in results.series if one.label in results.comparisons]
    if not compared:
        return None
    gains = {one.label: results.comparisons[one.label].games for one in compared}
    first = gains[compared[0].label]
    games = sorted(results.games, key=lambda g: -first[g].value if g in first else np.inf)
    entries = [
        Entry(
            game, one.style, gains[one.label][game], bool(results.cells[game, one.label].diverged)
        )
        for game in games
        for one in compared
        if game in gains[one.label]
    ]
    undefined = [g for one in compared for g in results.comparisons[one.label].undefined]
    over = {results.baseline_of(one.label) for one in compared}
    return IntervalsFigure(
        f"{results.name}-improvements",
        f"Improvement over {over.pop() if len(over) == 1 else 'the DQN of the same settings'}",
        f"normalised, by the area under the {results.score} curve, with 95 % intervals",
        tuple(entries),
        "normalised improvement",
        note=f"Without {', '.join(undefined)}: the baseline's area is 0." if undefined else "",
    )


def probability(estimate: Estimate) -> str:
    """A probability with its interval; of single runs there is none.

    >>> probability(Estimate(0.8, 0.7, 0.9)), probability(Estimate(1.0))
    ('0.80 [0.70, 0.90]', '–')
    """
    return NONE if estimate.low is None else bracketed(estimate, "{:.2f}".format)


def _improvements(results: Results) -> list[dict[str, str]]:
    return [
        {
            "algorithm": series.style.label,
            "over": results.baseline_of(series.label),
            "games improved": f"{comparison.improved.value:.0f} of {len(comparison.games)}",
            "mean improvement": bracketed(comparison.mean),
            "median": bracketed(comparison.median),
            "interquartile mean": bracketed(comparison.iqm),
            "probability of improvement": probability(comparison.probability),
        }
        for series in results.series
        if (comparison := results.comparisons.get(series.label)) is not None
    ]


def score_rows(results: Results) -> list[dict[str, str]]:
    """For each algorithm on each game: means over the runs that ended, with intervals."""
    rows = []
    for game, series in itertools.product(results.games, results.series):
        cell = results.cells.get((game, series.label))
        if cell is None:
            continue
        greedy = None if results.greedy is None else results.greedy.cells.get((game, series.label))
        odd = {"diverged": len(cell.diverged), "unfinished": int((~cell.ended).sum())}
        aside = ", ".join(f"{count} {state}" for state, count in odd.items() if count)
        rows.append(
            {
                "environment": game,
                "algorithm": series.style.label,
                "runs": f"{cell.ended.size} ({aside})" if aside else str(cell.ended.size),
                "steps": f"{int(cell.steps[-1]):,}",
                "evaluation": _mean(np.array(cell.evaluations)),
                "training area": _mean(cell.areas),
                "greedy area": NONE if greedy is None else _mean(greedy.areas),
            }
        )
    return rows


def _mean(values: Any) -> str:
    """A mean over runs and its interval.

    >>> _mean(np.array([3.0])), _mean(np.array([2.0, 4.0])), _mean(np.array([]))
    ('3', '3 [2, 4]', '–')
    """
    return bracketed(mean_of_runs(values), short) if values.size else NONE


def _listed(run: Run) -> dict[str, Any]:
    diverged = run.diverged_at is not None
    metrics = run.path / METRICS
    return {
        "environment": run.config.env,
        "algorithm": run.config.algorithm,
        "seed": run.config.seed,
        "state": f"diverged at step {run.diverged_at:,}" if diverged else run.state,
        "iterations": f"{run.training.scores.size} of {run.config.iterations}",
        "data": metrics if metrics.exists() else run.path.name,
    }


def _settings(results: Results) -> list[dict[str, str]]:
    """What the runs have in common, and what made them."""
    configs = [flat(run.config) for run in results.runs]
    shared = {
        name: str(value)
        for name, value in configs[0].items()
        if name in FIELDS and len({str(config.get(name)) for config in configs}) == 1
    }
    if results.sweep is not None:
        shared |= {"command": results.sweep.command, "version": results.sweep.version}
    return [{"setting": name, "value": value} for name, value in shared.items()]


def side_by_side(places: Sequence[Path]) -> tuple[list[str], list[str]]:
    """The scores of runs as lines of text, and what could not be used."""
    runs: dict[Path, Run] = {}
    problems: list[str] = []
    for place in places:
        if not place.exists():
            raise UserError(f"{place}: no such directory")
        below = find_runs(place)
        if not below.runs:
            raise UserError(f"{place}: no runs, expected run directories or a sweep")
        runs |= {run.path: run for run in below.runs if run.path not in runs}
        problems += below.problems
    results, odd = results_of(list(runs.values()))
    games = [game for one in results for game in one.games]
    lines: list[str] = []
    for one in results:
        rows = score_rows(one)
        for game in one.games:
            whose = f" ({one.suite})" if games.count(game) > 1 else ""  # Gymnasium's or gymnax's
            cells = [[*row.values()][1:] for row in rows if row["environment"] == game]
            lines += [
                *([""] if lines else []),
                *_aligned([[f"{game}{whose}", *list(rows[0])[2:]], *cells]),
            ]
    return lines, [*problems, *odd]


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns as wide as their widest entry, the first one to the left.

    >>> _aligned([("", "runs"), ("DQN", "3")])
    ['     runs', 'DQN     3']
    """
    widths = [max(map(len, column)) for column in zip(*rows)]
    return [
        "  ".join(
            text.ljust(width) if i == 0 else text.rjust(width)
            for i, (text, width) in enumerate(zip(row, widths))
        ).rstrip()
        for row in rows
    ]
