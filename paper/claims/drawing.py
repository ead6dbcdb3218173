"""The looks of schemes, and figures on logarithmic axes."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from momentum_rl.report.curves import Curve, CurvesFigure, Panel
from momentum_rl.report.style import (
    AMBER,
    BLUE,
    GREEN,
    PURPLE,
    SKY,
    VERMILLION,
    Array,
    Dash,
    Style,
)

_COLOURS = (BLUE, GREEN, VERMILLION, PURPLE, AMBER, SKY)
_DASHES: tuple[Dash, ...] = ((), (7, 3), (2, 2), (9, 3, 2, 3), (4, 2), (12, 4))
SCHEMES: Mapping[str, Style] = {
    "avi": Style("AVI", VERMILLION, (4, 2)),
    "movi": Style("MoVI", BLUE),
    "sql": Style("SQL", GREEN, (9, 4)),
    "dpp": Style("DPP", PURPLE, (2, 3)),
}
"""Each scheme's style, the same in every figure."""


@dataclass(frozen=True)
class Line:
    """A value at every x of a figure; with a spread, a band of ± this is drawn around it."""

    style: Style
    values: Array
    spread: Array | None = None


def scheme_style(name: str, position: int) -> Style:
    """A scheme's style; one that is not declared above gets the next free look."""
    return SCHEMES.get(name) or Style(name, *cycled(4 + position))


def cycled(position: int) -> tuple[str, Dash]:
    """The colour and dashes of the curve at a position, for curves without a style of their own."""
    return _COLOURS[position % len(_COLOURS)], _DASHES[position % len(_DASHES)]


def log_figure(
    name: str,
    title: str,
    subtitle: str,
    axes: tuple[str, str],
    x: Array,
    lines: Iterable[Line],
    guide: Line | None = None,
) -> CurvesFigure:
    """Curves over a common x, on logarithmic axes with these titles."""
    drawn = [*lines, *([] if guide is None else [guide])]
    curves = tuple(Curve(line.style, x, line.values, line.spread) for line in drawn)
    return CurvesFigure(name, title, subtitle, (Panel("", curves),), *axes, log=True)


def number(value: float) -> str:
    """Three significant digits, for a sentence.

    >>> [number(x) for x in (0.00123456, 1.0, 12345.6, float("inf"))]
    ['0.00123', '1', '12,300', '∞']
    """
    if math.isinf(value):
        return "∞"
    rounded = float(f"{value:.3g}")
    if rounded and not 1e-4 <= abs(rounded) < 1e6:
        return f"{rounded:.2e}".replace("e-0", "e-").replace("e+0", "e")
    return f"{rounded:,.6f}".rstrip("0").rstrip(".")
