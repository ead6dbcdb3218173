"""The ADP schemes of the paper on tables: AVI, MoVI, SQL and DPP, exact and sampled.

Names are imported when they are first used, so that the commands' help needs no JAX.
"""

from typing import TYPE_CHECKING

from momentum_rl.plumbing.modules import lazy_attributes

if TYPE_CHECKING:
    from momentum_rl.mdp.solve.solution import TOLERANCE as TOLERANCE
    from momentum_rl.mdp.solve.solution import PolicyValue as PolicyValue
    from momentum_rl.mdp.solve.solution import Solution as Solution
    from momentum_rl.mdp.solve.solution import policy_value as policy_value
    from momentum_rl.mdp.solve.solution import rounding_floor as rounding_floor
    from momentum_rl.planning.comparison import Comparison as Comparison
    from momentum_rl.planning.comparison import compare_schemes as compare_schemes
    from momentum_rl.planning.engine import Scheme as Scheme
    from momentum_rl.planning.engine import scheme as scheme
    from momentum_rl.planning.solver import solve as solve

_HOMES = {
    "..mdp.solve.solution": (
        "TOLERANCE",
        "PolicyValue",
        "Solution",
        "policy_value",
        "rounding_floor",
    ),
    ".comparison": ("Comparison", "compare_schemes"),
    ".engine": ("Scheme", "scheme"),
    ".solver": ("solve",),
}

__all__ = [name for names in _HOMES.values() for name in names]
__getattr__, __dir__ = lazy_attributes(__name__, _HOMES)
