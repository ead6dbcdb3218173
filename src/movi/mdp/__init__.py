"""Finite MDPs: the model, Garnets, exact answers, and files."""

from movi.mdp.exact import (
    Optimum,
    occupancy,
    optimum,
    policy_values,
    resolvent,
    weighted_norm,
)
from movi.mdp.files import load_mdp, save_mdp
from movi.mdp.garnets import garnet
from movi.mdp.model import FiniteMDP

__all__ = [
    "FiniteMDP",
    "Optimum",
    "garnet",
    "load_mdp",
    "occupancy",
    "optimum",
    "policy_values",
    "resolvent",
    "save_mdp",
    "weighted_norm",
]
