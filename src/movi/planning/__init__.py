"""The ADP schemes of the paper on tables: AVI, MoVI, SQL and DPP, exact and sampled.

Names are imported when they are first used, so that the commands' help needs no JAX.
"""

from typing import TYPE_CHECKING

from movi.modules import named

if TYPE_CHECKING:
    from movi.mdp.solutions import TOLERANCE as TOLERANCE
    from movi.mdp.solutions import PolicyValue as PolicyValue
    from movi.mdp.solutions import Solution as Solution
    from movi.mdp.solutions import policy_value as policy_value
    from movi.mdp.solutions import rounding_floor as rounding_floor
    from movi.planning.comparison import Comparison as Comparison
    from movi.planning.comparison import compare as compare
    from movi.planning.engine import Scheme as Scheme
    from movi.planning.schemes import scheme as scheme
    from movi.planning.solver import solve as solve

_HOMES = {
    "..mdp.solutions": ("TOLERANCE", "PolicyValue", "Solution", "policy_value", "rounding_floor"),
    ".comparison": ("Comparison", "compare"),
    ".engine": ("Scheme",),
    ".schemes": ("scheme",),
    ".solver": ("solve",),
}

__all__ = [name for names in _HOMES.values() for name in names]
__getattr__, __dir__ = named(__name__, _HOMES)
