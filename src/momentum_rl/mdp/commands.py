"""Commands that make and try out MDPs: `mdp NAME`, `simulate`."""

from collections.abc import Sequence
from dataclasses import dataclass, field, make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro
from tyro.conf import Positional, arg

from momentum_rl.mdp.families import FAMILIES, Family

if TYPE_CHECKING:
    from momentum_rl.mdp.model import FiniteMDP

    Name = str
else:
    Name = tyro.extras.literal_type_from_choices(FAMILIES)


@dataclass(frozen=True, kw_only=True)
class Make:
    """Make an MDP and write it to a file that `movi solve` reads.

    A family's own options are shown with its name: movi mdp maze --help.
    """

    name: Positional[Annotated[Name, arg(metavar="NAME")]]
    """The family: garnet, the random MDPs of the paper; maze, inventory or forest."""
    out: Annotated[Path, arg(metavar="FILE")]
    """The .npz to write."""

    @classmethod
    def given(cls, arguments: Sequence[str]) -> "tuple[type[Make], Make]":
        """The command with the options of the family that is named, if one is."""
        name = next((word for word in arguments if word in FAMILIES), None)
        if name is None:
            return cls, cls(name=tyro.MISSING, out=tyro.MISSING)
        family = FAMILIES[name]
        chosen = make_dataclass(
            cls.__name__,
            [("family", family, field(default=family()))],
            bases=(cls,),
            frozen=True,
            kw_only=True,
            namespace={"__doc__": cls.__doc__},
        )
        return chosen, chosen(name=tyro.MISSING, out=tyro.MISSING)

    def execute(self) -> None:
        """Make the MDP, write it, print where; whether it can be written is checked first."""
        from momentum_rl.mdp.files import save_mdp
        from momentum_rl.plumbing.files import file_to_write

        file_to_write(self.out)
        family: Family = getattr(self, "family", FAMILIES[self.name]())
        mdp = family.mdp()
        save_mdp(mdp, self.out)
        print(f"written      {self.out}: {mdp}")


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
        from momentum_rl.mdp.files import read_arrays
        from momentum_rl.mdp.solve.exact import checked_policies, policy_values

        mdp = self.load(self.file, self.discount)
        policy = checked_policies(mdp, read_arrays(self.solution, ("policy",))["policy"], 1)
        v = mdp.chosen(policy_values(mdp, policy), policy)
        rollouts = simulate(
            mdp, policy, episodes=self.episodes, start=self.start, seed=self.seed, v=v
        )
        where = "states drawn uniformly" if self.start is None else f"state {self.start}"
        print(f"problem      {mdp}")
        print(f"rollouts     {self.episodes:,} episodes from {where}, seed {self.seed}")
        interval = f"{rollouts.low:.6g} to {rollouts.high:.6g}"
        print(f"return       {rollouts.mean:.6g}, 95 % interval {interval}")
        left_out = f"what was cut off is at most {rollouts.truncation:.2g}"
        print(f"by v         {rollouts.expected:.6g} ({left_out})")
