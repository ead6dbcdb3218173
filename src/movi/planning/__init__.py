"""The ADP schemes of the paper on tables: AVI, MoVI, SQL and DPP, exact and sampled."""

from movi.mdp.solutions import (
    TOLERANCE,
    PolicyValue,
    Solution,
    policy_value,
    rounding_floor,
)
from movi.planning.comparison import Comparison, compare
from movi.planning.engine import Scheme
from movi.planning.schemes import scheme
from movi.planning.solve import solve

__all__ = [
    "TOLERANCE",
    "Comparison",
    "PolicyValue",
    "Scheme",
    "Solution",
    "compare",
    "policy_value",
    "rounding_floor",
    "scheme",
    "solve",
]
