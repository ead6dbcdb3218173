"""Figures of curves: one panel or many, on linear or on logarithmic axes.

Every run is a thin line beneath the mean; where panels are too many and too small for that, a band
of ± one standard deviation takes their place. All layers read one table (Vega-Lite divides only one
among panels), whose column ``k`` says which layer a row is for.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from momentum_rl.report.figure import LEGEND_LINE, WIDTH, Figure, Row, altair, finished, strokes
from momentum_rl.report.style import INK, MUTED, Array, Style, short

POINTS, SMALL_POINTS = 400, 80
"""At most this many points of a curve are drawn large, and in a small panel."""
RUNS_DRAWN = 9
"""Up to this many panels have a line for every run."""
DEEPEST = 1e-8
"""A log axis ends at this share of the largest value, however small the smallest one is."""
SHORT = "format(datum.value, abs(datum.value) >= 1000 ? '.3~s' : '.4~g')"
"""How numbers are written on an axis: 12k, 1.5M; but 0.5, not 500m."""


@dataclass(frozen=True)
class Curve:
    """A curve of a panel: values, often a mean over runs, with their spread or the runs."""

    style: Style
    x: Array
    """Where its points are, increasing."""
    y: Array
    """By point; NaN where there is none."""
    spread: Array | None = None
    runs: Array | None = None
    """[runs, points]; NaN where there is none."""
    marks: tuple[int, ...] = ()
    """Points (from 0) at which a run diverged."""


@dataclass(frozen=True)
class Panel:
    """Curves under one title."""

    title: str
    curves: tuple[Curve, ...]


@dataclass(frozen=True)
class CurvesFigure(Figure):
    """Curves, panel by panel; a single panel is drawn large."""

    panels: tuple[Panel, ...]
    x_title: str = "agent steps"
    y_title: str = "score"
    log: bool = False
    """Whether both axes are logarithmic."""
    guide: Curve | None = None
    """A thin grey line for the eye, in a figure of one panel."""

    @property
    def curves(self) -> list[Curve]:
        """Of all panels."""
        return [curve for panel in self.panels for curve in panel.curves]

    @property
    def styles(self) -> list[Style]:
        """Of all curves, in the order of the legend."""
        return list({curve.style.label: curve.style for curve in self.curves}.values())

    @property
    def columns(self) -> int:
        """Panels side by side in print."""
        return {1: 1, 2: 2, 3: 3, 4: 2}.get(len(self.panels), 3 if len(self.panels) <= 9 else 4)

    @property
    def has_runs(self) -> bool:
        """Whether every run has a line."""
        several = (curve.runs is not None and len(curve.runs) > 1 for curve in self.curves)
        return len(self.panels) <= RUNS_DRAWN and any(several)

    def shown(self, curve: Curve) -> NDArray[np.intp]:
        """The positions of the points that are drawn, evenly spaced on the axis."""
        most = POINTS if len(self.panels) <= 2 else SMALL_POINTS
        if self.log:
            return thinned(curve.x, most)
        even = np.linspace(0, curve.x.size - 1, min(curve.x.size, most))
        return np.unique(even.round().astype(np.intp))

    def remarks(self) -> list[str]:
        """Axes, runs or bands, thinning, and marks."""
        parts = ["Both axes are logarithmic."] if self.log else []
        if self.has_runs:
            parts.append("Thick lines are means over seeds, thin lines the seeds.")
        elif any(curve.spread is not None for curve in self.curves):
            parts.append("Bands are mean ± one standard deviation.")
        longest = max(self.curves, key=lambda curve: curve.x.size)
        if self.shown(longest).size < longest.x.size:
            parts.append(
                f"Drawn at {self.shown(longest).size:,} of {longest.x.size:,} points; nothing is "
                "smoothed. Statistics use all."
            )
        if self.log and any((c.y - _spread(c) < self.y_range[0]).any() for c in self.curves):
            parts.append("What is below the axis, or below 0, is drawn at its lower edge.")
        if any(curve.marks for curve in self.curves):
            parts.append("× marks where a run diverged.")
        return parts

    @property
    def y_range(self) -> tuple[float, float]:
        """The vertical axis if it is logarithmic: from and to 1, 2 or 5 × 10^i."""
        values = np.concatenate([curve.y for curve in self.curves])
        values = values[np.isfinite(values) & (values > 0)]
        if not values.size:
            return 0.1, 1.0
        tops = np.concatenate([curve.y + _spread(curve) for curve in self.curves])
        high = float(np.max(tops[np.isfinite(tops)]))
        low = max(float(values.min()), DEEPEST * high)
        steps = np.array([m * 10.0**e for e in range(-14, 14) for m in (1, 2, 5)])
        below, above = steps[steps <= low * (1 + 1e-9)], steps[steps >= high * (1 - 1e-9)]
        return float(below.max(initial=1e-14)), float(above.min(initial=1e14))

    def numbers(self) -> list[Row]:
        """A row for each point of a curve, and of each run beneath it."""
        has_spread = not self.has_runs and any(c.spread is not None for c in self.curves)
        rows = []
        for panel in self.panels:
            for curve in panel.curves:
                runs = () if curve.runs is None else enumerate(curve.runs)
                for name, values in (("mean", curve.y), *((str(r), y) for r, y in runs)):
                    for i in np.flatnonzero(~np.isnan(values)):
                        row: Row = {"panel": panel.title, "curve": curve.style.label, "run": name}
                        row |= {self.x_title: float(curve.x[i]), self.y_title: float(values[i])}
                        if has_spread:
                            row["spread"] = float(_spread(curve)[i]) if name == "mean" else None
                        rows.append(row)
        return rows

    def spec(self, *, interactive: bool) -> dict[str, Any]:
        """The Vega-Lite specification: for the page (fluid width, hover), or for print (title)."""
        alt = altair()
        scales = _encodings(self)
        layers = _layers(self, scales)
        if interactive:
            layers.append(_hover(self, scales))
        width, height = _panel_size(self.columns)
        if len(self.panels) == 1:
            chart = alt.layer(*layers, data=alt.NamedData("all"))
        else:
            is_ragged = len(self.panels) > self.columns and len(self.panels) % self.columns > 0
            header = alt.Header(title=None, labelExpr="''", labelFontSize=1, labelPadding=0)
            order = [panel.title for panel in self.panels]
            chart = alt.layer(*layers).properties(width=width, height=height)
            chart = chart.facet(
                facet=alt.Facet("p:N", sort=order, header=header),
                columns=self.columns,
                data=alt.NamedData("all"),
                bounds="flush",
                spacing={"row": 64 if is_ragged else 38, "column": 50},
            ).resolve_scale(y="independent")
            if is_ragged:  # a shared axis would also be drawn where no panel is
                chart = chart.resolve_axis(x="independent")
        line = LEGEND_LINE * max(1.0, self.columns * width / WIDTH)
        letters = [len(style.label) + 6 for style in self.styles]
        fits = sum(letters) <= line
        spec = finished(
            chart,
            self,
            legend_columns=len(letters) if fits else max(1, int(line / max(letters))),
            interactive=interactive,
            sized=len(self.panels) == 1,
        )
        # Put in here, as Altair would check them row by row: slow.
        spec["datasets"] = {"all": [row for panel in self.panels for row in _rows(self, panel)]}
        return spec


def thinned(x: Array, points: int = POINTS) -> NDArray[np.intp]:
    """Positions of at most ``points`` of the x, evenly spaced in log x, with the first and last.

    >>> thinned(np.arange(1.0, 10_001.0), 5)
    array([   0,    9,   99,  999, 9999])
    """
    if x.size <= points:
        return np.arange(x.size)
    wanted = np.geomspace(x[0], x[-1], points)
    right = np.searchsorted(x, wanted).clip(1, x.size - 1)
    nearer_left = wanted / x[right - 1] <= x[right] / wanted
    return np.unique(np.where(nearer_left, right - 1, right))


def _spread(curve: Curve) -> Array:
    return np.zeros_like(curve.y) if curve.spread is None else curve.spread


def _panel_size(columns: int) -> tuple[int, int]:
    return {1: (520, 320), 2: (300, 190), 3: (210, 140)}.get(columns, (160, 105))


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")


def _rows(figure: CurvesFigure, panel: Panel) -> list[Row]:
    """A panel's rows: what has no place on a log axis is at its edge, or left out."""
    low, high = figure.y_range if figure.log else (-math.inf, math.inf)

    def points(kind: str, curve: Curve, values: Array, run: int = 0) -> list[Row]:
        rows: list[Row] = []
        label = curve.style.label
        for i in figure.shown(curve):
            if not math.isfinite(values[i]):
                continue
            y = _rounded(max(values[i], low))
            row: Row = {"k": kind, "p": panel.title, "c": label, "x": _rounded(curve.x[i]), "y": y}
            if kind == "run":
                row["r"] = f"{label} {run}"
            if kind == "line":
                row["t"] = short(values[i])
                if curve.spread is not None:
                    row["t"] += f" ± {short(curve.spread[i])}"
                if curve.spread is not None and not figure.has_runs:
                    row["l"] = _rounded(max(values[i] - curve.spread[i], low))
                    row["h"] = _rounded(min(max(values[i] + curve.spread[i], low), high))
            rows.append(row)
        return rows

    rows: list[Row] = [{"k": "title", "p": panel.title}]
    # Curves without a spread are drawn first: they are the background.
    for curve in sorted(panel.curves, key=lambda curve: curve.spread is not None):
        rows += points("line", curve, curve.y)
        if figure.has_runs and curve.runs is not None:
            for r, values in enumerate(curve.runs):
                rows += points("run", curve, values, r)
        rows += _marks(panel, curve)
    if figure.guide is not None:
        rows += [row for row in points("guide", figure.guide, figure.guide.y) if row["y"] <= high]
    return rows


def _marks(panel: Panel, curve: Curve) -> list[Row]:
    """Where runs diverged; a curve without any has one of no size: its axis needs a value."""
    known = np.flatnonzero(~np.isnan(curve.y)).tolist()
    diverged = sorted({min(i, curve.y.size - 1) for i in curve.marks} & set(known))
    size = 90 if diverged else 0
    return [
        {"k": "mark", "p": panel.title, "c": curve.style.label, "s": size}
        | {"x": _rounded(curve.x[i]), "y": _rounded(curve.y[i])}
        for i in diverged or known[:1]
    ]


def _encodings(figure: CurvesFigure) -> dict[str, Any]:
    """The encodings that all layers share."""
    alt = altair()
    small = len(figure.panels) > 1
    known = [curve.x for curve in figure.curves if curve.x.size]
    low, high = float(min(x[0] for x in known)), float(max(x[-1] for x in known))
    sizes = {"labelFontSize": 10 if figure.columns > 2 else 12}
    sizes |= {"titleFontSize": 11 if figure.columns > 2 else 13}
    titles = (figure.x_title, None if small else figure.y_title)
    if figure.log:
        ranges = ((low, high), figure.y_range)
        scales = [alt.Scale(type="log", domain=[*r], nice=False, clamp=True) for r in ranges]
        axes = [alt.Axis(title=t, format=",~g", labelOverlap="greedy", **sizes) for t in titles]
    else:
        domain = [low, high if high > low else low + 1]
        scales = [alt.Scale(domain=domain, nice=False), alt.Scale(zero=False)]
        counts = (4, 4) if small else (8, 6)
        axes = [
            alt.Axis(title=title, tickCount=count, labelExpr=SHORT, **sizes)
            for title, count in zip(titles, counts)
        ]
    return {
        "x": alt.X("x:Q", scale=scales[0], axis=axes[0]),
        "y": alt.Y("y:Q", scale=scales[1], axis=axes[1]),
        **strokes(figure.styles, "c", symbolOpacity=1),
    }


def _kind(kind: str) -> Any:
    return altair().Chart().transform_filter(f"datum.k === '{kind}'")


def _layers(figure: CurvesFigure, scales: dict[str, Any]) -> list[Any]:
    alt, layers = altair(), []
    small = len(figure.panels) > 1
    place = {name: scales[name] for name in ("x", "y")}
    if figure.has_runs:
        run = _kind("run").mark_line(strokeWidth=0.8, opacity=0.45)
        layers.append(run.encode(**place, color=scales["color"], detail="r:N"))
    else:
        band = _kind("line").mark_area(opacity=0.18, strokeWidth=0)
        ends = {"y": alt.Y("l:Q", title=None if small else figure.y_title), "y2": alt.Y2("h:Q")}
        layers.append(band.encode(x=scales["x"], color=scales["color"], **ends))
    if figure.guide is not None:
        thin = _kind("guide").mark_line(color=MUTED, strokeWidth=1, strokeDash=[1, 3])
        layers.append(thin.encode(**place))
        name = _kind("guide").transform_window(n="row_number()").transform_filter("datum.n == 3")
        label = {"color": MUTED, "align": "left", "dx": 6, "dy": -6, "fontSize": 12}
        layers.append(name.mark_text(text=figure.guide.style.label, **label).encode(**place))
    layers.append(_kind("line").mark_line(strokeWidth=1.6 if small else 2).encode(**scales))
    if any(curve.marks for curve in figure.curves):
        cross = {"shape": "cross", "angle": 45, "filled": True, "opacity": 1, "strokeWidth": 0}
        size = alt.Size("s:Q", scale=None, legend=None)
        mark = _kind("mark").mark_point(**cross)
        layers.append(mark.encode(**place, color=scales["color"], size=size))
    if small:  # a header would move with the labels of the axis beneath it
        title = _kind("title").mark_text(align="left", baseline="bottom", fontSize=13, color=INK)
        layers.append(title.encode(x=alt.value(0), y=alt.value(-6), text="p:N"))
    return layers


def _hover(figure: CurvesFigure, scales: dict[str, Any]) -> Any:
    """Points that are not seen, with their values written out."""
    alt = altair()
    columns = {"p:N": "panel", "c:N": "curve", "x:Q": figure.x_title, "t:N": figure.y_title}
    if len(figure.panels) == 1:
        del columns["p:N"]
    tooltip = [alt.Tooltip(column, title=title) for column, title in columns.items()]
    points = _kind("line").mark_point(filled=True, size=120, opacity=0)
    return points.encode(x=scales["x"], y=scales["y"], color=scales["color"], tooltip=tooltip)
