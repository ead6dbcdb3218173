"""Learning curves: one panel per game, on linear axes; a single game is drawn large.

Every run is a thin line beneath the mean; where panels are too many and too small for that, a band
of ± one standard deviation stands for them.

All layers read one table (Vega-Lite divides only one among panels), whose column ``k`` says which
layer a row is for.
"""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from momentum_rl.report.drawing.figure import (
    LEGEND_LINE,
    WIDTH,
    Figure,
    Row,
    altair,
    finished,
    hover,
    strokes,
    with_spread,
)
from momentum_rl.report.drawing.numbers import Array, short
from momentum_rl.report.drawing.styles import INK, Style

POINTS = 200
"""At most this many points of a curve are drawn large."""
SMALL_POINTS = 80
"""And in a small panel."""
RUNS_DRAWN = 9
"""Up to this many panels have a line for every run."""
SHORT = "format(datum.value, abs(datum.value) >= 1000 ? '.3~s' : '.4~g')"
"""How numbers are written on an axis: 12k, 1.5M; but 0.5, not 500m."""


@dataclass(frozen=True)
class Trace:
    """A curve of a panel: a mean over runs, and its spread and the runs themselves, if given."""

    style: Style
    x: Array
    """Where its points are."""
    mean: Array
    """By point; NaN where there is none."""
    spread: Array | None = None
    marks: tuple[int, ...] = ()
    """Points (from 0) at which a run diverged."""
    runs: Array | None = None
    """[runs, points]; NaN where there is none."""


@dataclass(frozen=True)
class Panel:
    """A game, and what is drawn of it."""

    title: str
    traces: tuple[Trace, ...]


@dataclass(frozen=True)
class PanelsFigure(Figure):
    """Curves by game."""

    panels: tuple[Panel, ...]
    x_title: str = "agent steps"
    y_title: str = "score"

    @property
    def traces(self) -> list[Trace]:
        """All curves."""
        return [trace for panel in self.panels for trace in panel.traces]

    @property
    def styles(self) -> list[Style]:
        """Of all curves, in the order of the legend."""
        return list({trace.style.label: trace.style for trace in self.traces}.values())

    @property
    def columns(self) -> int:
        """Panels side by side in print."""
        return {1: 1, 2: 2, 3: 3, 4: 2}.get(len(self.panels), 3 if len(self.panels) <= 9 else 4)

    def remarks(self) -> list[str]:
        """Runs or bands, thinning, and marks."""
        parts = []
        if self._has_runs:
            parts.append("Thick lines are means over seeds, thin lines the seeds.")
        elif any(trace.spread is not None for trace in self.traces):
            parts.append("Lines are means over seeds, bands ± one standard deviation.")
        longest = max(trace.mean.size for trace in self.traces)
        if longest > self._points:
            parts.append(
                f"Drawn at {self._points} of {longest} points; nothing is smoothed. "
                "Statistics use all."
            )
        if any(trace.marks for trace in self.traces):
            parts.append("× marks where a run diverged.")
        if len(self.panels) > 1:
            parts.append("Each panel has its own vertical axis.")
        return parts

    @property
    def alt(self) -> str:
        """Where the curves end."""
        games = "; ".join(
            f"{panel.title}: "
            + ", ".join(f"{trace.style.label} {short(_last(trace.mean))}" for trace in panel.traces)
            for panel in self.panels
        )
        return (
            f"Line chart, {self.subtitle}, against {self.x_title}. Where the curves end: {games}."
        )

    @property
    def _is_ragged(self) -> bool:
        """Whether the last row of panels has empty places."""
        return len(self.panels) > self.columns and len(self.panels) % self.columns > 0

    @property
    def _has_runs(self) -> bool:
        """Whether every run has a line."""
        several = (trace.runs is not None and len(trace.runs) > 1 for trace in self.traces)
        return len(self.panels) <= RUNS_DRAWN and any(several)

    def numbers(self) -> list[Row]:
        """A row for each point of a mean, and of each run beneath it."""
        rows = []
        for panel in self.panels:
            for trace in panel.traces:
                runs = () if trace.runs is None else enumerate(trace.runs)
                for name, values in (("mean", trace.mean), *((str(r), y) for r, y in runs)):
                    rows += [
                        {
                            "panel": panel.title,
                            "curve": trace.style.label,
                            "run": name,
                            self.x_title: float(trace.x[i]),
                            self.y_title: float(values[i]),
                        }
                        for i in np.flatnonzero(~np.isnan(values))
                    ]
        return rows

    @property
    def _points(self) -> int:
        return POINTS if len(self.panels) <= 2 else SMALL_POINTS

    @property
    def _legend_columns(self) -> int:
        """As many as fit above the panels; all if one line is enough."""
        line = LEGEND_LINE * max(1.0, self.columns * _panel_size(self.columns)[0] / WIDTH)
        labels = [len(style.label) + 6 for style in self.styles]
        return len(labels) if sum(labels) <= line else max(1, int(line / max(labels)))

    def spec(self, *, interactive: bool) -> dict[str, Any]:
        """The Vega-Lite specification: for the page (fluid width, hover), or for print (title)."""
        alt = altair()
        scales = _encodings(self)
        layers = _layers(self, scales)
        if interactive:
            layers += _hover(self, scales)
        if len(self.panels) == 1:
            chart = alt.layer(*layers, data=alt.NamedData("all"))
        else:
            width, height = _panel_size(self.columns)
            header = alt.Header(title=None, labelExpr="''", labelFontSize=1, labelPadding=0)
            order = [panel.title for panel in self.panels]
            chart = alt.layer(*layers).properties(width=width, height=height)
            chart = chart.facet(
                facet=alt.Facet("p:N", sort=order, header=header),
                columns=self.columns,
                data=alt.NamedData("all"),
                bounds="flush",
                spacing={"row": 64 if self._is_ragged else 38, "column": 50},
            ).resolve_scale(y="independent")
            if self._is_ragged:  # a shared axis would also stand where no panel is
                chart = chart.resolve_axis(x="independent")
        spec = finished(
            chart,
            self,
            legend_columns=self._legend_columns,
            interactive=interactive,
            sized=len(self.panels) == 1,
        )
        spec["datasets"] = {"all": _rows(self, interactive)}
        return spec


def _panel_size(columns: int) -> tuple[int, int]:
    return {1: (520, 320), 2: (300, 190), 3: (210, 140)}.get(columns, (160, 105))


def _last(values: Array) -> float:
    known = values[~np.isnan(values)]
    return float(known[-1]) if known.size else math.nan


def _rounded(value: float) -> float:
    return float(f"{value:.5g}")


def drawn(size: int, points: int) -> Array:
    """Positions of at most ``points`` of ``size`` iterations, evenly spaced, with both ends.

    >>> drawn(200, 5).tolist()
    [0, 50, 100, 149, 199]
    """
    return np.unique(np.linspace(0, size - 1, min(size, points)).round().astype(int))


def _rows(figure: PanelsFigure, interactive: bool) -> list[Row]:
    rows: list[Row] = []
    for panel in figure.panels:
        # Curves without a spread are drawn first: they are the background.
        for trace in sorted(panel.traces, key=lambda trace: trace.spread is not None):
            shown = drawn(trace.mean.size, figure._points)
            own = {"p": panel.title, "c": trace.style.label}
            for i in shown[~np.isnan(trace.mean[shown])]:
                row = {"k": "line", **own, **_point(trace.x[i], trace.mean[i])}
                if trace.spread is not None and not figure._has_runs:
                    row["l"] = _rounded(trace.mean[i] - trace.spread[i])
                    row["h"] = _rounded(trace.mean[i] + trace.spread[i])
                rows.append(row)
            if figure._has_runs and trace.runs is not None:
                rows += [
                    {"k": "run", **own, "r": f"{trace.style.label} {r}", **_point(trace.x[i], y[i])}
                    for r, y in enumerate(trace.runs)
                    for i in shown[~np.isnan(y[shown])]
                ]
        rows += _marks(panel)
        rows.append({"k": "title", "p": panel.title})
        if interactive:
            rows += _strips(figure, panel)
    return rows


def _point(x: float, y: float) -> Row:
    return {"x": _place(x), "y": _rounded(y)}


def _place(x: float) -> float | int:
    """Whole numbers as such: they are tooltip as they are."""
    return int(x) if x == int(x) else float(f"{x:.10g}")


def _marks(panel: Panel) -> list[Row]:
    """Where runs diverged. A panel without any has one of no size: its axis needs a value."""
    rows = []
    for trace in panel.traces:
        known = np.flatnonzero(~np.isnan(trace.mean))
        row: Row = {"k": "mark", "p": panel.title, "c": trace.style.label}
        for i in sorted({min(i, trace.mean.size - 1) for i in trace.marks} & set(known.tolist())):
            rows.append({**row, **_point(trace.x[i], trace.mean[i]), "s": 90})
        if known.size and not rows:
            first = int(known[0])
            rows.append({**row, **_point(trace.x[first], trace.mean[first]), "s": 0})
    return rows


def _strips(figure: PanelsFigure, panel: Panel) -> list[Row]:
    """Each drawn point owns the strip up to the middles to its neighbours."""
    shown = [
        {_place(trace.x[i]): i for i in drawn(trace.mean.size, figure._points)}
        for trace in panel.traces
    ]
    x = sorted({place for own in shown for place in own})
    middles = [(a + b) / 2 for a, b in pairwise(x)]
    rows = []
    labels = [style.label for style in figure.styles]
    for place, left, right in zip(x, [x[0], *middles], [*middles, x[-1]]):
        row: Row = {"k": "strip", "p": panel.title, "x": place}
        row |= {"a": float(left), "b": float(right)}
        for trace, own in zip(panel.traces, shown):
            i = own.get(place)
            if i is not None and not math.isnan(trace.mean[i]):
                spread = None if trace.spread is None else short(trace.spread[i])
                position = labels.index(trace.style.label)
                row[f"v{position}"] = with_spread(short(trace.mean[i]), spread)
        rows.append(row)
    return rows


def _encodings(figure: PanelsFigure) -> dict[str, Any]:
    alt = altair()
    small = len(figure.panels) > 1
    every = [trace.x for trace in figure.traces if trace.x.size]
    low, high = min(x[0] for x in every), max(x[-1] for x in every)
    marks = {"labelFontSize": 10 if figure.columns > 2 else 12}
    marks |= {"titleFontSize": 11 if figure.columns > 2 else 13}
    x_axis = alt.Axis(title=figure.x_title, tickCount=4 if small else 8, labelExpr=SHORT, **marks)
    y_axis = alt.Axis(
        title=None if small else figure.y_title,
        tickCount=4 if small else 6,
        labelExpr=SHORT,
        **marks,
    )
    domain = alt.Scale(domain=[low, high if high > low else low + 1], nice=False)
    return {
        "x": alt.X("x:Q", scale=domain, axis=x_axis),
        "y": alt.Y("y:Q", scale=alt.Scale(zero=False), axis=y_axis),
        **strokes(figure.styles, "c", symbolOpacity=1),
    }


def _kind(kind: str) -> Any:
    return altair().Chart().transform_filter(f"datum.k === '{kind}'")


def _layers(figure: PanelsFigure, scales: dict[str, Any]) -> list[Any]:
    alt = altair()
    band = _kind("line").mark_area(opacity=0.18, strokeWidth=0)
    band = band.encode(
        x=scales["x"],
        y=alt.Y("l:Q", title=None if len(figure.panels) > 1 else figure.y_title),
        y2=alt.Y2("h:Q"),
        color=scales["color"],
    )
    run = _kind("run").mark_line(strokeWidth=0.8, opacity=0.45)
    run = run.encode(x=scales["x"], y=scales["y"], color=scales["color"], detail="r:N")
    line = _kind("line").mark_line(strokeWidth=2 if len(figure.panels) == 1 else 1.6)
    mark = _kind("mark").mark_point(shape="cross", angle=45, filled=True, opacity=1, strokeWidth=0)
    size = alt.Size("s:Q", scale=None, legend=None)
    mark = mark.encode(x=scales["x"], y=scales["y"], color=scales["color"], size=size)
    layers = [run if figure._has_runs else band, line.encode(**scales), mark]
    if len(figure.panels) > 1:  # a header would move with the labels of the axis beneath it
        title = _kind("title").mark_text(align="left", baseline="bottom", fontSize=13, color=INK)
        layers.append(title.encode(x=alt.value(0), y=alt.value(-6), text="p:N"))
    return layers


def _hover(figure: PanelsFigure, scales: dict[str, Any]) -> list[Any]:
    """A rule at the iteration nearest to the pointer, with every curve's value written out."""
    tooltip = [("p:N", "game"), ("x:Q", figure.x_title)]
    tooltip += [(f"v{i}:N", style.label) for i, style in enumerate(figure.styles)]
    _, rule, catch = hover(_kind("strip"), scales["x"], figure.x_title, ["x", "p"], tooltip)
    return [rule, catch]
