"""The ADP schemes of the paper on tables: AVI, MoVI, SQL and DPP, exact and sampled."""

from movi.planning.comparison import Comparison, compare
from movi.planning.engine import Scheme
from movi.planning.schemes import scheme
from movi.planning.solve import PolicyValue, Solution, policy_value, solve

__all__ = [
    "Comparison",
    "PolicyValue",
    "Scheme",
    "Solution",
    "compare",
    "policy_value",
    "scheme",
    "solve",
]
