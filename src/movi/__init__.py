"""Momentum in Reinforcement Learning: MoVI and Momentum-DQN, from tables to Atari, on JAX.

>>> import movi
>>> mdp = movi.garnet(30, 4, 4, seed=0)
>>> solution = movi.solve(mdp, "movi")
>>> solution.converged
True
>>> config = movi.Config("momentum-dqn", "CartPole-v1", steps=300, evaluation_episodes=1)
>>> movi.train(config).status
'finished'

Names are imported where they are first used, so that ``import movi`` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from movi.errors import UserError
from movi.version import __version__

if TYPE_CHECKING:
    from movi.agents.agent import load
    from movi.agents.options import Averaging, Options
    from movi.agents.registry import register
    from movi.mdp import FiniteMDP, garnet, load_mdp, optimum, policy_values, save_mdp
    from movi.planning import compare, policy_value, solve
    from movi.runs.config import Config
    from movi.sweeps.drive import sweep
    from movi.targets import Algorithm, Target, momentum
    from movi.training.train import train

DISTRIBUTION = "momentum-rl"  # by which the command tells this package from others of its name

_HOMES = {
    "Algorithm": "movi.targets",
    "Averaging": "movi.agents.options",
    "Config": "movi.runs.config",
    "FiniteMDP": "movi.mdp",
    "Options": "movi.agents.options",
    "Target": "movi.targets",
    "compare": "movi.planning",
    "garnet": "movi.mdp",
    "load": "movi.agents.agent",
    "load_mdp": "movi.mdp",
    "momentum": "movi.targets",
    "optimum": "movi.mdp",
    "policy_value": "movi.planning",
    "policy_values": "movi.mdp",
    "register": "movi.agents.registry",
    "save_mdp": "movi.mdp",
    "solve": "movi.planning",
    "sweep": "movi.sweeps.drive",
    "train": "movi.training.train",
}

__all__ = [
    "Algorithm",
    "Averaging",
    "Config",
    "FiniteMDP",
    "Options",
    "Target",
    "UserError",
    "__version__",
    "compare",
    "garnet",
    "load",
    "load_mdp",
    "momentum",
    "optimum",
    "policy_value",
    "policy_values",
    "register",
    "save_mdp",
    "solve",
    "sweep",
    "train",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'movi' has no attribute {name!r}")
