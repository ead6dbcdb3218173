"""Figures of curves over a common, logarithmic axis."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from momentum_rl.report.drawing.figure import (
    LEGEND_LINE,
    Figure,
    Row,
    altair,
    finished,
    hover,
    strokes,
    with_spread,
)
from momentum_rl.report.drawing.numbers import Array, short
from momentum_rl.report.drawing.styles import MUTED, Style

POINTS = 400
"""At most this many points of a curve are drawn."""
DEEPEST = 1e-8
"""The log axis ends at this share of the largest value, however small the smallest one is."""


@dataclass(frozen=True)
class Curve:
    """A value at every x of a figure; with a spread, a band of ± this is drawn around it."""

    style: Style
    values: Array
    spread: Array | None = None


@dataclass(frozen=True)
class LineFigure(Figure):
    """Curves over a common x."""

    x_title: str
    y_title: str
    x: Array
    """Where the curves have values, increasing, above 0."""
    curves: tuple[Curve, ...]
    """What is drawn, in the order of the legend."""
    guide: Curve | None = None
    """A thin grey line for the eye, without a value on hover."""

    def remarks(self) -> list[str]:
        """Thinning, and what the log axis hides."""
        drawn, total = thinned(self.x).size, self.x.size
        parts = ["Both axes are logarithmic."]
        if drawn < total:
            parts.append(
                f"Drawn at {drawn:,} of {total:,} points, evenly spaced on the logarithmic axis; "
                "each is a value of the data, nothing is smoothed. Verdicts use all points."
            )
        low, _ = self.y_range
        rows = thinned(self.x)
        bottoms = [c.values - c.spread for c in self.curves if c.spread is not None]
        if any((bottom[rows] < low).any() for bottom in bottoms):
            parts.append(
                "Bands are mean ± one standard deviation; where their lower end is not above the "
                "axis (or not above 0, which has no place on it) they run to its lower edge."
            )
        elif bottoms:
            parts.append("Bands are mean ± one standard deviation.")
        if any((curve.values[rows] < low).any() for curve in self.curves):
            parts.append("Values too small for the axis are drawn at its lower edge.")
        if any(np.isinf(curve.values[rows]).any() for curve in self.curves):
            parts.append("Infinite values are not drawn.")
        return parts

    @property
    def alt(self) -> str:
        """Where the curves begin and end."""
        ends = "; ".join(
            f"{curve.style.label} from {short(curve.values[0])} to {short(curve.values[-1])}"
            for curve in self.curves
        )
        return (
            f"Line chart, {self.subtitle}, against {self.x_title}, from {short(self.x[0])} to "
            f"{short(self.x[-1])}: {ends}."
        )

    @property
    def y_range(self) -> tuple[float, float]:
        """The vertical axis: whole decades, or 1-2-5 steps if that leaves less empty."""
        values = np.concatenate([curve.values for curve in self.curves])
        values = values[np.isfinite(values) & (values > 0)]
        if not values.size:
            return 0.1, 1.0
        tops = [c.values + (0 if c.spread is None else c.spread) for c in self.curves]
        high = max(float(np.max(top[np.isfinite(top)], initial=0)) for top in tops)
        low = max(float(values.min()), DEEPEST * high)
        return _step(low * (1 + 1e-9), up=False), _step(high * (1 - 1e-9), up=True)

    def numbers(self) -> list[Row]:
        """A row for each point of a curve."""
        return [
            {
                "curve": curve.style.label,
                self.x_title: float(x),
                "value": float(curve.values[i]),
                "spread": None if curve.spread is None else float(curve.spread[i]),
            }
            for curve in self.curves
            for i, x in enumerate(self.x)
        ]

    def spec(self, *, interactive: bool) -> dict[str, Any]:
        """The Vega-Lite specification: for the page (fluid width, hover), or for print (title)."""
        data: dict[str, list[Row]] = {}
        scales = _scales(self)
        layers = [*_bands(self, data, scales), *_lines(self, data, scales)]
        if interactive:
            layers += _hover(self, data, scales)
        letters = sum(len(curve.style.label) + 6 for curve in self.curves)
        columns = len(self.curves) if letters <= LEGEND_LINE else 3
        chart = altair().layer(*layers)
        spec = finished(chart, self, legend_columns=columns, interactive=interactive)
        spec["datasets"] = data  # put in here, as Altair would check them row by row: slow
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


def _step(value: float, *, up: bool) -> float:
    """The next of 1, 2, 5 × 10^i above or below a value."""
    steps = [m * 10.0**e for e in range(-14, 14) for m in (1, 2, 5)]
    if up:
        return next((step for step in steps if step >= value), value)
    return next((step for step in reversed(steps) if step <= value), value)


def _ticks(low: float, high: float) -> list[float]:
    """Decades; 1-2-5 where there are fewer than three of them; every other one beyond eight."""
    bottom, top = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    decades = [float(f"1e{i}") for i in range(bottom, top + 1, 1 if top - bottom <= 8 else 2)]
    if len(decades) >= 3:
        return decades
    steps = [float(f"{m}e{e}") for e in range(bottom - 1, top + 1) for m in (1, 2, 5)]
    return [step for step in steps if low * 0.999 <= step <= high * 1.001]


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")


def _chart(data: dict[str, list[Row]], name: str, rows: list[Row]) -> Any:
    """A chart of these rows, which become a data set of that name."""
    alt = altair()
    data[name] = rows
    return alt.Chart(alt.NamedData(name))


def _rows(figure: LineFigure, curve: Curve) -> list[Row]:
    """A curve as Vega-Lite data: what has no place on the log axis is at its edge, or left out."""
    low, high = figure.y_range
    rows = []
    for i in thinned(figure.x):
        value = float(curve.values[i])
        row: Row = {"x": _rounded(figure.x[i]), "curve": curve.style.label}
        row["y"] = _rounded(max(value, low)) if math.isfinite(value) else None
        if curve.spread is not None:
            spread = float(curve.spread[i])
            row["low"] = _rounded(max(value - spread, low))
            row["high"] = _rounded(min(max(value + spread, low), high))
        rows.append(row)
    return rows


def _scales(figure: LineFigure) -> dict[str, Any]:
    """The encodings that all layers share."""
    alt = altair()

    def log(title: str, first: float, last: float) -> dict[str, Any]:
        scale = alt.Scale(type="log", domain=[first, last], nice=False, clamp=True)
        ticks = _ticks(first, last)
        axis = alt.Axis(title=title, values=ticks, format=",~g", labelOverlap="greedy")
        return {"scale": scale, "axis": axis}

    return {
        "x": alt.X("x:Q", **log(figure.x_title, float(figure.x[0]), float(figure.x[-1]))),
        "y": alt.Y("y:Q", **log(figure.y_title, *figure.y_range)),
        **strokes([curve.style for curve in figure.curves], "curve"),
    }


def _bands(figure: LineFigure, data: dict[str, list[Row]], scales: dict[str, Any]) -> list[Any]:
    alt, layers = altair(), []
    for c, curve in enumerate(figure.curves):
        if curve.spread is not None:
            band = _chart(data, f"band{c}", _rows(figure, curve))
            band = band.mark_area(opacity=0.18, color=curve.style.colour, strokeWidth=0)
            low = alt.Y("low:Q", title=figure.y_title)
            layers.append(band.encode(x=scales["x"], y=low, y2=alt.Y2("high:Q")))
    return layers


def _lines(figure: LineFigure, data: dict[str, list[Row]], scales: dict[str, Any]) -> list[Any]:
    layers = []
    if figure.guide is not None:
        low, high = figure.y_range
        rows = [row for row in _rows(figure, figure.guide) if low < row["y"] <= high]
        line = _chart(data, "guide", rows)
        line = line.mark_line(color=MUTED, strokeWidth=1, strokeDash=[1, 3])
        text = _chart(data, "guide_label", rows[2:3])
        label = figure.guide.style.label
        text = text.mark_text(text=label, color=MUTED, align="left", dx=6, dy=-6, fontSize=12)
        layers += [mark.encode(x=scales["x"], y=scales["y"]) for mark in (line, text)]
    rows = [row for curve in figure.curves for row in _rows(figure, curve)]
    drawn = [{key: row[key] for key in ("x", "y", "curve")} for row in rows]
    layers.append(_chart(data, "lines", drawn).mark_line().encode(**scales))
    return layers


def _hover(figure: LineFigure, data: dict[str, list[Row]], scales: dict[str, Any]) -> list[Any]:
    """A rule and dots at the x nearest to the pointer, with every curve's value written out."""
    alt, drawn = altair(), thinned(figure.x)
    x = figure.x[drawn]
    middles = np.sqrt(x[1:] * x[:-1])
    rows = []
    for i, left, right in zip(drawn, [x[0], *middles], [*middles, x[-1]], strict=True):
        row: Row = {"x": _rounded(figure.x[i]), "at": short(figure.x[i])}
        row |= {"a": _rounded(left), "b": _rounded(right)}
        for c, curve in enumerate(figure.curves):
            spread = None if curve.spread is None else short(curve.spread[i])
            row[f"c{c}"] = with_spread(short(curve.values[i]), spread)
        rows.append(row)
    tooltip = [("at:N", figure.x_title)]
    tooltip += [(f"c{c}:N", curve.style.label) for c, curve in enumerate(figure.curves)]
    strips = _chart(data, "strips", rows)
    under, rule, catch = hover(strips, scales["x"], figure.x_title, ["x"], tooltip)
    dots = alt.Chart(alt.NamedData("lines")).transform_filter(under)
    dots = dots.mark_point(filled=True, size=45, opacity=1)
    dots = dots.encode(x=scales["x"], y=scales["y"], color=scales["color"])
    return [rule, dots, catch.properties(name="strips")]
