"""The figures of the evidence: does it help, on which game, and by how much."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import cycle

from momentum_rl.report.chapters import learning_curves
from momentum_rl.report.curves import CurvesFigure
from momentum_rl.report.figure import Figure
from momentum_rl.report.intervals import Entry, IntervalsFigure, bracketed
from momentum_rl.report.results import BASELINE, Results, Series
from momentum_rl.report.style import ALGORITHMS, FURTHER, INK, SKY, Style
from paper.claims.atari import is_main
from paper.evidence.claims import (
    BETA_GAMES,
    BETAS,
    DECOUPLED,
    DOUBLE,
    HEURISTIC,
    MOMENTUM,
    told,
)
from paper.evidence.gathered import MAIN, SAC, Contrast, Evidence, Group


def drawn() -> tuple[Callable[[Evidence], Figure | None], ...]:
    """The figures that are kept with the plan."""
    return (
        does_it_help,
        improvements,
        is_it_the_average,
        beta,
        in_c51,
        *(partial(in_sac, group=group) for group in SAC),
    )


def does_it_help(evidence: Evidence) -> CurvesFigure | None:
    """DQN and Momentum-DQN game by game, with the improvement where all runs have ended."""
    contrast = evidence.contrast(MOMENTUM, BASELINE)
    title = "Does momentum help? Momentum-DQN and DQN on MinAtar, greedy score"
    return _curves(evidence, contrast, "does-it-help-greedy", title)


def is_it_the_average(evidence: Evidence) -> CurvesFigure | None:
    """Momentum-DQN with its average and with none (β = 0), beside DQN and Double DQN."""
    contrast = evidence.contrast(MOMENTUM, DECOUPLED)
    title = "Is it the average? Momentum-DQN with β = 0 has none; greedy score"
    return _curves(evidence, contrast, "decoupling-greedy", title, others=(BASELINE, DOUBLE))


def in_c51(evidence: Evidence) -> CurvesFigure | None:
    """C51 and Momentum-C51 beside DQN and Momentum-DQN."""
    contrast = evidence.contrast("momentum-c51", "c51")
    title = "Momentum in C51 on MinAtar, greedy score"
    return _curves(evidence, contrast, "c51-greedy", title, others=(BASELINE, MOMENTUM))


def in_sac(evidence: Evidence, group: Group) -> CurvesFigure | None:
    """SAC and what momentum makes of it."""
    contrast = evidence.contrast("momentum-sac", "sac", score="training", group=group)
    name, title = f"sac-{group[0].lower()}-training", f"Momentum in SAC ({group[0]})"
    others = ("momentum-sac (regularised)",)
    return _curves(evidence, contrast, name, f"{title}, training score", group=group, others=others)


def _curves(
    evidence: Evidence,
    contrast: Contrast,
    name: str,
    title: str,
    *,
    group: Group = MAIN,
    others: Sequence[str] = (),
) -> CurvesFigure | None:
    """Curves of a contrast on its games, with the improvement above each; and of others."""
    results = evidence.by(contrast.score, group)
    known = _by_label(results)
    if results is None or not {contrast.over, contrast.label} <= known.keys():
        return None
    labels = (contrast.over, contrast.label, *others)
    shown = _styled([known[label] for label in labels if label in known])
    games = [game for game in results.games if game in contrast.games]
    figure = learning_curves(results, name, title, games, shown)
    if figure is None:
        return None
    gains = {} if contrast.comparison is None else contrast.comparison.games
    panels = tuple(
        replace(
            panel,
            title=f"{panel.title}: "
            + (bracketed(gains[panel.title]) if panel.title in gains else "not complete"),
        )
        for panel in figure.panels
    )
    pair = f"{known[contrast.label].style.label} over {known[contrast.over].style.label}"
    return replace(
        figure,
        name=name,
        subtitle=f"above each game the gain in area of {pair}",
        panels=panels,
        note=f"{figure.note} {told(contrast)}".strip(),
    )


def _by_label(results: Results | None) -> dict[str, Series]:
    return {} if results is None else {series.label: series for series in results.series}


def _styled(shown: Sequence[Series], *, avoided: str = SKY) -> list[Series]:
    """Each in a colour of its own among these alone: in all of the evidence they come again.

    Thin lines of sky look like blue ones.
    """
    taken = {avoided, *(one.style.colour for one in shown if one.label in ALGORITHMS)}
    looks = cycle([look for look in FURTHER if look[0] not in taken])
    return [
        one if one.label in ALGORITHMS else replace(one, style=Style(one.style.label, *next(looks)))
        for one in shown
    ]


def improvements(evidence: Evidence) -> IntervalsFigure | None:
    """Improvement over DQN in greedy area, game by game and, where it is complete, in the mean.

    Of every main algorithm that the plan has on all games.
    """
    games = evidence.contrast(MOMENTUM, BASELINE).games
    known = _by_label(evidence.by("greedy"))
    asked = (evidence.contrast(label, BASELINE) for label in known if label != BASELINE)
    wanted = {
        contrast.label: (contrast, contrast.comparison)
        for contrast in asked
        if is_main(known[contrast.label])
        and {*contrast.games} == {*games}
        and contrast.comparison is not None
    }
    if not wanted:
        return None
    entries, awaited = [], set(games)
    for series in _styled([known[label] for label in wanted], avoided=INK):
        contrast, comparison = wanted[series.label]
        awaited -= {*contrast.complete}
        for game, estimate in comparison.games.items():
            cell, _, _ = evidence.counted(game, series.label)
            diverged = cell is not None and bool(cell.diverged)
            entries.append(Entry(game, series.style, estimate, diverged))
        if contrast.is_complete:
            entries.append(Entry("mean", series.style, comparison.mean))
    return IntervalsFigure(
        name="improvements-greedy",
        title="Improvement over DQN on MinAtar, greedy score",
        subtitle="normalised, by the area under the greedy curve; complete games alone",
        entries=tuple(entries),
        value="normalised improvement",
        note=f"Not complete yet: {', '.join(sorted(awaited))}." if awaited else "",
    )


def beta(evidence: Evidence) -> CurvesFigure | None:
    """Momentum-DQN with fixed values of β and the heuristic, where all their runs have ended."""
    results = evidence.by("greedy")
    labels = (BASELINE, *BETAS, MOMENTUM, HEURISTIC)
    counts = {game: [evidence.counted(game, label)[1:] for label in labels] for game in BETA_GAMES}
    games = [game for game, each in counts.items() if all(0 < n == m for n, m in each)]
    if results is None or not games:
        return None
    known = _by_label(results)
    title = "Influence of β on Momentum-DQN" + (f": {games[0]}" if len(games) == 1 else "")
    shown = _styled([known[label] for label in labels])
    figure = learning_curves(results, "beta", title, games, shown)
    if figure is None:
        return None
    panels = tuple(
        replace(p, curves=tuple(replace(c, runs=None) for c in p.curves)) for p in figure.panels
    )
    subtitle = "greedy score, mean over seeds; fixed β, and the schedules that raise it"
    return replace(figure, name="beta-greedy", subtitle=subtitle, panels=panels)
