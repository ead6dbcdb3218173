"""Momentum in Reinforcement Learning: MoVI and Momentum-DQN, from tables to Atari, on JAX.

>>> import movi
>>> mdp = movi.garnet(30, 4, 4, seed=0)
>>> solution = movi.solve(mdp, "movi")
>>> solution.converged
True

Names are imported where they are first used, so that ``import movi`` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from movi.errors import UserError
from movi.version import __version__

if TYPE_CHECKING:
    from movi.agents.agent import load
    from movi.mdp import FiniteMDP, garnet, load_mdp, optimum, policy_values, save_mdp
    from movi.planning import compare, policy_value, solve

DISTRIBUTION = "momentum-rl"  # by which the command tells this package from others of its name

_HOMES = {
    "FiniteMDP": "movi.mdp",
    "compare": "movi.planning",
    "garnet": "movi.mdp",
    "load": "movi.agents.agent",
    "load_mdp": "movi.mdp",
    "optimum": "movi.mdp",
    "policy_value": "movi.planning",
    "policy_values": "movi.mdp",
    "save_mdp": "movi.mdp",
    "solve": "movi.planning",
}

__all__ = [
    "FiniteMDP",
    "UserError",
    "__version__",
    "compare",
    "garnet",
    "load",
    "load_mdp",
    "optimum",
    "policy_value",
    "policy_values",
    "save_mdp",
    "solve",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'movi' has no attribute {name!r}")
