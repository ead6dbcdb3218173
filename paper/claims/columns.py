"""The columns of ``bounds.csv``, and which loss each bound is a bound of.

If the file renames a column, this is the place to edit.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from momentum_rl.report.style import AMBER, BLUE, GREEN, PURPLE, SKY, VERMILLION, Style
from paper.claims.drawing import SCHEMES


@dataclass(frozen=True)
class Bound:
    """A column that bounds another one from above."""

    scheme: str
    """Whose loss it bounds."""
    loss: str
    bound: str
    statement: str
    """Where the paper states it."""
    style: Style
    """How the bound is drawn among the bounds of its own scheme."""


PROPOSITION = "Proposition 1"
_GREEN, _PURPLE = (
    Style("Theorem 1, sup", GREEN, (7, 3)),
    Style("sup-norm form", PURPLE, (9, 3, 2, 3)),
)
_AMBER, _RED = Style("Corollary 1, L1", AMBER, (2, 2)), Style(PROPOSITION, VERMILLION, (12, 4))
BOUNDS = (
    Bound("movi", "loss_sup", "theorem_1_sup", "Theorem 1", _GREEN),
    Bound("movi", "loss_sup", "supremum", "the sup-norm bound", _PURPLE),
    Bound("movi", "loss_l1", "corollary_1", "Corollary 1", _AMBER),
    Bound("movi", "loss_sup", "proposition_1", PROPOSITION, _RED),
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

LOSS_LIMIT = "loss_limit"
"""What no policy's loss exceeds."""

HOLDS_SUFFIX = "_holds"
"""What follows a bound's name in the column that says in which share of the MDPs it held."""
