"""The deep half of the page: a section for each of the results below the folder.

Unlike the tabular sections it cannot be written down beforehand: which games and variants there are
is the folder's choice.
"""

import itertools
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from momentum_rl.errors import UserError
from momentum_rl.report.deep import figures, verdicts
from momentum_rl.report.deep.gathering import results_of
from momentum_rl.report.deep.published import published_results
from momentum_rl.report.deep.references import Reference
from momentum_rl.report.deep.results import Results
from momentum_rl.report.deep.verdicts import CLAIMS, probability
from momentum_rl.report.drawing.bars import bracketed
from momentum_rl.report.drawing.figure import Figure
from momentum_rl.report.drawing.numbers import short
from momentum_rl.report.sections import Entry, Loaded, PageTable, Provenance, Section
from momentum_rl.report.statistics import mean_and_deviation
from momentum_rl.runs.files import METRICS
from momentum_rl.runs.finding import Run, find_runs
from momentum_rl.runs.sweep import SWEEP_FILE

MADE_BY = "movi sweep"
INTRO = (
    "A curve is the mean over seeds of the training score or, in a figure of its own, of the "
    "greedy score, that of evaluations during the run; the two are never mixed. The area under a "
    "curve is its mean over its points, and the normalised improvement of an algorithm is "
    "(its area − DQN's area) / |DQN's area|. Intervals hold 95 % of a bootstrap that draws runs "
    "again within each game. The interquartile mean is over all runs of all games; the probability "
    "of improvement is that of a run with a larger area than one of DQN's, averaged over games."
)
PUBLISHED = (
    "The same comparison for curves that others have published: what a change of optimiser or "
    "network alone amounts to, as a yardstick for the improvements above."
)
ABSENT = Section("deep", "Deep agents", INTRO, MADE_BY, lambda directory: None, ())
"""The section of a folder without runs."""


def deep_sections(
    folder: Path, reference: Reference | None = None, game: str | None = None
) -> tuple[tuple[Section, ...], tuple[str, ...]]:
    """The sections of the runs below a folder and of published curves; and what is wrong there.

    There is one for each of the results; a single empty one if there are none.
    """
    found = find_runs(folder)
    results, odd = results_of(found.runs, reference)
    prefix = f"{folder}/"
    problems = (*found.problems, *(line.replace(prefix, "") for line in odd))
    published = () if reference is None else published_results(reference)
    shown = [*results, *published]
    games = list(dict.fromkeys(name for own in shown for name in own.games))
    if game is not None and game not in games:
        raise UserError(f"game: {game!r}, expected one of {', '.join(games) or 'none: no runs'}")
    sections = [section_of(own, INTRO, game) for own in results] or [ABSENT]
    sections += [section_of(own, PUBLISHED, game) for own in published]
    return tuple(sections), problems


def section_of(
    results: Results, intro: str = INTRO, game: str | None = None, *, judged: bool = True
) -> Section:
    """The section of some results; with the paper's claims about them, if they are to be judged."""
    return Section(
        name=results.name,
        title=results.title,
        intro=intro,
        made_by=MADE_BY,
        load=lambda directory: _loaded(results),
        entries=_entries(results, game, judged),
    )


def _entries(results: Results, game: str | None, is_judged: bool) -> tuple[Entry, ...]:
    judged = {
        series.label: partial(verdicts.improves, label=series.label)
        for series in results.series
        if is_judged and series.main and series.algorithm in CLAIMS
    }
    alone = [
        series.label
        for series in figures.compared(results)
        if figures.improvement(results, series.label) is not None
    ]
    rest = tuple(judge for label, judge in judged.items() if label not in alone)
    has_joint = figures.joint(results) is not None
    return (
        Entry(figures.curves, () if has_joint else rest),
        Entry(partial(figures.one_game, game=game)),
        *(
            Entry(
                partial(figures.improvement, label=label),
                (judged[label],) if label in judged else (),
            )
            for label in alone
        ),
        Entry(figures.joint, rest),
        Entry(figures.influence_of_beta, verdicts.about_beta(results) if is_judged else ()),
        *_greedy_entries(results),
    )


def _greedy_entries(results: Results) -> tuple[Entry, ...]:
    """The same figures by the greedy score. The paper's claims are about training scores: nothing
    is judged by these.
    """
    greedy = results.greedy
    if greedy is None:
        return ()
    drawn: tuple[Callable[[Results], Figure | None], ...] = (
        figures.curves,
        *(partial(figures.improvement, label=own.label) for own in figures.compared(greedy)),
        figures.joint,
        figures.influence_of_beta,
    )
    return tuple(Entry(partial(_by_greedy, draw=own)) for own in drawn)


def _by_greedy(results: Results, draw: Callable[[Results], Figure | None]) -> Figure | None:
    return None if results.greedy is None else draw(results.greedy)


def _loaded(results: Results) -> Loaded:
    if results.runs and not any(run.training.scores.size for run in results.runs):
        first, others = results.runs[0].path, len(results.runs) - 1
        more = f", nor in {others} more" if others else ""
        raise UserError(f"{first}: no iteration completed yet{more}")
    roots = dict.fromkeys(run.root for run in results.runs if run.root is not None)
    kinds = [own for own in (results, results.greedy) if own is not None]
    tables = (
        *(
            PageTable(
                "Improvements over all games, with 95 % intervals, by the area under the "
                f"{own.score} curve",
                _improvements(own),
            )
            for own in kinds
        ),
        *(
            PageTable(f"{own.score.capitalize()} scores, game by game", _scores(own), folded=True)
            for own in kinds
        ),
        PageTable("The runs", [_listed(run) for run in results.runs], folded=True),
    )
    return Loaded(
        results,
        tuple(root / SWEEP_FILE for root in roots),
        _provenance(results) if results.runs else None,
        notes=(*(f"Protocol: {own.protocol}" for own in kinds), *results.notes),
        tables=tuple(table for table in tables if table.rows),
    )


def _provenance(results: Results) -> Provenance:
    """The command and version of a sweep; and the settings that all runs share."""
    configs = [run.config for run in results.runs]
    settings: dict[str, Any] = {}
    for name in configs[0].__dataclass_fields__:
        values = [getattr(config, name) for config in configs]
        if name != "seed" and len(set(map(str, values))) == 1:
            settings[name] = list(values[0]) if isinstance(values[0], tuple) else values[0]
    settings["seeds"] = ", ".join(map(str, sorted({config.seed for config in configs})))
    sweeps = {run.root: run.sweep for run in results.runs if run.sweep is not None}
    return Provenance(
        command="\n".join(sweep.command for sweep in sweeps.values()),
        config=settings,
        version=", ".join(dict.fromkeys(sweep.version for sweep in sweeps.values())),
    )


def _improvements(results: Results) -> list[dict[str, str]]:
    rows = []
    for series in results.series:
        comparison = results.comparisons.get(series.label)
        if comparison is None:
            continue
        improved = comparison.improved
        count = f"{improved.value:.0f} of {len(comparison.games)}"
        if improved.low is not None and improved.high is not None:
            count += f" [{improved.low:.0f}, {improved.high:.0f}]"
        rows.append(
            {
                "algorithm": series.style.label,
                "over": results.baseline_of(series.label),
                "games improved": count,
                "mean improvement": bracketed(comparison.mean),
                "median": bracketed(comparison.median),
                "interquartile mean": bracketed(comparison.iqm),
                "probability of improvement": probability(comparison.probability),
            }
        )
    return rows


def _scores(results: Results) -> list[dict[str, str]]:
    rows = []
    for game, series in itertools.product(results.games, results.series):
        cell = results.cells.get((game, series.label))
        if cell is None:
            continue
        comparison = results.comparisons.get(series.label)
        gain = comparison.games.get(game) if comparison is not None else None
        mean, deviation = mean_and_deviation(cell.scores[cell.ended])
        ended, played = bool(cell.ended.any()), cell.evaluations
        odd = (f"{len(cell.diverged)} diverged", f"{int((~cell.ended).sum())} unfinished")
        aside = ", ".join(part for part in odd if not part.startswith("0 "))
        rows.append(
            {
                "game": game,
                "algorithm": series.style.label,
                "runs": f"{cell.ended.size} ({aside})" if aside else str(cell.ended.size),
                f"area ({results.score})": _with(cell.areas.mean(), cell.areas.std())
                if ended
                else "",
                f"last point ({results.score})": _with(mean[-1], deviation[-1]) if ended else "",
                "evaluation at the end": short(sum(played) / len(played)) if played else "",
                "improvement": "" if gain is None else bracketed(gain),
            }
        )
    return rows


def _with(value: float, deviation: float) -> str:
    return f"{short(value)} ± {short(deviation)}"


def _listed(run: Run) -> dict[str, str | int | Path]:
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
