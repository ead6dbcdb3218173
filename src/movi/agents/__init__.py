"""Deep agents: the algorithms' declarations, networks, and the one generic learner."""

from movi.agents.agent import Agent, load, save
from movi.agents.algorithms import DQN, MOMENTUM_DQN, deep_algorithm
from movi.agents.learner import Learner, LearnerState, compiled, make_learner
from movi.agents.networks import NetworkSpec, choose_network, make_network
from movi.agents.optimisers import make_optimiser
from movi.targets import Algorithm, Target

__all__ = [
    "DQN",
    "MOMENTUM_DQN",
    "Agent",
    "Algorithm",
    "Learner",
    "LearnerState",
    "NetworkSpec",
    "Target",
    "choose_network",
    "compiled",
    "deep_algorithm",
    "load",
    "make_learner",
    "make_network",
    "make_optimiser",
    "save",
]
