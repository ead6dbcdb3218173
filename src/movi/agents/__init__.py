"""Deep agents: the algorithms by name, networks, and the one generic learner.

Names are imported where they are first used: who only reads configs needs no networks.
"""

from typing import TYPE_CHECKING

from movi.modules import named

if TYPE_CHECKING:
    from movi.agents.agent import Agent, load, save
    from movi.agents.learner import Learner, LearnerState, compiled, make_learner
    from movi.agents.method import Method, regression
    from movi.agents.networks import NetworkSpec, choose_network, make_network
    from movi.agents.optimisers import make_optimiser
    from movi.agents.registry import options_of, register

_HOMES = {
    "Agent": "agent",
    "Learner": "learner",
    "LearnerState": "learner",
    "Method": "method",
    "NetworkSpec": "networks",
    "choose_network": "networks",
    "compiled": "learner",
    "load": "agent",
    "make_learner": "learner",
    "make_network": "networks",
    "make_optimiser": "optimisers",
    "options_of": "registry",
    "register": "registry",
    "regression": "method",
    "save": "agent",
}

__all__ = [
    "Agent",
    "Learner",
    "LearnerState",
    "Method",
    "NetworkSpec",
    "choose_network",
    "compiled",
    "load",
    "make_learner",
    "make_network",
    "make_optimiser",
    "options_of",
    "register",
    "regression",
    "save",
]

__getattr__ = named(__name__, {name: f"movi.agents.{home}" for name, home in _HOMES.items()})
