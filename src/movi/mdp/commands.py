"""Commands that make, convert and try out MDPs: `mdp NAME`, `garnet`, `convert`, `simulate`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from movi.mdp import families


@dataclass(frozen=True, kw_only=True)
class _Written(families.Family):
    """Where an MDP goes."""

    out: Annotated[Path, arg(metavar="FILE")]
    """The file to write."""

    def __init_subclass__(cls) -> None:
        """A command's help is what its family says of itself."""
        cls.__doc__ = cls.__base__.__doc__ if cls.__base__ else None

    def execute(self) -> None:
        """Make it, write it, say so."""
        from movi.files import file_to_write
        from movi.mdp.formats import save_mdp

        file_to_write(self.out)
        mdp = self.mdp()
        save_mdp(mdp, self.out)
        print(f"written      {self.out}: {mdp}")


@dataclass(frozen=True, kw_only=True)
class Maze(families.Maze, _Written):
    """Its family, to a file."""


@dataclass(frozen=True, kw_only=True)
class Inventory(families.Inventory, _Written):
    """Its family, to a file."""


@dataclass(frozen=True, kw_only=True)
class Queue(families.Queue, _Written):
    """Its family, to a file."""


@dataclass(frozen=True, kw_only=True)
class Replacement(families.Replacement, _Written):
    """Its family, to a file."""


@dataclass(frozen=True, kw_only=True)
class Forest(families.Forest, _Written):
    """Its family, to a file."""


@dataclass(frozen=True, kw_only=True)
class Pendulum(families.Pendulum, _Written):
    """Its family, to a file."""


@dataclass(frozen=True, kw_only=True)
class Epidemic(families.Epidemic, _Written):
    """Its family, to a file."""


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
        from movi.files import file_to_write
        from movi.mdp import garnet, save_mdp

        file_to_write(self.out)
        mdp = garnet(
            self.states, self.actions, self.branching, discount=self.discount, seed=self.seed
        )
        save_mdp(mdp, self.out)
        print(f"written      {self.out}: {mdp}")


@dataclass(frozen=True)
class Convert:
    """Turn a file of one format into another: .npz, .umb (Storm, PRISM), .tra (PRISM), .petsc."""

    source: Positional[Annotated[Path, arg(metavar="FROM")]]
    """The file to read; a .tra has its rewards beside it (.srew, .trew), a .petsc likewise."""
    target: Positional[Annotated[Path, arg(metavar="TO")]]
    """The file to write, in the format of its suffix."""
    discount: Annotated[float | None, arg(metavar="X")] = None
    """γ where the file has none, or another than the file's."""
    reward: Annotated[str | None, arg(metavar="NAME")] = None
    """Which rewards, where a .umb has several."""
    minimise: bool = False
    """Its rewards are costs: turn their sign."""

    def execute(self) -> None:
        """Read, write, say so."""
        from movi.errors import UserError
        from movi.files import file_to_write
        from movi.mdp.formats import WRITERS, load_mdp

        if self.target.suffix not in WRITERS:
            known = ", ".join(WRITERS)
            raise UserError(f"TO: suffix {self.target.suffix!r}, expected one of {known}")
        file_to_write(self.target, "TO")
        mdp = load_mdp(
            self.source, discount=self.discount, reward=self.reward, minimise=self.minimise
        )
        WRITERS[self.target.suffix](mdp, self.target)
        print(f"written      {self.target}: {mdp}")


@dataclass(frozen=True)
class Simulate:
    """Roll out the policy of a solution: its mean discounted return beside what v says."""

    file: Positional[Annotated[Path, arg(metavar="FILE")]]
    """The MDP, in any format that `movi solve` reads."""
    solution: Positional[Annotated[Path, arg(metavar="SOLUTION")]]
    """What `movi solve --out` wrote: an .npz with a policy."""
    episodes: int = 1_000
    """How many."""
    start: Annotated[int | None, arg(metavar="N")] = None
    """The first state of all of them (default: drawn uniformly)."""
    seed: int = 0
    """Of the draws."""
    discount: Annotated[float | None, arg(metavar="X")] = None
    """γ where the file has none, or another than the file's."""
    reward: Annotated[str | None, arg(metavar="NAME")] = None
    """Which rewards, where a .umb has several."""
    minimise: bool = False
    """Its rewards are costs."""

    def execute(self) -> None:
        """Evaluate, roll out, print."""
        from movi.mdp.episodes import simulate
        from movi.mdp.exact import checked_policies, policy_values
        from movi.mdp.files import read_arrays
        from movi.mdp.formats import load_mdp

        mdp = load_mdp(
            self.file, discount=self.discount, reward=self.reward, minimise=self.minimise
        )
        policy = checked_policies(mdp, read_arrays(self.solution, ("policy",))["policy"], 1)
        v = mdp.chosen(policy_values(mdp, policy), policy)
        found = simulate(mdp, policy, episodes=self.episodes, start=self.start, seed=self.seed, v=v)
        where = "states drawn uniformly" if self.start is None else f"state {self.start}"
        print(f"problem      {mdp}")
        print(f"rollouts     {self.episodes:,} episodes from {where}, seed {self.seed}")
        print(f"return       {found.mean:.6g}, 95 % interval {found.low:.6g} to {found.high:.6g}")
        print(f"by v         {found.expected:.6g} (what was cut off is at most ", end="")
        print(f"{found.truncation:.2g})")
