"""Finite MDPs: the model, families, exact answers, and files.

Names are imported where they are first used; with any of them comes JAX, to which `FiniteMDP` is
then known as a pytree. The modules themselves need it only for large problems.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from movi.mdp.episodes import finite_horizon, simulate, total_reward
    from movi.mdp.exact import (
        Optimum,
        occupancy,
        optimum,
        policy_values,
        resolvent,
        weighted_norm,
    )
    from movi.mdp.formats import load_mdp, save_mdp
    from movi.mdp.garnets import garnet
    from movi.mdp.model import FiniteMDP

_HOMES = {
    "FiniteMDP": "model",
    "Optimum": "exact",
    "finite_horizon": "episodes",
    "garnet": "garnets",
    "load_mdp": "formats",
    "occupancy": "exact",
    "optimum": "exact",
    "policy_values": "exact",
    "resolvent": "exact",
    "save_mdp": "formats",
    "simulate": "episodes",
    "total_reward": "episodes",
    "weighted_norm": "exact",
}

__all__ = [
    "FiniteMDP",
    "Optimum",
    "finite_horizon",
    "garnet",
    "load_mdp",
    "occupancy",
    "optimum",
    "policy_values",
    "resolvent",
    "save_mdp",
    "simulate",
    "total_reward",
    "weighted_norm",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'movi.mdp' has no attribute {name!r}")
    import_module("movi.mdp.operators")
    return getattr(import_module(f"movi.mdp.{_HOMES[name]}"), name)
