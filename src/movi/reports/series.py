"""What each curve is called and how it is drawn, and which loss each bound is a bound of.

The one table of column names: if ``bounds.csv`` renames a column, this is the file to edit.
"""

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


@dataclass(frozen=True)
class Style:
    """How one curve looks: distinguishable by colour, and without it by its dashes."""

    label: str
    """The name in the legend."""
    colour: str
    """One of the colours above."""
    dash: tuple[int, ...] = ()
    """Lengths of strokes and gaps; none is a solid line."""


_DASHES: tuple[tuple[int, ...], ...] = ((), (7, 3), (2, 2), (9, 3, 2, 3), (4, 2), (12, 4))
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

FURTHER: tuple[tuple[str, tuple[int, ...]], ...] = (
    (AMBER, (6, 2, 2, 2)),
    (SKY, (12, 4)),
    (INK, (3, 3)),
    (GREEN, (7, 2, 1, 2)),
    (PURPLE, (5, 4)),
    (VERMILLION, (14, 2, 4, 2)),
    (BLUE, (8, 2)),
)
"""Colours and dashes of further variants, in order."""

PUBLISHED: tuple[tuple[str, tuple[int, ...]], ...] = (
    (MUTED, (1, 2)),
    (MUTED, (10, 3)),
    (MUTED, (5, 2, 1, 2)),
    (MUTED, (2, 5)),
)
"""The same for published curves: grey, in the background."""


def scheme_style(name: str, position: int) -> Style:
    """A scheme's style; one that is not declared above gets the next free look."""
    return SCHEMES.get(name) or Style(name, *cycled(4 + position))


def cycled(position: int) -> tuple[str, tuple[int, ...]]:
    """The colour and dashes of the curve at a position, for curves without a style of their own."""
    return _COLOURS[position % len(_COLOURS)], _DASHES[position % len(_DASHES)]


@dataclass(frozen=True)
class Bound:
    """A column of ``bounds.csv`` that bounds another one from above."""

    scheme: str
    """Whose loss it bounds."""
    loss: str
    """The column of the loss."""
    bound: str
    """The column of the bound."""
    statement: str
    """Where the paper states it."""
    style: Style
    """How the bound is drawn among the bounds of its own scheme."""


BOUNDS: tuple[Bound, ...] = (
    Bound(
        "movi",
        "loss_sup",
        "theorem_1_sup",
        "Theorem 1",
        Style("Theorem 1, sup", GREEN, (7, 3)),
    ),
    Bound(
        "movi",
        "loss_sup",
        "supremum",
        "the sup-norm bound",
        Style("sup-norm form", PURPLE, (9, 3, 2, 3)),
    ),
    Bound(
        "movi",
        "loss_l1",
        "corollary_1",
        "Corollary 1",
        Style("Corollary 1, L1", AMBER, (2, 2)),
    ),
    Bound(
        "movi",
        "loss_sup",
        "proposition_1",
        "Proposition 1",
        Style("Proposition 1", VERMILLION, (12, 4)),
    ),
    Bound("avi", "avi_loss_sup", "avi_bound", "the AVI bound", SCHEMES["avi"]),
    Bound("sql", "sql_loss_sup", "sql_bound", "the SQL/DPP bound", SCHEMES["sql"]),
    Bound("dpp", "dpp_loss_sup", "dpp_bound", "the SQL/DPP bound", SCHEMES["dpp"]),
)
"""Every bound that the report knows; one whose two columns are not both in the file is left out."""

MOVI_LOSSES: Mapping[str, Style] = {
    "loss_sup": Style("loss, sup", BLUE),
    "loss_l1": Style("loss, L1", SKY, (4, 2)),
}
"""MoVI's own losses, which its bounds are drawn above."""

SCHEME_BOUNDS: Mapping[str, str] = {
    "movi": "supremum",
    "avi": "avi_bound",
    "sql": "sql_bound",
    "dpp": "dpp_bound",
}
"""The bound that stands for each scheme where schemes are compared: all in sup-norm."""

MEAN_BETA_LOSS = "loss_sup"
"""The loss of MoVI with β_k = k/(k+1)."""

AVI_LOSS = "avi_loss_sup"
"""The loss of AVI."""

CONSTANT_BETA_PREFIX = "constant_beta_loss_"
"""What precedes β in the name of the column with the loss of MoVI with that constant β."""

HOLDS_SUFFIX = "_holds"
"""What follows a bound's name in the column that says in which share of the MDPs it held."""
