"""The figures of the evidence page: does it help, on which game, and by how much."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle

from momentum_rl.report.deep import figures
from momentum_rl.report.deep.results import BASELINE, MOMENTUM, Series
from momentum_rl.report.drawing.bars import Bars, BarsFigure, bracketed
from momentum_rl.report.drawing.intervals import IntervalsFigure, Statistic
from momentum_rl.report.drawing.panels import PanelsFigure
from momentum_rl.report.drawing.styles import DEEP, FURTHER, INK, SKY, Style
from momentum_rl.report.evidence.claims import BETA_GAMES, BETAS, HEURISTIC, told
from momentum_rl.report.evidence.findings import DECOUPLED, DOUBLE
from momentum_rl.report.evidence.gathered import MAIN, Contrast, Evidence, Group
from momentum_rl.runs.finding import Score


def does_it_help(evidence: Evidence, score: Score = "greedy") -> PanelsFigure | None:
    """DQN and Momentum-DQN game by game, with the improvement where all runs have ended."""
    contrast = evidence.contrast(MOMENTUM, BASELINE, score=score)
    title = f"Does momentum help? Momentum-DQN and DQN on MinAtar, {score} score"
    return _curves(evidence, contrast, f"does-it-help-{score}", title)


def is_it_the_average(evidence: Evidence) -> PanelsFigure | None:
    """Momentum-DQN with its average and with none (β = 0), beside DQN and Double DQN."""
    contrast = evidence.contrast(MOMENTUM, DECOUPLED)
    title = "Is it the average? Momentum-DQN with β = 0 has none; greedy score"
    return _curves(evidence, contrast, "decoupling-greedy", title, beside=(BASELINE, DOUBLE))


def in_c51(evidence: Evidence) -> PanelsFigure | None:
    """C51 and Momentum-C51 beside DQN and Momentum-DQN."""
    contrast = evidence.contrast("momentum-c51", "c51")
    title = "Momentum in C51 on MinAtar, greedy score"
    return _curves(evidence, contrast, "c51-greedy", title, beside=(BASELINE, MOMENTUM))


def in_sac(evidence: Evidence, group: Group) -> PanelsFigure | None:
    """SAC and what momentum makes of it."""
    contrast = evidence.contrast("momentum-sac", "sac", score="training", group=group)
    name = f"sac-{group[0].lower()}-training"
    title = f"Momentum in SAC ({group[0]}), training score"
    return _curves(
        evidence, contrast, name, title, group=group, beside=("momentum-sac (regularised)",)
    )


def _curves(
    evidence: Evidence,
    contrast: Contrast,
    name: str,
    title: str,
    *,
    group: Group = MAIN,
    beside: Sequence[str] = (),
) -> PanelsFigure | None:
    """Curves of a contrast on its games, with the improvement above each; others beside them."""
    results = evidence.by(contrast.score, group)
    labels = (contrast.over, contrast.label, *beside)
    known = {} if results is None else {series.label: series for series in results.series}
    if results is None or not {contrast.over, contrast.label} <= known.keys():
        return None
    shown = _styled([known[label] for label in labels if label in known])
    games = [game for game in results.games if game in contrast.games]
    drawn = figures.learning_curves(results, shown, games)
    if drawn is None:
        return None
    found = contrast.comparison
    gains = {} if found is None else found.games
    panels = tuple(
        replace(panel, title=f"{panel.title}: {bracketed(gains[panel.title])}")
        if panel.title in gains
        else replace(panel, title=f"{panel.title}: not complete")
        for panel in drawn.panels
    )
    what = "gain in area"
    if beside:
        what += f" of {known[contrast.label].style.label} over {known[contrast.over].style.label}"
    # A mean over environments is the plan's for MinAtar alone.
    pooled = found is not None and len(gains) > 1 and group == MAIN
    mean = f", mean {bracketed(found.mean)}" if found is not None and pooled else ""
    count = f"{contrast.ended} of {contrast.planned} runs"
    whole = f"{len(contrast.complete)} of {len(contrast.games)} games complete, {count}"
    if contrast.is_complete:
        whole = count = f"{contrast.planned} runs"
    subtitle = f"above each game the {what}{mean} ({whole})"
    if len(panels) == 1:  # drawn large, without a title of its own
        subtitle = f"{what} on {panels[0].title} ({count})"
    return replace(
        drawn,
        name=name,
        title=title,
        subtitle=subtitle,
        panels=panels,
        note=f"{drawn.note} {told(contrast)} Protocol: {results.protocol}".strip(),
    )


def _styled(shown: Sequence[Series], *, avoided: str = SKY) -> list[Series]:
    """Each in a colour of its own among these alone: in all of the evidence they come again.

    Thin lines of sky look like blue ones, and intervals are drawn in ink: it hides them on bars.
    """
    taken = {avoided, *(one.style.colour for one in shown if one.label in DEEP)}
    looks = cycle([look for look in FURTHER if look[0] not in taken])
    return [
        one if one.label in DEEP else replace(one, style=Style(one.style.label, *next(looks)))
        for one in shown
    ]


def _contrasts(evidence: Evidence, score: Score) -> list[tuple[Series, Contrast]]:
    """Every main algorithm that the plan has on all games against DQN, as far as complete."""
    results = evidence.by(score)
    shown = [] if results is None else [s for s in results.series if s.main and s.label != BASELINE]
    games = {*evidence.contrast(MOMENTUM, BASELINE).games}
    found = {s.label: evidence.contrast(s.label, BASELINE, score=score) for s in shown}
    known = {n: own for n, own in found.items() if own.comparison and {*own.games} == games}
    listed = [s for s in shown if s.label in known]
    return [(s, known[s.label]) for s in _styled(listed, avoided=INK)]


def improvements(evidence: Evidence, score: Score) -> BarsFigure | None:
    """Improvement over DQN in area, game by game, with intervals."""
    found = _contrasts(evidence, score)
    if not found:
        return None
    complete = {game for _, own in found for game in own.complete}
    planned = dict.fromkeys(game for _, own in found for game in own.games)
    return BarsFigure(
        name=f"improvements-{score}",
        title=f"Improvement over DQN on MinAtar, {score} score",
        subtitle=f"normalised, by the area under the {score} curve; complete games alone",
        bars=tuple(
            Bars(series.style, own.comparison.games, None, _diverged(evidence, series.label))
            for series, own in found
            if own.comparison is not None
        ),
        y_title="normalised improvement",
        awaited=tuple(game for game in planned if game not in complete),
        note=_unfinished(found),
    )


def _diverged(evidence: Evidence, label: str) -> frozenset[str]:
    results = evidence.by("training")
    cells = {} if results is None else results.cells
    return frozenset(game for (game, own), cell in cells.items() if own == label and cell.diverged)


def overall(evidence: Evidence, score: Score) -> IntervalsFigure | None:
    """Mean improvement and probability of improvement over DQN, of what is complete everywhere."""
    found = [
        (series.style, own.comparison)
        for series, own in _contrasts(evidence, score)
        if own.comparison is not None and own.is_complete
    ]
    if not found:
        return None
    games = len(found[0][1].games)
    return IntervalsFigure(
        name=f"overall-{score}",
        title=f"Improvement over DQN on MinAtar, over games, {score} score",
        subtitle=f"by the area under the {score} curve, {games} games",
        panels=(
            Statistic("mean improvement", 0.0, tuple((s, own.mean) for s, own in found)),
            Statistic(
                "probability of improvement", 0.5, tuple((s, own.probability) for s, own in found)
            ),
        ),
        note=_unfinished(_contrasts(evidence, score)),
    )


def _unfinished(found: list[tuple[Series, Contrast]]) -> str:
    parts = [
        f"{series.style.label}: {own.ended} of {own.planned} runs, complete on "
        f"{', '.join(own.complete)}"
        for series, own in found
        if not own.is_complete
    ]
    return f"Not all runs have ended. {'; '.join(parts)}." if parts else ""


def beta(evidence: Evidence) -> PanelsFigure | None:
    """Momentum-DQN with fixed values of β and the heuristic, where all their runs have ended."""
    results = evidence.by("greedy")
    labels = (BASELINE, *BETAS, MOMENTUM, HEURISTIC)
    known = {} if results is None else {series.label: series for series in results.series}
    games = [game for game in BETA_GAMES if all(_is_whole(evidence, game, own) for own in labels)]
    if results is None or not games:
        return None
    drawn = figures.learning_curves(results, _styled([known[label] for label in labels]), games)
    if drawn is None:
        return None
    where = f": {games[0]}" if len(games) == 1 else ""
    panels = tuple(
        replace(p, traces=tuple(replace(t, runs=None, spread=None) for t in p.traces))
        for p in drawn.panels
    )
    return replace(
        drawn,
        name="beta-greedy",
        title=f"Influence of β on Momentum-DQN{where}",
        subtitle="greedy score, mean over seeds; fixed β, and the schedules that raise it",
        panels=panels,
    )


def _is_whole(evidence: Evidence, game: str, label: str) -> bool:
    _, ended, planned = evidence.counted(game, label)
    return 0 < ended == planned
