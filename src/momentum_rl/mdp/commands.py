"""Commands that make and try out MDPs: `mdp NAME`, `garnet`, `simulate`."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tyro.conf import Positional, arg

from momentum_rl.mdp import families

if TYPE_CHECKING:
    from momentum_rl.mdp.model import FiniteMDP


@dataclass(frozen=True, kw_only=True)
class _Written(families.Family):
    """Where an MDP goes."""

    out: Annotated[Path, arg(metavar="FILE")]
    """The file to write."""

    def execute(self) -> None:
        """Make the MDP, write it, print where."""
        _write(self.mdp, self.out)


def _write(make: "Callable[[], FiniteMDP]", out: Path) -> None:
    """Make an MDP and write it; whether that is possible is checked first."""
    from momentum_rl.mdp.files import save_mdp
    from momentum_rl.plumbing.files import file_to_write

    file_to_write(out)
    mdp = make()
    save_mdp(mdp, out)
    print(f"written      {out}: {mdp}")


def _command(family: type[families.Family]) -> Any:
    """`movi mdp NAME`, whose help is what the family says of itself."""
    own = type(family.__name__, (family, _Written), {"__doc__": family.__doc__})
    return dataclass(frozen=True, kw_only=True)(own)


Maze, Inventory, Queue, Replacement, Forest, Pendulum, Epidemic = map(
    _command, families.FAMILIES.values()
)


@dataclass(frozen=True, kw_only=True)
class Garnet:
    """Generate a Garnet, the random MDP of the paper, into a file that `movi solve` reads."""

    out: Annotated[Path, arg(metavar="FILE")]
    """The .npz to write."""
    states: int = 30
    """N_S (paper: 30)."""
    actions: int = 4
    """N_A (paper: 4)."""
    branching: int = 4
    """N_B, distinct successors of each (s, a) (paper: 4)."""
    discount: float = 0.9
    """γ (the paper does not say)."""
    seed: int = 0
    """The same seed gives the same MDP."""

    def execute(self) -> None:
        """Generate and write."""
        from momentum_rl.mdp import garnet

        sizes = self.states, self.actions, self.branching
        _write(lambda: garnet(*sizes, discount=self.discount, seed=self.seed), self.out)


@dataclass(frozen=True, kw_only=True)
class Read:
    """How the file of an MDP is read."""

    discount: Annotated[float | None, arg(metavar="X")] = None
    """γ, in place of the file's."""
    minimise: bool = False
    """The rewards are costs: their sign is turned."""

    def load(self, file: Path, discount: float | None) -> "FiniteMDP":
        """The MDP in a file."""
        from momentum_rl.mdp.files import load_mdp

        return load_mdp(file, discount=discount, minimise=self.minimise)


@dataclass(frozen=True, kw_only=True)
class Simulate(Read):
    """Roll out the policy of a solution: its mean discounted return beside what v says."""

    file: Positional[Annotated[Path, arg(metavar="FILE")]]
    """The MDP, as `movi solve` reads it."""
    solution: Positional[Annotated[Path, arg(metavar="SOLUTION")]]
    """What `movi solve --out` wrote: an .npz with a policy."""
    episodes: int = 1_000
    """The number of episodes."""
    start: Annotated[int | None, arg(metavar="N")] = None
    """The state that they all start from (default: drawn uniformly)."""
    seed: int = 0
    """Seed of the draws."""

    def execute(self) -> None:
        """Evaluate, roll out, print."""
        from momentum_rl.mdp.episodes import simulate
        from momentum_rl.mdp.exact import checked_policies, policy_values
        from momentum_rl.mdp.files import read_arrays

        mdp = self.load(self.file, self.discount)
        policy = checked_policies(mdp, read_arrays(self.solution, ("policy",))["policy"], 1)
        v = mdp.chosen(policy_values(mdp, policy), policy)
        found = simulate(mdp, policy, episodes=self.episodes, start=self.start, seed=self.seed, v=v)
        where = "states drawn uniformly" if self.start is None else f"state {self.start}"
        print(f"problem      {mdp}")
        print(f"rollouts     {self.episodes:,} episodes from {where}, seed {self.seed}")
        print(f"return       {found.mean:.6g}, 95 % interval {found.low:.6g} to {found.high:.6g}")
        print(f"by v         {found.expected:.6g} (what was cut off is at most ", end="")
        print(f"{found.truncation:.2g})")
