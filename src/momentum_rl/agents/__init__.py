"""Deep agents: the algorithms by name, networks, and the one generic learner.

Names are imported when they are first used: reading a config needs no networks.
"""

from typing import TYPE_CHECKING

from momentum_rl.plumbing.modules import lazy_attributes

if TYPE_CHECKING:
    from momentum_rl.agents.agent import Agent as Agent
    from momentum_rl.agents.agent import load as load
    from momentum_rl.agents.agent import save as save
    from momentum_rl.agents.learner import Learner as Learner
    from momentum_rl.agents.learner import LearnerState as LearnerState
    from momentum_rl.agents.learner import compiled as compiled
    from momentum_rl.agents.learner import make_learner as make_learner
    from momentum_rl.agents.learner import make_optimiser as make_optimiser
    from momentum_rl.agents.method import Method as Method
    from momentum_rl.agents.method import regression as regression
    from momentum_rl.agents.networks import NetworkSpec as NetworkSpec
    from momentum_rl.agents.networks import choose_network as choose_network
    from momentum_rl.agents.networks import make_network as make_network
    from momentum_rl.agents.registry import options_of as options_of
    from momentum_rl.agents.registry import register as register

_HOMES = {
    ".agent": ("Agent", "load", "save"),
    ".learner": ("Learner", "LearnerState", "compiled", "make_learner", "make_optimiser"),
    ".method": ("Method", "regression"),
    ".networks": ("NetworkSpec", "choose_network", "make_network"),
    ".registry": ("options_of", "register"),
}

__all__ = [name for names in _HOMES.values() for name in names]
__getattr__, __dir__ = lazy_attributes(__name__, _HOMES)
