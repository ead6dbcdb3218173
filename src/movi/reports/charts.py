"""One kind of figure, curves over a logarithmic axis, from data to every output format.

A ``Figure`` is data. ``Figure.spec`` turns it into a Vega-Lite specification through Altair, once
for the interactive page and once for print, from the same layers; ``save`` writes the print one.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from movi.errors import UserError
from movi.reports.series import GRID, INK, MUTED, Style
from movi.reports.tables import Array

FORMATS = ("pdf", "png", "svg")
"""What ``save`` can write."""
POINTS = 400
"""At most this many points of a curve are drawn."""
FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
"""Every figure's font; the first one comes with the converter, so print looks the same anywhere."""
WIDTH, HEIGHT = 520, 320
"""Size of the plot area in print, in points."""
DEEPEST = 1e-8
"""The log axis ends at this share of the largest value, however small the smallest one is."""


@dataclass(frozen=True)
class Curve:
    """One curve of a figure."""

    style: Style
    """Its name and look."""
    values: Array
    """A value at every x of the figure."""
    spread: Array | None = None
    """If given, a band of ± this is drawn around the curve."""


@dataclass(frozen=True)
class Figure:
    """Curves over a common x, and the words around them."""

    name: str
    """File name without its ending, and anchor on the page."""
    title: str
    """The heading."""
    subtitle: str
    """What is drawn, in a line."""
    x_title: str
    """The horizontal axis."""
    y_title: str
    """The vertical axis."""
    x: Array
    """Where the curves have values, increasing, above 0."""
    curves: tuple[Curve, ...]
    """What is drawn, in the order of the legend."""
    guide: Curve | None = None
    """A thin grey line for the eye, without a value on hover."""

    @property
    def caption(self) -> str:
        """What a reader must know to read the picture: thinning, and what the log axis hides."""
        drawn, total = thinned(self.x).size, self.x.size
        parts = ["Both axes are logarithmic."]
        if drawn < total:
            parts.append(
                f"Drawn at {drawn:,} of {total:,} points, evenly spaced on the logarithmic axis; "
                "each is a value of the data, nothing is smoothed. Verdicts use all points."
            )
        low, _ = self.y_range
        rows = thinned(self.x)
        if any(
            curve.spread is not None and ((curve.values - curve.spread)[rows] < low).any()
            for curve in self.curves
        ):
            parts.append(
                "Bands are mean ± one standard deviation; where their lower end is not above the "
                "axis (or not above 0, which has no place on it) they run to its lower edge."
            )
        elif any(curve.spread is not None for curve in self.curves):
            parts.append("Bands are mean ± one standard deviation.")
        if any((curve.values[rows] < low).any() for curve in self.curves):
            parts.append("Values too small for the axis are drawn at its lower edge.")
        if any(np.isinf(curve.values[rows]).any() for curve in self.curves):
            parts.append("Infinite values are not drawn.")
        return " ".join(parts)

    @property
    def alt(self) -> str:
        """The picture in words, for those who cannot see it."""
        ends = "; ".join(
            f"{curve.style.label} from {_short(curve.values[0])} to {_short(curve.values[-1])}"
            for curve in self.curves
        )
        return (
            f"Line chart, {self.subtitle}, against {self.x_title}, from {_short(self.x[0])} to "
            f"{_short(self.x[-1])}: {ends}."
        )

    @property
    def y_range(self) -> tuple[float, float]:
        """The vertical axis: whole decades, or 1-2-5 steps if that leaves less empty."""
        values = np.concatenate([curve.values for curve in self.curves])
        values = values[np.isfinite(values) & (values > 0)]
        if not values.size:
            return 0.1, 1.0
        tops = [c.values + (0 if c.spread is None else c.spread) for c in self.curves]
        high = max(float(top[np.isfinite(top)].max(initial=0)) for top in tops)
        low = max(float(values.min()), DEEPEST * high)
        return _step(low * (1 + 1e-9), up=False), _step(high * (1 - 1e-9), up=True)

    def spec(self, *, interactive: bool) -> dict[str, Any]:
        """The Vega-Lite specification: for the page (fluid width, hover), or for print (title)."""
        alt = _altair()
        data: Datasets = {}
        layers = [*_bands(self, data), *_lines(self, data)]
        if interactive:
            layers.append(_hover(self, data))
        chart = alt.layer(*layers).properties(height=HEIGHT)
        if interactive:
            chart = chart.properties(
                width="container", autosize=alt.AutoSizeParams(type="fit-x", contains="padding")
            )
        else:
            title = alt.TitleParams(self.title, subtitle=self.subtitle)
            chart = chart.properties(width=WIDTH, title=title, background="white")
        spec: dict[str, Any] = chart.configure(**_config(self)).to_dict()
        spec["datasets"] = data  # put in here, as Altair would check them row by row: slow
        del spec["$schema"]  # an address; the converter and the page know the language without it
        return spec

    def svg(self) -> str:
        """The print version without its title, as SVG text to put into a page."""
        spec = self.spec(interactive=False)
        del spec["title"], spec["background"]
        return str(_converter().vegalite_to_svg(spec))


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


def save(
    figure: Figure, directory: Path, name: str | None = None, formats: Sequence[str] = FORMATS
) -> list[Path]:
    """Write a figure into a directory as each of the formats; the paths written."""
    for form in formats:
        if form not in FORMATS:
            raise UserError(f"figure format: {form!r}, expected one of {', '.join(FORMATS)}")
    convert = _converter()
    svg = convert.vegalite_to_svg(figure.spec(interactive=False))
    directory.mkdir(parents=True, exist_ok=True)
    paths = []
    for form in formats:
        path = directory / f"{name or figure.name}.{form}"
        if form == "pdf":
            path.write_bytes(convert.svg_to_pdf(svg))
        elif form == "png":
            path.write_bytes(convert.svg_to_png(svg, scale=3))
        else:
            path.write_text(svg, encoding="utf-8")
        paths.append(path)
    return paths


def _altair() -> Any:
    try:
        import altair
    except ImportError as error:
        raise UserError("figures need the extra `report`: pip install 'movi[report]'") from error
    return altair


def _converter() -> Any:
    try:
        import vl_convert
    except ImportError as error:
        raise UserError("figures need the extra `report`: pip install 'movi[report]'") from error
    return vl_convert


def page_libraries() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script without any address to load from."""
    return str(_converter().javascript_bundle())


def _short(value: float) -> str:
    return "∞" if np.isinf(value) else f"{float(f'{value:.4g}'):,g}"


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


Datasets = dict[str, list[dict[str, Any]]]
"""Rows by the name under which a layer refers to them."""


def _chart(data: Datasets, name: str, rows: list[dict[str, Any]]) -> Any:
    """A chart of these rows, which become a data set of that name."""
    alt = _altair()
    data[name] = rows
    return alt.Chart(alt.NamedData(name))


def _rows(figure: Figure, curve: Curve) -> list[dict[str, Any]]:
    """A curve as Vega-Lite data: what has no place on the log axis is at its edge, or left out."""
    low, high = figure.y_range
    rows = []
    for i in thinned(figure.x):
        value = float(curve.values[i])
        row: dict[str, Any] = {"x": _rounded(figure.x[i]), "curve": curve.style.label}
        row["y"] = _rounded(max(value, low)) if math.isfinite(value) else None
        if curve.spread is not None:
            spread = float(curve.spread[i])
            row["low"] = _rounded(max(value - spread, low))
            row["high"] = _rounded(min(max(value + spread, low), high))
        rows.append(row)
    return rows


def _scales(figure: Figure) -> Mapping[str, Any]:
    """The encodings that all layers share."""
    alt = _altair()
    low, high = figure.y_range
    left, right = float(figure.x[0]), float(figure.x[-1])
    styles = [curve.style for curve in figure.curves]
    names = [style.label for style in styles]
    legend = alt.Legend(title=None, values=names)

    def axis(title: str, first: float, last: float) -> Any:
        ticks = _ticks(first, last)
        return alt.Axis(title=title, values=ticks, format=",~g", labelOverlap="greedy")

    def log(first: float, last: float) -> Any:
        return alt.Scale(type="log", domain=[first, last], nice=False, clamp=True)

    colours = alt.Scale(domain=names, range=[style.colour for style in styles])
    dashes = alt.Scale(domain=names, range=[list(style.dash) or [1, 0] for style in styles])
    return {
        "x": alt.X("x:Q", scale=log(left, right), axis=axis(figure.x_title, left, right)),
        "y": alt.Y("y:Q", scale=log(low, high), axis=axis(figure.y_title, low, high)),
        "color": alt.Color("curve:N", scale=colours, legend=legend),
        "strokeDash": alt.StrokeDash("curve:N", scale=dashes, legend=legend),
    }


def _bands(figure: Figure, data: Datasets) -> list[Any]:
    alt, scales = _altair(), _scales(figure)
    layers = []
    for c, curve in enumerate(figure.curves):
        if curve.spread is not None:
            band = _chart(data, f"band{c}", _rows(figure, curve))
            band = band.mark_area(opacity=0.18, color=curve.style.colour, strokeWidth=0)
            low = alt.Y("low:Q", title=figure.y_title)
            layers.append(band.encode(x=scales["x"], y=low, y2=alt.Y2("high:Q")))
    return layers


def _lines(figure: Figure, data: Datasets) -> list[Any]:
    scales, layers = _scales(figure), []
    if figure.guide is not None:
        rows = [row for row in _rows(figure, figure.guide) if row["y"] > figure.y_range[0]]
        line = _chart(data, "guide", rows)
        line = line.mark_line(color=MUTED, strokeWidth=1, strokeDash=[1, 3])
        text = _chart(data, "guide_label", rows[len(rows) // 3 :][:1])
        label = figure.guide.style.label
        text = text.mark_text(text=label, color=MUTED, align="right", dx=-4, dy=10, fontSize=12)
        layers += [mark.encode(x=scales["x"], y=scales["y"]) for mark in (line, text)]
    rows = [row for curve in figure.curves for row in _rows(figure, curve)]
    kept = [{key: row[key] for key in ("x", "y", "curve")} for row in rows]
    layers.append(_chart(data, "lines", kept).mark_line().encode(**scales))
    return layers


def _hover(figure: Figure, data: Datasets) -> Any:
    """A vertical rule at the nearest x, with every curve's value there, written out."""
    alt, scales = _altair(), _scales(figure)
    rows = []
    for i in thinned(figure.x):
        row: dict[str, Any] = {"x": _rounded(figure.x[i]), "at": _short(figure.x[i])}
        for c, curve in enumerate(figure.curves):
            row[f"c{c}"] = _short(curve.values[i])
            if curve.spread is not None:
                row[f"c{c}"] += f" ± {_short(curve.spread[i])}"
        rows.append(row)
    nearest = alt.selection_point(
        name="hover", nearest=True, on="pointerover", clear="pointerout", fields=["x"], empty=False
    )
    tooltip = [alt.Tooltip("at:N", title=figure.x_title)]
    tooltip += [
        alt.Tooltip(f"c{c}:N", title=curve.style.label) for c, curve in enumerate(figure.curves)
    ]
    rule = _chart(data, "hover", rows).properties(name="rules")
    rule = rule.mark_rule(color=MUTED, strokeWidth=1)
    opacity = alt.condition(nearest, alt.value(1), alt.value(0))
    return rule.encode(x=scales["x"], opacity=opacity, tooltip=tooltip).add_params(nearest)


def _config(figure: Figure) -> dict[str, Any]:
    """The look of every figure; a legend too long for a line gets columns."""
    letters = sum(len(curve.style.label) + 6 for curve in figure.curves)
    axis = {
        "labelColor": INK,
        "titleColor": INK,
        "domainColor": MUTED,
        "tickColor": MUTED,
        "gridColor": GRID,
        "labelFontSize": 12,
        "titleFontSize": 13,
        "titleFontWeight": "normal",
        "titlePadding": 8,
        "tickSize": 4,
    }
    legend = {
        "orient": "top",
        "direction": "horizontal",
        "labelColor": INK,
        "labelFontSize": 13,
        "symbolType": "stroke",
        "symbolSize": 500,
        "symbolStrokeWidth": 2.2,
        "labelLimit": 300,
        "columns": len(figure.curves) if letters <= 75 else 3,
        "columnPadding": 18,
        "offset": 8,
    }
    title = {
        "color": INK,
        "subtitleColor": MUTED,
        "fontSize": 16,
        "subtitleFontSize": 13,
        "anchor": "start",
        "fontWeight": "bold",
        "offset": 10,
        "subtitlePadding": 4,
    }
    return {
        "aria": False,
        "background": "transparent",
        "font": FONT,
        "axis": axis,
        "legend": legend,
        "title": title,
        "view": {"stroke": None},
        "line": {"strokeWidth": 2, "strokeCap": "butt", "strokeJoin": "round"},
    }
