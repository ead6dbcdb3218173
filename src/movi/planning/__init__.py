"""The ADP schemes of the paper on tables: AVI, MoVI, SQL and DPP, exact and sampled.

Names are imported where they are first used, so that the commands' help needs no JAX.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
    from movi.planning.solver import solve

_HOMES = {
    "Comparison": "movi.planning.comparison",
    "Scheme": "movi.planning.engine",
    "compare": "movi.planning.comparison",
    "scheme": "movi.planning.schemes",
    "solve": "movi.planning.solver",
}

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


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'movi.planning' has no attribute {name!r}")
    return getattr(import_module(_HOMES.get(name, "movi.mdp.solutions")), name)
