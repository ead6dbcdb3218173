"""Estimates with their intervals: improvements game by game, or statistics over games."""

import math
from dataclasses import dataclass
from typing import Any

from momentum_rl.report.figure import WIDTH, Figure, Row, finished, library
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

    def range(self, panel: Statistic) -> tuple[float, float]:
        """The axis: every share, and intervals as far as they are not many times longer."""
        estimates = [entry.estimate for entry in panel.entries]
        finite = [e.value for e in estimates if math.isfinite(e.value)] or [0.0]
        reach = max(0.2, 2.5 * max(map(abs, finite)))
        ends = [end for e in estimates for end in (e.low, e.high)]
        near = [end for end in ends if end is not None and abs(end) <= reach]
        low, high = min(panel.none, *finite, *near), max(panel.none, *finite, *near)
        margin = 0.04 * (high - low or 1)
        return low - margin, high + margin

    def remarks(self) -> list[str]:
        """Intervals, the axis, and marks."""
        parts = ["Lines are 95 % bootstrap intervals over runs; the grey line is no difference."]
        for panel in self.panels:
            low, high = self.range(panel)
            ends = [end for e in panel.entries for end in (e.estimate.low, e.estimate.high)]
            if any(end is not None and not low <= end <= high for end in ends):
                parts.append("Intervals that leave the axis are cut off.")
            if max(-low, high) > LARGEST_LINEAR:
                parts.append("The axis is logarithmic beyond ±100 %.")
        if any(entry.diverged for entry in self.entries):
            parts.append("× marks where runs diverged.")
        return list(dict.fromkeys(parts))

    def numbers(self) -> list[Row]:
        """A row for each point, by algorithm."""
        rows = []
        for panel in self.panels:
            for style in self.styles:
                for e in panel.entries:
                    if e.style.label == style.label:
                        names = {"statistic": panel.title, "game": e.row, "algorithm": style.label}
                        row: Row = {name: names[name] for name in self.by}
                        row |= {self.value: e.estimate.value, "low": e.estimate.low}
                        rows.append({**row, "high": e.estimate.high})
        return rows

    def spec(self, *, interactive: bool) -> dict[str, Any]:
        """The Vega-Lite specification: for the page (fluid width, hover), or for print (title)."""
        alt = library()
        alone = len(self.panels) == 1
        grouped = len(self.styles) > 1 and self.rows != [style.label for style in self.styles]
        height = CLOSE_LINE * len(self.styles) + 8 if grouped else LINE
        parts = [self._panel(panel, grouped, height * len(self.rows)) for panel in self.panels]
        if alone:
            chart = parts[0].properties(width="container" if interactive else WIDTH)
        else:
            titles = [alt.TitleParams(panel.title, fontSize=13) for panel in self.panels]
            sized = [p.properties(width=PANEL_WIDTH, title=t) for p, t in zip(parts, titles)]
            chart = alt.hconcat(*sized).resolve_scale(x="independent")
        labels = [style.label for style in self.styles]
        spec = finished(chart, self, labels, interactive=interactive, sized=False)
        spec["datasets"] = {f"panel{i}": self._data(panel) for i, panel in enumerate(self.panels)}
        return spec

    def _panel(self, panel: Statistic, grouped: bool, height: int) -> Any:
        alt = library()
        low, high = self.range(panel)
        names = [style.label for style in self.styles]
        if max(-low, high) <= LARGEST_LINEAR:
            scale = alt.Scale(domain=[low, high], nice=False)
            axis: dict[str, Any] = {"tickCount": 6}
        else:
            scale = alt.Scale(type="symlog", constant=1, domain=[low, high], nice=False)
            axis = {"values": [tick for tick in TICKS if low <= tick <= high]}
        title = self.value if len(self.panels) == 1 else None
        plain = alt.Axis(title=None, domain=False, ticks=False, labelLimit=220, grid=grouped)
        place: dict[str, Any] = {"y": alt.Y("r:N", sort=self.rows, axis=plain)}
        place["y"].scale = alt.Scale(domain=self.rows)
        if grouped:
            place["yOffset"] = alt.YOffset("c:N", sort=names)
        colours = alt.Scale(domain=names, range=[style.colour for style in self.styles])
        legend = alt.Legend(title=None, symbolType="circle", symbolSize=100) if grouped else None
        colour = alt.Color("c:N", scale=colours, legend=legend)
        x = alt.X("v:Q", scale=scale, axis=alt.Axis(title=title, labelExpr=SHARE, **axis))
        tooltip = [("r:N", "row"), ("c:N", "algorithm"), ("t:N", self.value)]
        base = alt.Chart(alt.NamedData(f"panel{self.panels.index(panel)}"))
        none = base.mark_rule(color=MUTED, strokeWidth=1).encode(x=alt.XDatum(panel.none))
        spread = base.mark_rule(strokeWidth=2.4)
        spread = spread.encode(x=alt.X("l:Q", title=title), x2="h:Q", color=colour, **place)
        point = base.mark_point(filled=True, size=80, opacity=1).encode(x=x, color=colour, **place)
        point = point.encode(tooltip=[alt.Tooltip(name, title=text) for name, text in tooltip])
        cross = base.transform_filter("datum.x").mark_point(
            shape="cross", angle=45, filled=True, size=70, color=INK, opacity=1, strokeWidth=0
        )
        return alt.layer(none, spread, point, cross.encode(x=x, **place)).properties(height=height)

    def _data(self, panel: Statistic) -> list[Row]:
        low, high = self.range(panel)
        rows = []
        for entry in panel.entries:
            e = entry.estimate
            row: Row = {"r": entry.row, "c": entry.style.label, "t": bracketed(e)}
            ends = {"v": e.value, "l": e.low, "h": e.high}
            row |= {
                name: round(min(max(e.value if x is None else x, low), high), 5)
                for name, x in ends.items()
            }
            rows.append({**row, "x": entry.diverged})
        return rows


def bracketed(estimate: Estimate) -> str:
    """A share, with its interval if it has one.

    >>> bracketed(Estimate(0.5)), bracketed(Estimate(0.5, 0.25, 0.75))
    ('+50 %', '+50 % [+25 %, +75 %]')
    """
    value = percent(estimate.value)
    if estimate.low is None or estimate.high is None:
        return value
    return f"{value} [{percent(estimate.low)}, {percent(estimate.high)}]"
