"""The deep half of the page: a section for each of the results below the folder.

Unlike the tabular sections it cannot be written down beforehand: which games and variants there are
is the folder's choice.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from movi.errors import UserError
from movi.reports.deep import figures, verdicts
from movi.reports.deep.gathering import published_results, results_of
from movi.reports.deep.references import Reference
from movi.reports.deep.results import Results
from movi.reports.deep.verdicts import CLAIMS, probability
from movi.reports.drawing.bars import bracketed
from movi.reports.drawing.numbers import short
from movi.reports.sections import Entry, Loaded, PageTable, Provenance, Section
from movi.reports.statistics import mean_and_deviation
from movi.runs.files import METRICS
from movi.runs.finding import Run, find_runs
from movi.runs.sweep import SWEEP_FILE

MADE_BY = "movi sweep"
INTRO = (
    "A curve is the mean over seeds of the training score, a band its standard deviation. The area "
    "under a curve is its mean over iterations, and the normalised improvement of an algorithm is "
    "(its area − DQN's area) / |DQN's area|. Intervals hold 95 % of a bootstrap that draws runs "
    "again within each game. The interquartile mean is over all runs of all games; the probability "
    "of improvement is that of a run with a larger area than one of DQN's, averaged over games."
)
PUBLISHED = (
    "The same comparison for curves that others have published: what a change of optimiser or "
    "network alone amounts to, as a yardstick for the improvements above."
)


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
    published = None if reference is None else published_results(reference)
    shown = [*results, *([published] if published is not None else [])]
    games = list(dict.fromkeys(name for own in shown for name in own.games))
    if game is not None and game not in games:
        raise UserError(f"game: {game!r}, expected one of {', '.join(games) or 'none: no runs'}")
    sections = [_section(own, INTRO, game) for own in results] or [_absent()]
    if published is not None:
        sections.append(_section(published, PUBLISHED, game))
    return tuple(sections), problems


def _absent() -> Section:
    return Section(
        name="deep",
        title="Deep agents",
        intro=INTRO,
        made_by=MADE_BY,
        load=lambda directory: None,
        entries=(),
    )


def _section(results: Results, intro: str, game: str | None) -> Section:
    return Section(
        name=results.name,
        title=results.title,
        intro=intro,
        made_by=MADE_BY,
        load=lambda directory: _loaded(results),
        entries=_entries(results, game),
    )


def _entries(results: Results, game: str | None) -> tuple[Entry, ...]:
    judged = {
        variant.label: partial(verdicts.improves, label=variant.label)
        for variant in results.variants
        if variant.main and variant.algorithm in CLAIMS
    }
    alone = {
        variant.label
        for variant in figures.compared(results)
        if figures.improvement(results, variant.label) is not None
    }
    rest = tuple(judge for label, judge in judged.items() if label not in alone)
    has_joint = figures.joint(results) is not None
    return (
        Entry(figures.curves, () if has_joint else rest),
        Entry(partial(figures.one_game, game=game), ()),
        *(
            Entry(
                partial(figures.improvement, label=variant.label),
                (judged[variant.label],) if variant.label in judged else (),
            )
            for variant in figures.compared(results)
            if variant.label in alone
        ),
        Entry(figures.joint, rest),
        Entry(figures.influence_of_beta, verdicts.about_beta(results)),
    )


def _loaded(results: Results) -> Loaded:
    if results.runs and not any(run.scores.size for run in results.runs):
        first, others = results.runs[0].path, len(results.runs) - 1
        more = f", nor in {others} more" if others else ""
        raise UserError(f"{first}: no iteration completed yet{more}")
    root = results.runs[0].root if results.runs else None
    return Loaded(
        results,
        () if root is None else (root / SWEEP_FILE,),
        _provenance(results) if results.runs else None,
        notes=(f"Protocol: {results.protocol}", *results.notes),
        tables=tuple(table for table in (_summary(results), _scores(results)) if table.rows)
        + ((_run_list(results.runs),) if results.runs else ()),
    )


def _provenance(results: Results) -> Provenance:
    """The command and version of a sweep; and the settings that all runs share."""
    configs = [run.config for run in results.runs]
    names = [name for name in configs[0].__dataclass_fields__ if name != "seed"]
    shared = {
        name: getattr(configs[0], name)
        for name in names
        if len({str(getattr(config, name)) for config in configs}) == 1
    }
    settings: dict[str, Any] = {
        name: list(value) if isinstance(value, tuple) else value for name, value in shared.items()
    }
    seeds = sorted({config.seed for config in configs})
    settings["seeds"] = ", ".join(map(str, seeds))
    if results.sweep is None:
        return Provenance(config=settings)
    return Provenance(command=results.sweep.command, config=settings, version=results.sweep.version)


def _summary(results: Results) -> PageTable:
    rows = []
    for variant in results.variants:
        comparison = results.comparisons.get(variant.label)
        if comparison is not None:
            improved = comparison.improved
            count = f"{improved.value:.0f} of {len(comparison.games)}"
            if improved.low is not None and improved.high is not None:
                count += f" [{improved.low:.0f}, {improved.high:.0f}]"
            rows.append(
                (
                    variant.style.label,
                    results.baseline_of(variant.label),
                    count,
                    bracketed(comparison.mean),
                    bracketed(comparison.median),
                    bracketed(comparison.iqm),
                    probability(comparison.probability),
                )
            )
    header = (
        "algorithm",
        "over",
        "games improved",
        "mean improvement",
        "median",
        "interquartile mean",
        "probability of improvement",
    )
    return PageTable("Improvements over all games, with 95 % intervals", header, tuple(rows))


def _scores(results: Results) -> PageTable:
    rows = []
    for game in results.games:
        for variant in results.variants:
            cell = results.cells.get((game, variant.label))
            if cell is None:
                continue
            comparison = results.comparisons.get(variant.label)
            gain = comparison.games.get(game) if comparison is not None else None
            mean, deviation = mean_and_deviation(cell.scores[cell.ended])
            ended = bool(cell.ended.any())
            area = f"{short(cell.areas.mean())} ± {short(cell.areas.std())}" if ended else ""
            last = f"{short(mean[-1])} ± {short(deviation[-1])}" if ended else ""
            final = sum(cell.evaluations) / len(cell.evaluations) if cell.evaluations else None
            rows.append(
                (
                    game,
                    variant.style.label,
                    _counts(cell.ended.size, len(cell.diverged), int((~cell.ended).sum())),
                    area,
                    last,
                    "" if final is None else short(final),
                    "" if gain is None else bracketed(gain),
                )
            )
    header = (
        "game",
        "algorithm",
        "runs",
        "area (training)",
        "last iteration (training)",
        "evaluation at the end",
        "improvement",
    )
    return PageTable("Scores, game by game", header, tuple(rows), folded=True)


def _counts(runs: int, diverged: int, unfinished: int) -> str:
    parts = [f"{diverged} diverged"] if diverged else []
    parts += [f"{unfinished} unfinished"] if unfinished else []
    return f"{runs} ({', '.join(parts)})" if parts else str(runs)


def _run_list(runs: Sequence[Run]) -> PageTable:
    rows = []
    for run in runs:
        state: str = run.state
        if run.diverged_at is not None:
            state = f"diverged at step {run.diverged_at:,}"
        done = f"{run.scores.size} of {run.config.iterations}"
        metrics = run.path / METRICS
        link: str | Path = metrics if metrics.exists() else run.path.name
        rows.append((run.config.env, run.config.algorithm, run.config.seed, state, done, link))
    header = ("environment", "algorithm", "seed", "state", "iterations", "data")
    return PageTable("The runs", header, tuple(rows), folded=True)
