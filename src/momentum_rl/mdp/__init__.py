"""Finite MDPs: the model, families, exact answers, and files.

Names are imported when they are first used. Any of them imports JAX too, with which `FiniteMDP` is
registered as a pytree; the modules themselves need it only for large problems.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from momentum_rl.plumbing.modules import lazy_attributes

if TYPE_CHECKING:
    from momentum_rl.mdp.families import garnet as garnet
    from momentum_rl.mdp.files import load_mdp as load_mdp
    from momentum_rl.mdp.files import save_mdp as save_mdp
    from momentum_rl.mdp.model import FiniteMDP as FiniteMDP
    from momentum_rl.mdp.solve.exact import Optimum as Optimum
    from momentum_rl.mdp.solve.exact import optimum as optimum
    from momentum_rl.mdp.solve.exact import policy_values as policy_values
    from momentum_rl.mdp.solve.exact import resolvent as resolvent
    from momentum_rl.mdp.solve.exact import weighted_norm as weighted_norm
    from momentum_rl.mdp.solve.horizons import finite_horizon as finite_horizon
    from momentum_rl.mdp.solve.horizons import total_reward as total_reward

_HOMES = {
    ".solve.exact": (
        "Optimum",
        "optimum",
        "policy_values",
        "resolvent",
        "weighted_norm",
    ),
    ".solve.horizons": ("finite_horizon", "total_reward"),
    ".files": ("load_mdp", "save_mdp"),
    ".families": ("garnet",),
    ".model": ("FiniteMDP",),
}

__all__ = [name for names in _HOMES.values() for name in names]
_named, __dir__ = lazy_attributes(__name__, _HOMES)


def __getattr__(name: str) -> Any:
    value = _named(name)
    if name in __all__:
        import_module("momentum_rl.mdp.operators")
    return value
