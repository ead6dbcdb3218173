"""Figures of curves: one panel or many, on linear or on logarithmic axes.

Beneath a curve is a thin line for every run, or a band of ± one standard deviation. All layers read
one table (Vega-Lite divides only one among panels), whose column ``k`` says which layer a row is
for.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from momentum_rl.report.figure import HEIGHT, WIDTH, Figure, Row, channel, tooltip
from momentum_rl.report.style import Array, Style, short

POINTS, SMALL_POINTS = 400, 80
"""At most this many points of a curve are drawn large, and in a small panel."""
DEEPEST = 1e-8
"""A log axis ends at this share of the largest value, however small the smallest one is."""
SHORT = "format(datum.value, abs(datum.value) >= 1000 ? '.3~s' : '.4~g')"
"""How numbers are written on an axis: 12k, 1.5M; but 0.5, not 500m."""
SIZES = {1: (WIDTH, HEIGHT), 2: (300, 190), 3: (210, 140), 4: (160, 105)}
"""Width and height of a panel in print, by how many are side by side."""


@dataclass(frozen=True)
class Curve:
    """A curve of a panel: values, often a mean over runs, with their spread or with the runs."""

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
        has_spread = any(curve.spread is not None for curve in self.curves)
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

    def chart(self) -> Row:
        """Layers, for all panels alike."""
        width, height = SIZES[self.columns]
        drawn: Row = {"layer": self._layers(), "encoding": self._encoding()}
        drawn |= {"width": width, "height": height}
        rows = [row for panel in self.panels for row in _rows(self, panel)]
        data = {"data": {"name": "all"}, "datasets": {"all": rows}}
        titles = {"c": "curve", "x": self.x_title, "t": self.y_title}
        if len(self.panels) == 1:
            return {**data, **drawn, **_hover(titles)}
        header = {"title": None, "labelAnchor": "start", "labelFontSize": 13, "labelPadding": 2}
        order = [panel.title for panel in self.panels]
        return {
            **data,
            "facet": channel("p", "nominal", sort=order, header=header),
            "columns": self.columns,
            "bounds": "flush",
            "spacing": {"row": 60, "column": 50},
            "resolve": {"scale": {"y": "independent"}, "axis": {"x": "independent"}},
            "spec": drawn,
            **_hover({"p": "panel", **titles}),
        }

    def _encoding(self) -> Row:
        """What all layers share."""
        small = len(self.panels) > 1
        known = [curve.x for curve in self.curves if curve.x.size]
        low, high = float(min(x[0] for x in known)), float(max(x[-1] for x in known))
        x: Row = {"nice": False, "domain": [low, high]}
        y: Row
        if self.log:
            x |= {"type": "log", "clamp": True}
            y = {**x, "domain": list(self.y_range)}
            axes: list[Row] = [{"format": ",~g", "labelOverlap": "greedy"} for _ in "xy"]
        else:
            x["domain"] = [low, high if high > low else low + 1]
            y = {"zero": False}
            axes = [{"tickCount": n, "labelExpr": SHORT} for n in ((4, 4) if small else (8, 6))]
        sizes = {"labelFontSize": 10, "titleFontSize": 11} if self.columns > 2 else {}
        titles = (self.x_title, None if small else self.y_title)
        axes = [{"title": title, **axis, **sizes} for title, axis in zip(titles, axes)]
        colours = [style.colour for style in self.styles]
        return {
            "x": channel("x", scale=x, axis=axes[0]),
            "y": channel("y", scale=y, axis=axes[1]),
            "color": self._told_apart(colours),
        }

    def _told_apart(self, looks: list[Any]) -> Row:
        """The channel that gives each curve its look."""
        labels = self.labels
        legend = {"title": None, "values": labels, "symbolOpacity": 1}
        return channel("c", "nominal", scale={"domain": labels, "range": looks}, legend=legend)

    def _layers(self) -> list[Row]:
        """Runs or bands, means, and marks."""
        small = len(self.panels) > 1
        if any(curve.runs is not None for curve in self.curves):
            mark = {"type": "line", "strokeWidth": 0.8, "opacity": 0.45}
            layers = [_layer("run", mark, detail=channel("r", "nominal"))]
        else:
            mark = {"type": "area", "opacity": 0.18, "strokeWidth": 0}
            low = channel("l", title=None if small else self.y_title)
            layers = [_layer("line", mark, y=low, y2={"field": "h"})]
        dashes = self._told_apart([list(style.dash) or [1, 0] for style in self.styles])
        mark = {"type": "line", "strokeWidth": 1.6 if small else 2}
        layers.append(_layer("line", mark, strokeDash=dashes))
        if any(curve.marks for curve in self.curves):
            mark = {"type": "point", "shape": "cross", "angle": 45, "filled": True}
            mark |= {"opacity": 1, "strokeWidth": 0}
            layers.append(_layer("mark", mark, size=channel("s", scale=None, legend=None)))
        return layers


def _layer(kind: str, mark: Row, **encoding: Row) -> Row:
    """The rows of a kind, by a mark."""
    return {
        "transform": [{"filter": f"datum.k === '{kind}'"}],
        "mark": mark,
        "encoding": encoding,
    }


def _hover(titles: dict[str, str]) -> Row:
    """Points on the lines that are not seen, with their values written out."""
    mark = {"type": "point", "filled": True, "size": 120, "opacity": 0}
    return {
        "usermeta": {"hover": {**_layer("line", mark), "encoding": {"tooltip": tooltip(titles)}}}
    }


def thinned(x: Array, points: int = POINTS, *, log: bool = True) -> NDArray[np.intp]:
    """Positions of at most ``points`` of the x, evenly spaced on the axis, with the first and last.

    >>> thinned(np.arange(1.0, 10_001.0), 5), thinned(np.arange(1.0, 10_002.0), 5, log=False)
    (array([   0,    9,   99,  999, 9999]), array([    0,  2500,  5000,  7500, 10000]))
    """
    if x.size <= points:
        return np.arange(x.size)
    place = np.log(x) if log else x
    wanted = np.linspace(place[0], place[-1], points)
    right = np.searchsorted(place, wanted).clip(1, x.size - 1)
    nearer_left = wanted - place[right - 1] <= place[right] - wanted
    return np.unique(np.where(nearer_left, right - 1, right))


def _spread(curve: Curve) -> Array:
    return np.zeros_like(curve.y) if curve.spread is None else curve.spread


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")


def _rows(figure: CurvesFigure, panel: Panel) -> list[Row]:
    """A panel's rows: what has no place on a log axis is at its edge, or left out."""
    low, high = figure.y_range if figure.log else (-math.inf, math.inf)
    points = POINTS if len(figure.panels) <= 2 else SMALL_POINTS
    rows: list[Row] = []
    # Curves without a spread are drawn first: they are the background.
    for curve in sorted(panel.curves, key=lambda curve: curve.spread is not None):
        label = curve.style.label
        runs = () if curve.runs is None else curve.runs
        for r, values in enumerate((curve.y, *runs)):
            for i in thinned(curve.x, points, log=figure.log):
                if not math.isfinite(values[i]):
                    continue
                y = _rounded(max(values[i], low))
                row: Row = {"p": panel.title, "c": label, "x": _rounded(curve.x[i]), "y": y}
                if r:
                    rows.append({"k": "run", "r": f"{label} {r - 1}", **row})
                    continue
                row |= {"k": "line", "t": short(values[i])}
                if curve.spread is not None:
                    spread = curve.spread[i]
                    row["t"] += f" ± {short(spread)}"
                    row["l"] = _rounded(max(values[i] - spread, low))
                    row["h"] = _rounded(min(max(values[i] + spread, low), high))
                rows.append(row)
        known, last = np.flatnonzero(np.isfinite(curve.y)).tolist(), curve.y.size - 1
        diverged = sorted({min(mark, last) for mark in curve.marks} & set(known))
        for i in diverged or known[:1]:  # of no size where there is none: an axis needs a value
            row = {"k": "mark", "p": panel.title, "c": label, "s": 90 if diverged else 0}
            rows.append({**row, "x": _rounded(curve.x[i]), "y": _rounded(max(curve.y[i], low))})
    return rows
