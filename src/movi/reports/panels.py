"""Learning curves: one panel per game, on linear axes; a single game is drawn large.

A ``PanelsFigure`` is data: curves and the words around them. How it becomes layers of a chart is
below it. All layers read one table (Vega-Lite divides only one among panels), whose column ``k``
says which layer a row is for.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from movi.reports.charts import WIDTH, altair, finished
from movi.reports.lines import LEGEND_LINE
from movi.reports.series import INK, MUTED, Style
from movi.reports.tables import Array

POINTS = 200
"""At most this many points of a curve are drawn large."""
SMALL_POINTS = 80
"""And in a small panel."""
SCORE = "format(datum.value, abs(datum.value) >= 1000 ? '.3~s' : '.4~g')"
"""How scores are written on an axis: 12k, 1.5M; but 0.5, not 500m."""


@dataclass(frozen=True)
class Trace:
    """A curve of a panel."""

    style: Style
    """Its name and look."""
    mean: Array
    """By iteration; NaN where there is none."""
    spread: Array | None = None
    """If given, a band of ± this is drawn around it."""
    marks: tuple[int, ...] = ()
    """Iterations (from 0) at which a run diverged."""


@dataclass(frozen=True)
class Panel:
    """A game."""

    title: str
    """Its name."""
    traces: tuple[Trace, ...]
    """What is drawn."""


@dataclass(frozen=True)
class PanelsFigure:
    """Curves by game, and the words around them."""

    name: str
    """File name without its ending, and anchor on the page."""
    title: str
    """The heading."""
    subtitle: str
    """What is drawn, in a line."""
    panels: tuple[Panel, ...]
    """At least one."""
    note: str = ""
    """What else a reader must know."""
    x_title: str = "iteration"
    """The horizontal axis."""
    y_title: str = "score"
    """The vertical axis."""

    @property
    def styles(self) -> list[Style]:
        """Of all curves, in the order of the legend."""
        traces = [trace for panel in self.panels for trace in panel.traces]
        return list({trace.style.label: trace.style for trace in traces}.values())

    @property
    def columns(self) -> int:
        """Panels side by side in print."""
        return {1: 1, 2: 2, 3: 3, 4: 2}.get(len(self.panels), 3 if len(self.panels) <= 9 else 4)

    @property
    def caption(self) -> str:
        """What a reader must know to read the picture."""
        traces = [trace for panel in self.panels for trace in panel.traces]
        parts = []
        if any(trace.spread is not None for trace in traces):
            parts.append("Lines are means over seeds, bands ± one standard deviation.")
        drawn = max(trace.mean.size for trace in traces)
        if drawn > self._points:
            parts.append(
                f"Drawn at {self._points} of {drawn} iterations; nothing is smoothed. "
                "Statistics use all."
            )
        if any(trace.marks for trace in traces):
            parts.append("× marks where a run diverged.")
        if len(self.panels) > 1:
            parts.append("Each panel has its own vertical axis.")
        return " ".join([*parts, self.note] if self.note else parts)

    @property
    def alt(self) -> str:
        """The picture in words, for those who cannot see it."""
        games = "; ".join(
            f"{panel.title}: "
            + ", ".join(
                f"{trace.style.label} {_short(_last(trace.mean))}" for trace in panel.traces
            )
            for panel in self.panels
        )
        return (
            f"Line chart, {self.subtitle}, against {self.x_title}. Where the curves end: {games}."
        )

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
        layers = _layers(self)
        if interactive:
            layers += _hover(self)
        columns = self._legend_columns
        if len(self.panels) == 1:
            chart = alt.layer(*layers, data=alt.NamedData("all"))
            spec = finished(chart, self, legend_columns=columns, interactive=interactive)
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
                spacing={"row": 38, "column": 50},
            ).resolve_scale(y="independent")
            spec = finished(
                chart, self, legend_columns=columns, interactive=interactive, sized=False
            )
        spec["datasets"] = {"all": _rows(self, interactive)}
        return spec


def _panel_size(columns: int) -> tuple[int, int]:
    return {1: (520, 320), 2: (300, 190), 3: (210, 140)}.get(columns, (160, 105))


def _last(values: Array) -> float:
    known = values[~np.isnan(values)]
    return float(known[-1]) if known.size else math.nan


def _short(value: float) -> str:
    return "none" if math.isnan(value) else f"{float(f'{value:.4g}'):,g}"


def _rounded(value: float) -> float:
    return float(f"{value:.5g}")


def drawn(size: int, points: int) -> Array:
    """Positions of at most ``points`` of ``size`` iterations, evenly spaced, with both ends.

    >>> drawn(200, 5).tolist()
    [0, 50, 100, 149, 199]
    """
    return np.unique(np.linspace(0, size - 1, min(size, points)).round().astype(int))


def _rows(figure: PanelsFigure, interactive: bool) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for panel in figure.panels:
        # Curves without a band are drawn first: they are the background.
        for trace in sorted(panel.traces, key=lambda trace: trace.spread is not None):
            shown = drawn(trace.mean.size, figure._points)
            for i in shown[~np.isnan(trace.mean[shown])]:
                row = {"k": "line", "p": panel.title, "c": trace.style.label, "x": int(i) + 1}
                row["y"] = _rounded(trace.mean[i])
                if trace.spread is not None:
                    row["l"] = _rounded(trace.mean[i] - trace.spread[i])
                    row["h"] = _rounded(trace.mean[i] + trace.spread[i])
                rows.append(row)
        rows += _marks(panel)
        rows.append({"k": "title", "p": panel.title})
        if interactive:
            rows += _strips(figure, panel)
    return rows


def _marks(panel: Panel) -> list[dict[str, Any]]:
    """Where runs diverged. A panel without any has one of no size: its axis needs a value."""
    rows = []
    for trace in panel.traces:
        known = np.flatnonzero(~np.isnan(trace.mean))
        row: dict[str, Any] = {"k": "mark", "p": panel.title, "c": trace.style.label}
        for i in sorted({min(i, trace.mean.size - 1) for i in trace.marks} & set(known.tolist())):
            rows.append({**row, "x": i + 1, "y": _rounded(trace.mean[i]), "s": 90})
        if known.size and not rows:
            first = int(known[0])
            rows.append({**row, "x": first + 1, "y": _rounded(trace.mean[first]), "s": 0})
    return rows


def _strips(figure: PanelsFigure, panel: Panel) -> list[dict[str, Any]]:
    """Each drawn iteration owns the strip up to the middles to its neighbours."""
    size = max(trace.mean.size for trace in panel.traces)
    shown = drawn(size, figure._points)
    x = shown + 1.0
    middles = (x[1:] + x[:-1]) / 2
    rows = []
    for i, left, right in zip(shown, [x[0], *middles], [*middles, x[-1]]):
        row: dict[str, Any] = {"k": "strip", "p": panel.title, "x": int(i) + 1}
        row |= {"a": float(left), "b": float(right)}
        for trace in panel.traces:
            position = [style.label for style in figure.styles].index(trace.style.label)
            if i < trace.mean.size and not math.isnan(trace.mean[i]):
                row[f"v{position}"] = _short(trace.mean[i])
                if trace.spread is not None:
                    row[f"v{position}"] += f" ± {_short(trace.spread[i])}"
        rows.append(row)
    return rows


def _encodings(figure: PanelsFigure) -> dict[str, Any]:
    alt = altair()
    small = len(figure.panels) > 1
    styles = figure.styles
    names = [style.label for style in styles]
    legend = alt.Legend(title=None, values=names, symbolOpacity=1)
    size = max(trace.mean.size for panel in figure.panels for trace in panel.traces)
    marks = {"labelFontSize": 10 if figure.columns > 2 else 12}
    marks |= {"titleFontSize": 11 if figure.columns > 2 else 13}
    x_axis = alt.Axis(title=figure.x_title, tickCount=4 if small else 8, format=",d", **marks)
    y_axis = alt.Axis(
        title=None if small else figure.y_title,
        tickCount=4 if small else 6,
        labelExpr=SCORE,
        **marks,
    )
    colours = alt.Scale(domain=names, range=[style.colour for style in styles])
    dashes = alt.Scale(domain=names, range=[list(style.dash) or [1, 0] for style in styles])
    domain = alt.Scale(domain=[1, max(size, 2)], nice=False)
    return {
        "x": alt.X("x:Q", scale=domain, axis=x_axis),
        "y": alt.Y("y:Q", scale=alt.Scale(zero=False), axis=y_axis),
        "color": alt.Color("c:N", scale=colours, legend=legend),
        "strokeDash": alt.StrokeDash("c:N", scale=dashes, legend=legend),
    }


def _kind(kind: str) -> Any:
    return altair().Chart().transform_filter(f"datum.k === '{kind}'")


def _layers(figure: PanelsFigure) -> list[Any]:
    alt, scales = altair(), _encodings(figure)
    band = _kind("line").mark_area(opacity=0.18, strokeWidth=0)
    band = band.encode(
        x=scales["x"],
        y=alt.Y("l:Q", title=None if len(figure.panels) > 1 else figure.y_title),
        y2=alt.Y2("h:Q"),
        color=scales["color"],
    )
    line = _kind("line").mark_line(strokeWidth=2 if len(figure.panels) == 1 else 1.6)
    mark = _kind("mark").mark_point(shape="cross", angle=45, filled=True, opacity=1, strokeWidth=0)
    size = alt.Size("s:Q", scale=None, legend=None)
    mark = mark.encode(x=scales["x"], y=scales["y"], color=scales["color"], size=size)
    layers = [band, line.encode(**scales), mark]
    if len(figure.panels) > 1:  # a header would move with the labels of the axis beneath it
        title = _kind("title").mark_text(align="left", baseline="bottom", fontSize=13, color=INK)
        layers.append(title.encode(x=alt.value(0), y=alt.value(-6), text="p:N"))
    return layers


def _hover(figure: PanelsFigure) -> list[Any]:
    """A rule at the iteration nearest to the pointer, with every curve's value written out."""
    alt, scales = altair(), _encodings(figure)
    under = alt.selection_point(
        name="under", on="pointerover", clear="pointerout", fields=["x", "p"], empty=False
    )
    rule = _kind("strip").transform_filter(under).mark_rule(color=MUTED, strokeWidth=1)
    tooltip = [alt.Tooltip("p:N", title="game"), alt.Tooltip("x:Q", title=figure.x_title)]
    for i, style in enumerate(figure.styles):
        tooltip.append(alt.Tooltip(f"v{i}:N", title=style.label))
    catch = _kind("strip").mark_rect(opacity=0)
    catch = catch.encode(
        x=alt.X("a:Q", title=figure.x_title), x2=alt.X2("b:Q"), tooltip=tooltip
    ).add_params(under)
    return [rule.encode(x=scales["x"]), catch]
