"""Momentum in Reinforcement Learning: MoVI and Momentum-DQN, from tables to Atari, on JAX.

>>> import movi
>>> mdp = movi.garnet(30, 4, 4, seed=0)
>>> solution = movi.solve(mdp, "movi")
>>> solution.converged
True
>>> config = movi.Config("momentum-dqn", "CartPole-v1", steps=2000, evaluation_episodes=1)
>>> movi.train(config).status
'finished'

Names are imported when they are first used, so that ``import movi`` costs nothing.
"""

from typing import TYPE_CHECKING

from movi.errors import UserError as UserError
from movi.modules import named
from movi.version import __version__ as __version__

if TYPE_CHECKING:
    from movi.agents.agent import load as load
    from movi.agents.options import Averaging as Averaging
    from movi.agents.options import Options as Options
    from movi.agents.registry import register as register
    from movi.mdp import FiniteMDP as FiniteMDP
    from movi.mdp import garnet as garnet
    from movi.mdp import load_mdp as load_mdp
    from movi.mdp import optimum as optimum
    from movi.mdp import policy_values as policy_values
    from movi.mdp import save_mdp as save_mdp
    from movi.planning import compare as compare
    from movi.planning import policy_value as policy_value
    from movi.planning import solve as solve
    from movi.runs.config import Config as Config
    from movi.sweeps.drive import sweep as sweep
    from movi.targets import Algorithm as Algorithm
    from movi.targets import Target as Target
    from movi.targets import momentum as momentum
    from movi.training.train import train as train

DISTRIBUTION = "momentum-rl"  # by which the command tells this package from others of its name

_HOMES = {
    ".agents.agent": ("load",),
    ".agents.options": ("Averaging", "Options"),
    ".agents.registry": ("register",),
    ".mdp": ("FiniteMDP", "garnet", "load_mdp", "optimum", "policy_values", "save_mdp"),
    ".planning": ("compare", "policy_value", "solve"),
    ".runs.config": ("Config",),
    ".sweeps.drive": ("sweep",),
    ".targets": ("Algorithm", "Target", "momentum"),
    ".training.train": ("train",),
}

__all__ = ["UserError", "__version__", *(name for names in _HOMES.values() for name in names)]
__getattr__, __dir__ = named(__name__, _HOMES)
