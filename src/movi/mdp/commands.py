"""`movi mdp NAME`: a member of a family, written to a file that `movi solve` reads."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import arg

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
        from movi.mdp.files import save_mdp

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
