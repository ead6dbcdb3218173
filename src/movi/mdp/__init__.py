"""Finite MDPs: the model, Garnets, exact answers, and files."""

from movi.mdp.exact import (
    Optimum,
    occupancy,
    optimum,
    policy_values,
    weighted_norm,
)
from movi.mdp.files import load, save
from movi.mdp.garnets import garnet
from movi.mdp.model import FiniteMDP

__all__ = [
    "FiniteMDP",
    "Optimum",
    "garnet",
    "load",
    "occupancy",
    "optimum",
    "policy_values",
    "save",
    "weighted_norm",
]
