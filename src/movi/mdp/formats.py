"""Files of MDPs by their suffix: our own, and those of other tools."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from movi.errors import UserError
from movi.mdp.files import load_npz, save_npz
from movi.mdp.model import FiniteMDP
from movi.mdp.petsc import read_petsc, write_petsc
from movi.mdp.prism import read_prism, write_prism
from movi.mdp.umb import read_umb, write_umb

READERS: dict[str, Callable[..., FiniteMDP]] = {
    ".umb": read_umb,
    ".tra": read_prism,
    ".petsc": read_petsc,
}
WRITERS: dict[str, Callable[[FiniteMDP, Path], Any]] = {
    ".npz": save_npz,
    ".umb": write_umb,
    ".tra": write_prism,
    ".petsc": write_petsc,
}


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
    file = Path(path)
    reader = READERS.get(file.suffix)
    if reader is not None:
        return reader(file, discount=discount, reward=reward, minimise=minimise)
    if reward is not None:
        raise UserError(f"reward: {reward!r}, expected none: an .npz has one kind of rewards")
    mdp = load_npz(path)
    return _changed(mdp, discount, minimise)


def _changed(mdp: FiniteMDP, discount: float | None, minimise: bool) -> FiniteMDP:
    if discount is None and not minimise:
        return mdp
    fields: dict[str, Any] = {
        "rewards": -mdp.rewards if minimise else mdp.rewards,
        "discount": mdp.discount if discount is None else np.full(mdp.discount.shape, discount),
    }
    layout: dict[str, Any] = {name: getattr(mdp, name) for name in ("offsets", "choices")}
    names: dict[str, Any] = {name: getattr(mdp, name) for name in ("state_names", "action_names")}
    return FiniteMDP(mdp.successors, mdp.probabilities, **fields, **layout, **names)


def save_mdp(mdp: FiniteMDP, path: str | os.PathLike[str]) -> None:
    """Write an MDP in the format of the path's suffix; without one of the others, as ``.npz``."""
    WRITERS.get(Path(path).suffix, save_npz)(mdp, Path(path))
