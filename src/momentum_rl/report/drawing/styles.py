"""Colours, and what each curve is called and how it is drawn."""

from collections.abc import Mapping
from dataclasses import dataclass

INK = "#1c2733"
MUTED = "#5b6770"
GRID = "#dfe4e8"
BLUE = "#0072b2"
VERMILLION = "#d55e00"
GREEN = "#008f68"
PURPLE = "#b4508f"
AMBER = "#a97400"
SKY = "#3b93c9"

DARK: Mapping[str, str] = {
    INK: "#e8edf2",
    MUTED: "#9fadb9",
    GRID: "#303a45",
    BLUE: "#4ea8e0",
    VERMILLION: "#ff8a3d",
    GREEN: "#35c79a",
    PURPLE: "#e08cc0",
    AMBER: "#e6b422",
    SKY: "#8fd0f5",
}
"""Each colour's counterpart on a dark page. Hues after Okabe and Ito, distinct to the colour-blind;
darkened (or lightened) until each has a contrast of 3:1 to its background."""

Dash = tuple[int, ...]
"""Lengths of strokes and gaps; none is a solid line."""


@dataclass(frozen=True)
class Style:
    """How one curve looks: distinguishable by colour, and without it by its dashes."""

    label: str
    colour: str
    dash: Dash = ()


_DASHES: tuple[Dash, ...] = ((), (7, 3), (2, 2), (9, 3, 2, 3), (4, 2), (12, 4))
_COLOURS = (BLUE, GREEN, VERMILLION, PURPLE, AMBER, SKY)

SCHEMES: Mapping[str, Style] = {
    "avi": Style("AVI", VERMILLION, (4, 2)),
    "movi": Style("MoVI", BLUE),
    "sql": Style("SQL", GREEN, (9, 4)),
    "dpp": Style("DPP", PURPLE, (2, 3)),
}
"""Each scheme's style, the same in every figure."""

DEEP: Mapping[str, Style] = {
    "dqn": Style("DQN", VERMILLION, (4, 2)),
    "momentum-dqn": Style("Momentum-DQN", BLUE),
    "deep-sql": Style("Deep SQL", GREEN, (9, 4)),
    "deep-dpp": Style("Deep DPP", PURPLE, (2, 3)),
}
"""Each deep algorithm's style: the colour and dashes of the scheme that it extends."""

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
"""Colours and dashes of further algorithms, in order."""

PUBLISHED: tuple[tuple[str, Dash], ...] = (
    (MUTED, (1, 2)),
    (MUTED, (10, 3)),
    (MUTED, (5, 2, 1, 2)),
    (MUTED, (2, 5)),
)
"""The same for published curves: grey, in the background."""


def scheme_style(name: str, position: int) -> Style:
    """A scheme's style; one that is not declared above gets the next free look."""
    return SCHEMES.get(name) or Style(name, *cycled(4 + position))


def cycled(position: int) -> tuple[str, Dash]:
    """The colour and dashes of the curve at a position, for curves without a style of their own."""
    return _COLOURS[position % len(_COLOURS)], _DASHES[position % len(_DASHES)]
