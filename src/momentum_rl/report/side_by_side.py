"""Scores of runs side by side, as lines of text: `movi compare`."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from momentum_rl.errors import UserError
from momentum_rl.report.deep.gathering import results_of
from momentum_rl.report.deep.results import Results
from momentum_rl.report.drawing.numbers import Array, short, span
from momentum_rl.report.statistics import Estimate, mean_of_runs
from momentum_rl.runs.finding import Run, find_runs

HEADINGS = ("", "runs", "steps", "evaluation", "training area", "greedy area")
NONE = "–"


def side_by_side(places: Sequence[Path]) -> tuple[list[str], list[str]]:
    """A table for each environment, and what could not be used.

    Evaluation: the mean score at the end. Area: the mean score along the run, of the training
    episodes and of the greedy evaluations. Each is a mean over runs that ended, with the bootstrap
    interval of 95 %, of which a single run has none.
    """
    runs: list[Run] = []
    problems: list[str] = []
    for place in places:
        if not place.exists():
            raise UserError(f"{place}: no such directory")
        found = find_runs(place)
        if not found.runs:
            raise UserError(f"{place}: no runs, expected run directories or a sweep")
        runs += [run for run in found.runs if run.path not in {own.path for own in runs}]
        problems += found.problems
    results, odd = results_of(runs)
    lines: list[str] = []
    shown = [game for one in results for game in one.games]
    for one in results:
        for game in one.games:
            whose = f" ({one.suite})" if shown.count(game) > 1 else ""  # Gymnasium's or gymnax's
            lines += [
                *([""] if lines else []),
                *_aligned([(f"{game}{whose}", *HEADINGS[1:]), *_rows(one, game)]),
            ]
    return lines, [*problems, *odd]


def _rows(results: Results, game: str) -> Iterator[tuple[str, ...]]:
    for series in results.series:
        cell = results.cells.get((game, series.label))
        if cell is None:
            continue
        greedy = None if results.greedy is None else results.greedy.cells.get((game, series.label))
        unfinished = int((~cell.ended).sum())
        yield (
            series.style.label,
            f"{cell.ended.size}" + (f" ({unfinished} unfinished)" if unfinished else ""),
            span([int(cell.steps[-1])]),
            _mean(np.array(cell.evaluations)),
            _mean(cell.areas),
            NONE if greedy is None else _mean(greedy.areas),
        )


def _mean(values: Array) -> str:
    return _told(mean_of_runs(values)) if values.size else NONE


def _told(estimate: Estimate) -> str:
    """A mean and its interval.

    >>> _told(Estimate(12.345, 10.0, 15.5)), _told(Estimate(3.0))
    ('12.35 [10, 15.5]', '3')
    """
    if estimate.low is None or estimate.high is None:
        return short(estimate.value)
    return f"{short(estimate.value)} [{short(estimate.low)}, {short(estimate.high)}]"


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
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
