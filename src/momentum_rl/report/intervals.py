"""Estimates with their intervals: improvements game by game, or statistics over games."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from momentum_rl.report.figure import WIDTH, Figure, Row, channel, tooltip
from momentum_rl.report.statistics import Estimate
from momentum_rl.report.style import INK, MUTED, Style, percent

LINE, CLOSE_LINE = 34, 14
"""The height of a row of its own, and of one of several under a name; in points."""
LARGEST_LINEAR = 6.0
"""Shares beyond 600 % would flatten all others: the axis is then logarithmic on both sides of zero,
linear within ±100 %."""
TICKS = (-1, -0.5, 0, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
SHARE = "(datum.value < 0 ? '−' : '') + format(abs(100 * datum.value), ',.0f') + ' %'"
"""How shares are written on the axis."""


@dataclass(frozen=True)
class Entry:
    """A share of an algorithm, in a row."""

    row: str
    """A game, say, or the algorithm itself."""
    style: Style
    estimate: Estimate
    diverged: bool = False
    """Whether a run behind it diverged."""


@dataclass(frozen=True)
class IntervalsFigure(Figure):
    """Points with intervals; rows in order, algorithms by colour."""

    entries: tuple[Entry, ...]
    """At least one."""
    value: str = "value"
    """What the shares are called where they are written down."""

    @property
    def rows(self) -> list[str]:
        """From top to bottom."""
        return list(dict.fromkeys(entry.row for entry in self.entries))

    @property
    def styles(self) -> list[Style]:
        """In the order of the legend."""
        return list({entry.style.label: entry.style for entry in self.entries}.values())

    @property
    def domain(self) -> tuple[float, float]:
        """The axis: every share, and intervals as far as they are not many times longer."""
        estimates = [entry.estimate for entry in self.entries]
        finite = [e.value for e in estimates if math.isfinite(e.value)] or [0.0]
        reach = max(0.2, 2.5 * max(map(abs, finite)))
        ends = [end for e in estimates for end in (e.low, e.high)]
        near = [end for end in ends if end is not None and abs(end) <= reach]
        low, high = min(0.0, *finite, *near), max(0.0, *finite, *near)
        margin = 0.04 * (high - low or 1)
        return low - margin, high + margin

    def numbers(self) -> list[Row]:
        """A row for each point, by algorithm."""
        by_label = sorted(self.entries, key=lambda entry: self.labels.index(entry.style.label))
        return [
            {
                **({} if self.rows == self.labels else {"game": e.row}),
                "algorithm": e.style.label,
                self.value: e.estimate.value,
                "low": e.estimate.low,
                "high": e.estimate.high,
            }
            for e in by_label
        ]

    def chart(self) -> Row:
        """Lines, points and marks, beside a line that means no difference."""
        labels, rows, (low, high) = self.labels, self.rows, self.domain
        grouped = len(labels) > 1 and rows != labels
        scale: Row = {"domain": [low, high], "nice": False}
        axis: Row = {"title": self.value, "labelExpr": SHARE}
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
        x = channel("v", scale=scale, axis=axis)
        ends = {"x": channel("l", title=self.value), "x2": {"field": "h"}}
        told = tooltip({"r": "row", "c": "algorithm", "t": self.value})
        point = {"type": "point", "filled": True, "opacity": 1}
        cross = {"shape": "cross", "angle": 45, "size": 70, "color": INK, "strokeWidth": 0}
        layers = [
            _layer({"type": "rule", "color": MUTED, "strokeWidth": 1}, x={"datum": 0.0}),
            _layer({"type": "rule", "strokeWidth": 2.4}, **ends, color=colour, **place),
            _layer({**point, "size": 80}, x=x, color=colour, tooltip=told, **place),
            {**_layer({**point, **cross}, x=x, **place), "transform": [{"filter": "datum.x"}]},
        ]
        height = CLOSE_LINE * len(labels) + 8 if grouped else LINE
        return {
            "data": {"name": "all"},
            "datasets": {"all": [self._row(entry) for entry in self.entries]},
            "layer": layers,
            "width": WIDTH,
            "height": height * len(rows),
        }

    def _row(self, entry: Entry) -> Row:
        """An entry; what leaves the axis ends at its edge."""
        (low, high), e = self.domain, entry.estimate
        row: Row = {"r": entry.row, "c": entry.style.label, "t": bracketed(e)}
        for name, end in {"v": e.value, "l": e.low, "h": e.high}.items():
            row[name] = round(min(max(e.value if end is None else end, low), high), 5)
        return {**row, "x": entry.diverged}


def _layer(mark: Row, **encoding: Any) -> Row:
    return {"mark": mark, "encoding": encoding}


def bracketed(estimate: Estimate, written: Callable[[float], str] = percent) -> str:
    """A share, or what is written otherwise, with its interval if it has one.

    >>> bracketed(Estimate(0.5)), bracketed(Estimate(0.5, 0.25, 0.75))
    ('+50 %', '+50 % [+25 %, +75 %]')
    """
    value = written(estimate.value)
    if estimate.low is None or estimate.high is None:
        return value
    return f"{value} [{written(estimate.low)}, {written(estimate.high)}]"
