"""Bars of the normalised improvement, game by game, with intervals."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from momentum_rl.report.drawing.figure import Figure, Row, altair, finished
from momentum_rl.report.drawing.numbers import percent
from momentum_rl.report.drawing.styles import INK, MUTED, Style
from momentum_rl.report.statistics import Estimate

LARGEST_LINEAR = 6.0
"""Improvements beyond 600 % would flatten all others: the axis is then logarithmic on both sides of
zero, linear within ±100 %."""
TICKS = (-1, -0.5, 0, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
PERCENT = "datum.value === 0 ? '0 %' : format(100 * datum.value, '+,.0f') + ' %'"
"""How shares are written on an axis."""
LEVEL_LABELS = 7
"""Up to this many games have their names written level."""


@dataclass(frozen=True)
class Bars:
    """The improvements of one algorithm, by game."""

    style: Style
    games: Mapping[str, Estimate]
    mean: float | None = None
    """Drawn as a line, if given."""
    diverged: frozenset[str] = frozenset()
    """Games on which a run of it diverged."""


@dataclass(frozen=True)
class BarsFigure(Figure):
    """Bars side by side for each game."""

    bars: tuple[Bars, ...]
    """At least one; games are in the order of the first one's improvement."""
    y_title: str = "improvement"
    awaited: tuple[str, ...] = ()
    """Games that will have bars: their places are kept."""

    @property
    def games(self) -> list[str]:
        """The largest improvement of the first variant first; games that it lacks at the end."""
        games = list(dict.fromkeys(game for bars in self.bars for game in bars.games))
        first = self.bars[0].games
        return sorted(games, key=lambda g: -first[g].value if g in first else math.inf)

    @property
    def _estimates(self) -> list[Estimate]:
        return [estimate for bars in self.bars for estimate in bars.games.values()]

    @property
    def y_range(self) -> tuple[float, float]:
        """The axis: every bar, and intervals as far as they are not many times longer."""
        finite = [e.value for e in self._estimates if math.isfinite(e.value)] or [0.0]
        reach = max(0.2, 2.5 * max(map(abs, finite)))
        ends = [end for e in self._estimates for end in (e.low, e.high)]
        near = [end for end in ends if end is not None and abs(end) <= reach]
        low, high = min(0.0, *finite, *near), max(0.0, *finite, *near)
        margin = 0.04 * (high - low or 1)
        return low - margin * (low < 0), high + margin * (high > 0)

    @property
    def is_linear(self) -> bool:
        """Whether the vertical axis is."""
        return max(map(abs, self.y_range)) <= LARGEST_LINEAR

    def remarks(self) -> list[str]:
        """Intervals, the axis, and marks."""
        estimates = self._estimates
        low, high = self.y_range
        parts = []
        if any(e.low is not None for e in estimates):
            parts.append("Thin lines are 95 % bootstrap intervals over runs.")
        if any(e.low is None for e in estimates):
            parts.append("A bar of a single run has no interval.")
        if any(
            e.low is not None and e.high is not None and (e.low < low or e.high > high)
            for e in estimates
        ):
            parts.append("Intervals that leave the axis are cut off.")
        if not self.is_linear:
            parts.append("The vertical axis is logarithmic beyond ±100 %.")
        if self.awaited:
            parts.append(f"Not complete yet: {', '.join(self.awaited)}.")
        if any(bars.diverged for bars in self.bars):
            parts.append("× marks games on which runs diverged.")
        if any(bars.mean is not None for bars in self.bars):
            parts.append("The dashed line is the mean over games.")
        return parts

    @property
    def alt(self) -> str:
        """Each bar's value."""
        groups = "; ".join(
            f"{bars.style.label}: "
            + ", ".join(
                f"{game} {percent(bars.games[game].value)}"
                for game in self.games
                if game in bars.games
            )
            for bars in self.bars
        )
        return f"Bar chart, {self.subtitle}. {groups}."

    def numbers(self) -> list[Row]:
        """A row for each bar."""
        return [
            {
                "game": game,
                "algorithm": bars.style.label,
                self.y_title: estimate.value,
                "low": estimate.low,
                "high": estimate.high,
            }
            for bars in self.bars
            for game, estimate in bars.games.items()
        ]

    def spec(self, *, interactive: bool) -> dict[str, Any]:
        """The Vega-Lite specification: for the page (fluid width, hover), or for print (title)."""
        chart = altair().layer(*_layers(self))
        spec = finished(chart, self, legend_columns=len(self.bars), interactive=interactive)
        spec["datasets"] = {"bars": _rows(self), "means": _means(self)}
        return spec


def bracketed(estimate: Estimate) -> str:
    """A share, with its interval if it has one."""
    value = percent(estimate.value)
    if estimate.low is None or estimate.high is None:
        return value
    return f"{value} [{percent(estimate.low)}, {percent(estimate.high)}]"


def _rows(figure: BarsFigure) -> list[Row]:
    low, high = figure.y_range
    rows = []
    for bars in figure.bars:
        for game, estimate in bars.games.items():
            value = min(max(estimate.value, low), high)
            row: Row = {"game": game, "c": bars.style.label, "y": round(value, 5)}
            row["text"] = bracketed(estimate)
            if estimate.low is not None and estimate.high is not None:
                row["l"] = round(min(max(estimate.low, low), high), 5)
                row["h"] = round(min(max(estimate.high, low), high), 5)
            row["diverged"] = game in bars.diverged
            rows.append(row)
    return rows


def _means(figure: BarsFigure) -> list[Row]:
    return [
        {"y": round(bars.mean, 5), "text": f"mean {percent(bars.mean)}"}
        for bars in figure.bars
        if bars.mean is not None and math.isfinite(bars.mean)
    ]


def _layers(figure: BarsFigure) -> list[Any]:
    alt = altair()
    low, high = figure.y_range
    several = len(figure.bars) > 1
    names = [bars.style.label for bars in figure.bars]
    ticks: dict[str, Any] = {"tickCount": 7}
    if figure.is_linear:
        scale = alt.Scale(domain=[low, high], nice=False)
    else:
        scale = alt.Scale(type="symlog", constant=1, domain=[low, high], nice=False)
        ticks = {"values": [tick for tick in TICKS if low <= tick <= high]}
    places = [*figure.games, *figure.awaited]
    level = len(places) <= LEVEL_LABELS
    x_axis = alt.Axis(
        title=None,
        labelAngle=0 if level else -45,
        labelLimit=120,
        labelOverlap=False,
        ticks=False,
        domain=False,
        labelPadding=6,
        offset=4,
        grid=False,
    )
    y_axis = alt.Axis(title=figure.y_title, labelExpr=PERCENT, **ticks)
    padding = {"paddingInner": 0.25, "paddingOuter": 0.15}
    x = alt.X("game:N", axis=x_axis, scale=alt.Scale(domain=places, **padding))
    colour = alt.Color(
        "c:N",
        scale=alt.Scale(domain=names, range=[bars.style.colour for bars in figure.bars]),
        legend=alt.Legend(title=None, symbolType="square", symbolSize=120) if several else None,
    )
    place: dict[str, Any] = {"x": x}
    if several:
        place["xOffset"] = alt.XOffset("c:N", sort=names)
    tooltip = [
        alt.Tooltip("game:N", title="game"),
        alt.Tooltip("c:N", title="algorithm"),
        alt.Tooltip("text:N", title="improvement"),
    ]
    base = alt.Chart(alt.NamedData("bars"))
    y = alt.Y("y:Q", scale=scale, axis=y_axis)
    bars = base.mark_bar().encode(**place, y=y, color=colour, tooltip=tooltip)
    zero = base.mark_rule(color=MUTED, strokeWidth=1).encode(y=alt.YDatum(0))
    spread = base.transform_filter("isValid(datum.l)").mark_rule(color=INK, strokeWidth=1.2)
    spread = spread.encode(**place, y=alt.Y("l:Q", title=figure.y_title), y2=alt.Y2("h:Q"))
    cross = base.transform_filter("datum.diverged").mark_point(
        shape="cross", angle=45, filled=True, size=70, color=INK, opacity=1, strokeWidth=0
    )
    cross = cross.encode(**place, y=y)
    means = alt.Chart(alt.NamedData("means"))
    line = means.mark_rule(color=MUTED, strokeDash=[5, 4], strokeWidth=1.4)
    # Bars fall from left to right: a mean above 0 has room at the right, one below at the left.
    above = not any(bars.mean is not None and bars.mean < 0 for bars in figure.bars)
    text = means.mark_text(
        align="right" if above else "left", dx=-2 if above else 4, dy=-7, color=MUTED, fontSize=12
    )
    text = text.encode(
        y=alt.Y("y:Q", title=figure.y_title), x=alt.value("width" if above else 0), text="text:N"
    )
    return [bars, zero, spread, cross, line.encode(y=alt.Y("y:Q", title=figure.y_title)), text]
