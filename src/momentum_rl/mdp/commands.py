"""`movi mdp NAME`: make an MDP."""

from collections.abc import Sequence
from dataclasses import dataclass, field, make_dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro
from tyro.conf import Positional, arg

from momentum_rl.mdp.families import FAMILIES, Garnet, Maze


@dataclass(frozen=True, kw_only=True)
class Make:
    """Make an MDP and write it to a file that `movi solve` reads.

    A family's own options are shown with its name: movi mdp maze --help.
    """

    name: Positional[Annotated[Literal["garnet", "maze"], arg(metavar="NAME")]]
    """The family: garnet, the random MDPs of the paper, or maze."""
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
        family: Garnet | Maze = getattr(self, "family", FAMILIES[self.name]())
        mdp = family.mdp()
        save_mdp(mdp, self.out)
        print(f"written      {self.out}: {mdp}")
