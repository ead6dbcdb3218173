"""The paper's figures of deep agents (Section 7.2, appendix), each defined once.

A function returns None when the results lack what it draws.
"""

from collections.abc import Sequence
from dataclasses import replace

from momentum_rl.report.deep.results import BASELINE, MOMENTUM, Results, Series
from momentum_rl.report.drawing.bars import Bars, BarsFigure
from momentum_rl.report.drawing.panels import Panel, PanelsFigure, Trace
from momentum_rl.report.drawing.styles import PUBLISHED, Style
from momentum_rl.report.statistics import mean_and_deviation
from momentum_rl.runs.sweep import slug

LARGE = "SpaceInvaders"
"""The game that the paper shows large; where it is absent, the first one."""


TITLES = {"training": "Learning curves", "greedy": "Learning curves of the greedy policy"}
"""By kind of score."""
FRAMES = 4
"""Frames of an agent step of Atari."""


def _axis(suite: str) -> tuple[str, float]:
    """What the horizontal axis counts, and how many of it an agent step is: published Atari curves
    count frames.
    """
    return ("million frames", FRAMES / 1e6) if suite == "Atari" else ("agent steps", 1.0)


def _trace(results: Results, game: str, series: Series) -> Trace | None:
    cell = results.cells.get((game, series.label))
    if cell is None:
        return None
    mean, deviation = mean_and_deviation(cell.scores)
    x = cell.steps * _axis(results.suite)[1]
    return Trace(series.style, x, mean, deviation, cell.diverged, cell.scores)


def _published(results: Results, game: str) -> list[Trace]:
    """The reference's curves of a game, in grey, as far as ours go."""
    reference = results.reference
    if reference is None:
        return []
    longest = max(c.steps[-1] for (g, _), c in results.cells.items() if g == game)
    traces = []
    for name, look in zip(reference.variants, PUBLISHED * len(reference.variants)):
        own = reference.curves.get((game, name))
        if own is not None:
            style = Style(f"{name} (published)", *look)
            within = (own.steps > 0) & (own.steps <= longest)
            mean = mean_and_deviation(own.scores)[0]
            traces.append(Trace(style, own.steps[within] * _axis(results.suite)[1], mean[within]))
    return traces


def _panels(
    results: Results, games: Sequence[str], shown: Sequence[Series], *, overlay: bool
) -> list[Panel]:
    panels = []
    for game in games:
        traces = [_trace(results, game, series) for series in shown]
        known = [trace for trace in traces if trace is not None and trace.mean.size]
        if any((trace.mean == trace.mean).any() for trace in known):  # something that is not NaN
            panels.append(Panel(game, (*known, *(_published(results, game) if overlay else ()))))
    return panels


def _learning_curves(
    results: Results, name: str, title: str, games: Sequence[str], shown: Sequence[Series]
) -> PanelsFigure | None:
    panels = _panels(results, games, shown, overlay=name != "beta")
    if not panels:
        return None
    unfinished = any(results.count(series.label)[2] for series in shown)
    note = "Where runs are not finished, the mean is over those that have got so far."
    whose = " of Momentum-DQN" if name == "beta" else ""
    return PanelsFigure(
        name=f"{results.name}-{name}",
        title=title,
        subtitle=f"{results.score} score{whose}, mean over seeds",
        panels=tuple(panels),
        x_title=_axis(results.suite)[0],
        y_title=f"{results.score} score",
        note=note if unfinished else "",
    )


def learning_curves(
    results: Results, shown: Sequence[Series], games: Sequence[str]
) -> PanelsFigure | None:
    """Some series on some games."""
    return _learning_curves(results, "curves", TITLES[results.score], games, shown)


def curves(results: Results) -> PanelsFigure | None:
    """Appendix, "All averaged training scores …": every game, every algorithm."""
    shown = [series for series in results.series if series.main]
    title = TITLES[results.score]
    figure = _learning_curves(results, "curves", f"{title}, game by game", results.games, shown)
    if figure is None or len(figure.panels) > 1:
        return figure
    return replace(figure, title=f"{title}: {figure.panels[0].title}")


def one_game(results: Results, game: str | None = None) -> PanelsFigure | None:
    """Section 7.2, "Scores obtained on SpaceInvaders by DQN and Momentum-DQN"."""
    main = [series for series in results.series if series.main]
    pair = [
        next((series for series in main if series.algorithm == algorithm), None)
        for algorithm in (BASELINE, MOMENTUM)
    ]
    shown = [series for series in pair if series is not None] if all(pair) else main[:2]
    known = [g for g in results.games if all((g, s.label) in results.cells for s in shown)]
    if len(results.games) < 2 or len(shown) < 2 or not known:
        return None
    chosen = game if game in known else LARGE if LARGE in known else known[0]
    title = f"{' and '.join(series.style.label for series in shown)} on {chosen}"
    title += ", greedy" if results.score == "greedy" else ""
    return _learning_curves(results, "one-game", title, [chosen], shown)


def compared(results: Results) -> list[Series]:
    """The main variants that have a comparison with a baseline."""
    return [v for v in results.series if v.main and v.label in results.comparisons]


def _bars(results: Results, series: Series, *, with_mean: bool) -> Bars:
    comparison = results.comparisons[series.label]
    diverged = {
        game
        for (game, label), cell in results.cells.items()
        if label == series.label and cell.diverged
    }
    mean = comparison.mean.value if with_mean and len(comparison.games) > 1 else None
    return Bars(series.style, comparison.games, mean, frozenset(diverged))


def improvement(results: Results, label: str) -> BarsFigure | None:
    """Section 7.2, "Normalized improvement of … over DQN"; None for a single game."""
    comparison = results.comparisons.get(label)
    if comparison is None or len(comparison.games) < 2:
        return None
    series = results.labelled(label)
    baseline = results.baseline_of(label)
    return BarsFigure(
        name=f"{results.name}-improvement-{slug(label)[:60]}",
        title=f"Normalised improvement of {series.style.label} over {baseline}",
        subtitle=f"by the area under the {results.score} curve",
        bars=(_bars(results, series, with_mean=True),),
        note=_left_out(comparison.undefined),
        y_title="normalised improvement",
    )


def _left_out(undefined: Sequence[str]) -> str:
    if not undefined:
        return ""
    return f"Without {', '.join(undefined)}: the baseline's area is 0 there."


def joint(results: Results) -> BarsFigure | None:
    """Appendix, "AUC improvement over DQN of Momentum-DQN, DSQL and DDPP"."""
    shown = compared(results)
    if not shown or (len(shown) == 1 and len(results.games) > 1):
        return None
    baselines = {results.baseline_of(series.label) for series in shown}
    over = baselines.pop() if len(baselines) == 1 else "the DQN of the same settings"
    undefined = [g for v in shown for g in results.comparisons[v.label].undefined]
    return BarsFigure(
        name=f"{results.name}-improvements",
        title=f"Improvement over {over}",
        subtitle=f"normalised, by the area under the {results.score} curve",
        bars=tuple(_bars(results, series, with_mean=False) for series in shown),
        note=_left_out(list(dict.fromkeys(undefined))),
        y_title="normalised improvement",
    )


def influence_of_beta(results: Results) -> PanelsFigure | None:
    """Appendix, "Influence of β": Momentum-DQN with other schedules of β, and DQN."""
    momentum = [series for series in results.series if series.algorithm == MOMENTUM]
    others = [series for series in momentum if not series.main]
    games = [g for g in results.games if any((g, s.label) in results.cells for s in others)]
    baseline = [series for series in results.series if series.algorithm == BASELINE][:1]
    by_beta = sorted(momentum, key=lambda s: (s.beta is not None, s.beta or 0.0))
    if not others:
        return None
    title = "Influence of β" + (f": {games[0]}" if len(games) == 1 else "")
    return _learning_curves(results, "beta", title, games, [*baseline, *by_beta])
