"""Files of MDPs by their suffix: our own, and those of other tools."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from movi.errors import UserError, door
from movi.mdp.checks import floats
from movi.mdp.files import read_npz, save_npz
from movi.mdp.model import FiniteMDP, adopted
from movi.mdp.petsc import read_petsc, write_petsc
from movi.mdp.prism import read_prism, write_prism
from movi.mdp.tables import Arrays
from movi.mdp.umb import read_umb, write_umb

READERS: dict[str, Callable[[Path], Arrays]] = {".tra": read_prism, ".petsc": read_petsc}
WITHOUT_DISCOUNT = (".tra", ".petsc")  # formats that have no place for one
WRITERS: dict[str, Callable[[FiniteMDP, Path], Any]] = {
    ".npz": save_npz,
    ".umb": write_umb,
    ".tra": write_prism,
    ".petsc": write_petsc,
}


@door
def load_mdp(
    path: str | os.PathLike[str],
    *,
    discount: float | None = None,
    reward: str | None = None,
    minimise: bool = False,
) -> FiniteMDP:
    """Read and validate an MDP: ``.umb``, ``.tra`` (PRISM), ``.petsc``; any other is an ``.npz``.

    Args:
      path: the file; those of PRISM and PETSc have others beside them.
      discount: γ where the file has none, or another than the file's.
      reward: which rewards, where a UMB file has several.
      minimise: whether its rewards are costs.
    """
    file, needed = Path(path), f"{path}: no discount in it, say which (--discount X)"
    if discount is None and file.suffix in WITHOUT_DISCOUNT:
        raise UserError(needed)
    if file.suffix == ".umb":
        arrays = read_umb(file, reward)
    elif reward is None:
        arrays = READERS.get(file.suffix, read_npz)(file)
    else:
        raise UserError(f"reward: {reward!r}, expected none: only a .umb file has several by name")
    own = arrays.pop("discount", None)
    if own is None and discount is None:
        raise UserError(needed)
    gamma = own if discount is None else np.full(np.shape(own), float(discount))
    rewards = -floats("rewards", arrays.pop("rewards")) if minimise else arrays.pop("rewards")
    successors, probabilities = arrays.pop("successors"), arrays.pop("probabilities")
    try:
        return adopted(successors, probabilities, rewards, gamma, **arrays)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


@door
def save_mdp(mdp: FiniteMDP, path: str | os.PathLike[str]) -> None:
    """Write an MDP in the format of the path's suffix; as ``.npz`` if that is no known one."""
    WRITERS.get(Path(path).suffix, save_npz)(mdp, Path(path))
