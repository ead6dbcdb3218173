"""Momentum in Reinforcement Learning: MoVI and Momentum-DQN, from tables to Atari, on JAX.

>>> import momentum_rl
>>> mdp = momentum_rl.garnet(30, 4, 4, seed=0)
>>> solution = momentum_rl.solve(mdp, "movi")
>>> solution.converged
True
>>> config = momentum_rl.Config("momentum-dqn", "CartPole-v1", steps=2000, final_episodes=1)
>>> momentum_rl.train(config).status
'finished'

Names are imported when they are first used, so that ``import momentum_rl`` costs nothing.
"""

from typing import TYPE_CHECKING

from momentum_rl.errors import UserError as UserError
from momentum_rl.plumbing.modules import lazy_attributes
from momentum_rl.version import __version__ as __version__

if TYPE_CHECKING:
    from momentum_rl.agents.agent import load as load
    from momentum_rl.agents.registry import register as register
    from momentum_rl.core.options import Averaging as Averaging
    from momentum_rl.core.options import Options as Options
    from momentum_rl.core.targets import Algorithm as Algorithm
    from momentum_rl.core.targets import Target as Target
    from momentum_rl.core.targets import momentum as momentum
    from momentum_rl.mdp.families import garnet as garnet
    from momentum_rl.mdp.files import load_mdp as load_mdp
    from momentum_rl.mdp.files import save_mdp as save_mdp
    from momentum_rl.mdp.model import FiniteMDP as FiniteMDP
    from momentum_rl.mdp.solve.exact import optimum as optimum
    from momentum_rl.mdp.solve.exact import policy_values as policy_values
    from momentum_rl.mdp.solve.horizons import finite_horizon as finite_horizon
    from momentum_rl.mdp.solve.horizons import total_reward as total_reward
    from momentum_rl.mdp.solve.solution import policy_value as policy_value
    from momentum_rl.planning.comparison import compare_schemes as compare_schemes
    from momentum_rl.planning.solver import solve as solve
    from momentum_rl.runs.config import Config as Config
    from momentum_rl.sweeps.drive import sweep as sweep
    from momentum_rl.training.train import train as train

_HOMES = {
    ".agents.agent": ("load",),
    ".core.options": ("Averaging", "Options"),
    ".agents.registry": ("register",),
    ".mdp.families": ("garnet",),
    ".mdp.files": ("load_mdp", "save_mdp"),
    ".mdp.model": ("FiniteMDP",),
    ".mdp.solve.exact": ("optimum", "policy_values"),
    ".mdp.solve.horizons": ("finite_horizon", "total_reward"),
    ".mdp.solve.solution": ("policy_value",),
    ".planning.comparison": ("compare_schemes",),
    ".planning.solver": ("solve",),
    ".runs.config": ("Config",),
    ".sweeps.drive": ("sweep",),
    ".core.targets": ("Algorithm", "Target", "momentum"),
    ".training.train": ("train",),
}

__all__ = ["UserError", "__version__", *(name for names in _HOMES.values() for name in names)]
__getattr__, __dir__ = lazy_attributes(__name__, _HOMES)
