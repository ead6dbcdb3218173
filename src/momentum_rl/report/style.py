"""How curves look and how numbers are written."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
"""Numbers along iterations, runs, or whatever else is said with them."""

INK = "#1c2733"
MUTED = "#5b6770"
BLUE = "#0072b2"
VERMILLION = "#d55e00"
GREEN = "#008f68"
PURPLE = "#b4508f"
AMBER = "#a97400"
SKY = "#3b93c9"
# Hues after Okabe and Ito, distinct to the colour-blind. Their counterparts on a dark page are in
# assets/page.css.

Dash = tuple[int, ...]
"""Lengths of strokes and gaps; none is a solid line."""


@dataclass(frozen=True)
class Style:
    """How one curve looks: distinguishable by colour, and without it by its dashes."""

    label: str
    colour: str
    dash: Dash = ()


ALGORITHMS: Mapping[str, tuple[str, Dash]] = {
    "dqn": (VERMILLION, (4, 2)),
    "momentum-dqn": (BLUE, ()),
    "deep-sql": (GREEN, (9, 4)),
    "deep-dpp": (PURPLE, (2, 3)),
}
"""Colour and dashes of these, the same in every figure."""

FURTHER: tuple[tuple[str, Dash], ...] = (
    (AMBER, (6, 2, 2, 2)),
    (SKY, (12, 4)),
    (INK, (3, 3)),
    (GREEN, (7, 2, 1, 2)),
    (PURPLE, (5, 4)),
    (VERMILLION, (14, 2, 4, 2)),
    (BLUE, (8, 2)),
    (MUTED, (2, 3, 8, 3)),
)
"""Of others, in order."""


def short(value: float) -> str:
    """Four significant digits.

    >>> short(12345.6), short(float("inf")), short(float("nan"))
    ('12,350', '∞', 'none')
    """
    if math.isnan(value):
        return "none"
    return "∞" if math.isinf(value) else f"{float(f'{value:.4g}'):,g}"


def percent(value: float) -> str:
    """A share.

    >>> percent(0.4512), percent(-0.021), percent(float("inf")), percent(12.3)
    ('+45 %', '−2.1 %', '+∞ %', '+1,230 %')
    """
    if math.isinf(value):
        return "+∞ %" if value > 0 else "−∞ %"
    digits = 1 if abs(value) < 0.0995 else 0
    text = f"{100 * abs(value):,.{digits}f}"
    if float(text.replace(",", "")) == 0:
        return "0 %"
    return f"{'+' if value > 0 else '−'}{text} %"
