"""Estimates with their intervals: improvements game by game, or statistics over games."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from momentum_rl.report.figure import WIDTH, Figure, Row, channel, tooltip
from momentum_rl.report.statistics import Estimate
from momentum_rl.report.style import INK, MUTED, Style, percent

PANEL_WIDTH, LINE, CLOSE_LINE = 230, 34, 14
"""Of one panel of several; of a row of its own, and of one of several under a name; in points."""
LARGEST_LINEAR = 6.0
"""Shares beyond 600 % would flatten all others: the axis is then logarithmic on both sides of zero,
linear within ±100 %."""
TICKS = (-1, -0.5, 0, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
SHARE = "(datum.value < 0 ? '−' : '') + format(abs(100 * datum.value), ',.0f') + ' %'"
"""How shares are written on the axis."""


@dataclass(frozen=True)
class Entry:
    """A share of an algorithm, in a row of a panel."""

    row: str
    """A game, say, or the algorithm itself."""
    style: Style
    estimate: Estimate
    diverged: bool = False
    """Whether a run behind it diverged."""


@dataclass(frozen=True)
class Statistic:
    """A panel: shares, and the value that means no difference."""

    title: str
    none: float
    entries: tuple[Entry, ...]
    """At least one; the same rows in every panel."""


@dataclass(frozen=True)
class IntervalsFigure(Figure):
    """Points with intervals, panel by panel; rows in order, algorithms by colour."""

    panels: tuple[Statistic, ...]
    value: str = "value"
    """What the shares are called where they are written down."""
    by: tuple[str, ...] = ("statistic", "algorithm")
    """How a row's place is written down: some of statistic, game, algorithm."""

    @property
    def entries(self) -> list[Entry]:
        """Of all panels."""
        return [entry for panel in self.panels for entry in panel.entries]

    @property
    def rows(self) -> list[str]:
        """From top to bottom."""
        return list(dict.fromkeys(entry.row for entry in self.entries))

    @property
    def styles(self) -> list[Style]:
        """In the order of the legend."""
        return list({entry.style.label: entry.style for entry in self.entries}.values())

    def numbers(self) -> list[Row]:
        """A row for each point, by algorithm."""
        rows = []
        for panel in self.panels:
            for label in self.labels:
                for e in panel.entries:
                    if e.style.label == label:
                        names = {"statistic": panel.title, "game": e.row, "algorithm": label}
                        row: Row = {name: names[name] for name in self.by}
                        row |= {self.value: e.estimate.value, "low": e.estimate.low}
                        rows.append({**row, "high": e.estimate.high})
        return rows

    def chart(self) -> Row:
        """The panels, side by side."""
        charts = [self._panel(i, panel) for i, panel in enumerate(self.panels)]
        data = {"datasets": {f"panel{i}": _data(panel) for i, panel in enumerate(self.panels)}}
        if len(charts) == 1:
            return {**data, **charts[0], "width": WIDTH}
        titled = [
            {**chart, "width": PANEL_WIDTH, "title": {"text": panel.title, "fontSize": 13}}
            for chart, panel in zip(charts, self.panels)
        ]
        return {**data, "hconcat": titled, "resolve": {"scale": {"x": "independent"}}}

    def _panel(self, number: int, panel: Statistic) -> Row:
        low, high = domain(panel)
        labels, rows = self.labels, self.rows
        grouped = len(labels) > 1 and rows != labels
        scale: Row = {"domain": [low, high], "nice": False}
        axis: Row = {"title": self.value if len(self.panels) == 1 else None, "labelExpr": SHARE}
        if max(-low, high) <= LARGEST_LINEAR:
            axis["tickCount"] = 6
        else:
            scale |= {"type": "symlog", "constant": 1}
            axis["values"] = [tick for tick in TICKS if low <= tick <= high]
        plain = {"title": None, "domain": False, "ticks": False, "labelLimit": 220, "grid": grouped}
        place = {"y": channel("r", "nominal", sort=rows, axis=plain, scale={"domain": rows})}
        if grouped:
            place["yOffset"] = channel("c", "nominal", sort=labels)
        colours = {"domain": labels, "range": [style.colour for style in self.styles]}
        legend = {"title": None, "symbolType": "circle", "symbolSize": 100} if grouped else None
        colour = channel("c", "nominal", scale=colours, legend=legend)
        x, told = channel("v", scale=scale, axis=axis), {"r": "row", "c": "algorithm"}
        ends = {"x": channel("l", title=axis["title"]), "x2": {"field": "h"}}
        point = {"type": "point", "filled": True, "opacity": 1}
        cross = {"shape": "cross", "angle": 45, "size": 70, "color": INK, "strokeWidth": 0}
        layers = [
            _layer({"type": "rule", "color": MUTED, "strokeWidth": 1}, x={"datum": panel.none}),
            _layer({"type": "rule", "strokeWidth": 2.4}, **ends, color=colour, **place),
            _layer(
                {**point, "size": 80},
                x=x,
                color=colour,
                tooltip=tooltip({**told, "t": self.value}),
                **place,
            ),
            {**_layer({**point, **cross}, x=x, **place), "transform": [{"filter": "datum.x"}]},
        ]
        height = CLOSE_LINE * len(labels) + 8 if grouped else LINE
        return {"data": {"name": f"panel{number}"}, "layer": layers, "height": height * len(rows)}


def _layer(mark: Row, **encoding: Any) -> Row:
    return {"mark": mark, "encoding": encoding}


def domain(panel: Statistic) -> tuple[float, float]:
    """The axis: every share, and intervals as far as they are not many times longer."""
    estimates = [entry.estimate for entry in panel.entries]
    finite = [e.value for e in estimates if math.isfinite(e.value)] or [0.0]
    reach = max(0.2, 2.5 * max(map(abs, finite)))
    ends = [end for e in estimates for end in (e.low, e.high)]
    near = [end for end in ends if end is not None and abs(end) <= reach]
    low, high = min(panel.none, *finite, *near), max(panel.none, *finite, *near)
    margin = 0.04 * (high - low or 1)
    return low - margin, high + margin


def _data(panel: Statistic) -> list[Row]:
    """The entries; what leaves the axis ends at its edge."""
    low, high = domain(panel)
    rows = []
    for entry in panel.entries:
        e = entry.estimate
        row: Row = {"r": entry.row, "c": entry.style.label, "t": bracketed(e)}
        for name, end in {"v": e.value, "l": e.low, "h": e.high}.items():
            row[name] = round(min(max(e.value if end is None else end, low), high), 5)
        rows.append({**row, "x": entry.diverged})
    return rows


def bracketed(estimate: Estimate, written: Callable[[float], str] = percent) -> str:
    """A share, or what is written otherwise, with its interval if it has one.

    >>> bracketed(Estimate(0.5)), bracketed(Estimate(0.5, 0.25, 0.75))
    ('+50 %', '+50 % [+25 %, +75 %]')
    """
    value = written(estimate.value)
    if estimate.low is None or estimate.high is None:
        return value
    return f"{value} [{written(estimate.low)}, {written(estimate.high)}]"
