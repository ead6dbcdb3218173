"""MDPs and solutions in ``.npz`` files, without pickle, written whole or not at all."""

import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from momentum_rl.errors import UserError, door
from momentum_rl.mdp.arrays import aligned
from momentum_rl.mdp.checks import FIELDS, floats
from momentum_rl.mdp.model import FiniteMDP, adopted
from momentum_rl.plumbing.files import file_to_write, writing, written_aside
from momentum_rl.plumbing.sizes import require

_BLOCK = 1 << 22  # bytes read at a time
NAMES = ("state_names", "action_names")


@door
def save_mdp(mdp: FiniteMDP, path: str | os.PathLike[str]) -> None:
    """Write the four fields to ``path``, and the names if any."""
    more = {name: getattr(mdp, name) for name in NAMES if getattr(mdp, name) is not None}
    write_arrays(path, {name: getattr(mdp, name) for name in FIELDS} | more)


@door
def load_mdp(
    path: str | os.PathLike[str], *, discount: float | None = None, minimise: bool = False
) -> FiniteMDP:
    """Read and validate what :func:`save_mdp` wrote, or any ``.npz`` with the four fields.

    It may have the names of states and actions as well.

    Args:
      path: the file.
      discount: γ in place of the file's.
      minimise: whether its rewards are costs.
    """
    arrays = read_arrays(path, FIELDS, NAMES)
    stored = arrays.pop("discount")
    gamma = stored if discount is None else np.full(np.shape(stored), float(discount))
    rewards = -floats("rewards", arrays.pop("rewards")) if minimise else arrays.pop("rewards")
    successors, probabilities = arrays.pop("successors"), arrays.pop("probabilities")
    try:
        return adopted(successors, probabilities, rewards, gamma, **arrays)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def npz_to_write(path: str | os.PathLike[str]) -> Path:
    """The file that a user's path means, which does not say that it is another than an ``.npz``."""
    if Path(path).suffix not in ("", ".npz"):
        raise UserError(f"out: {path}, expected a name that ends in .npz")
    return file_to_write(path)


def write_arrays(path: str | os.PathLike[str], arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays aside, then rename, so that a reader never sees half a file."""
    path = npz_to_write(path)
    with writing(path), written_aside(path) as file:
        named: Any = dict(arrays)
        np.savez(file, **named)


def read_arrays(
    path: str | os.PathLike[str], names: tuple[str, ...], optional: tuple[str, ...] = ()
) -> dict[str, np.ndarray]:
    """The named arrays of an ``.npz``; nothing in the file can execute or claim memory by lying."""
    try:
        if Path(path).exists() and not Path(path).is_file():
            raise UserError(f"{path}: not a file, expected an .npz")
        with zipfile.ZipFile(path) as archive:
            members = {info.filename: info for info in archive.infolist()}
            missing = [name for name in names if f"{name}.npy" not in members]
            if missing:
                raise UserError(
                    f"{path}: no array {missing[0]!r}, expected {', '.join(names)} in the .npz"
                )
            names += tuple(name for name in optional if f"{name}.npy" in members)
            chosen = {name: members[f"{name}.npy"] for name in names}
            require(str(path), memory=sum(info.file_size for info in chosen.values()))
            return {name: _read_member(archive, info) for name, info in chosen.items()}
    except UserError:
        raise
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or 'not a readable .npz file'}") from None
    except (ValueError, OverflowError) as error:
        raise UserError(f"{path}: {error or 'not a readable .npz file'}") from None
    except Exception:  # whatever zipfile, its decompressors and NumPy say to bytes of others
        raise UserError(f"{path}: not a readable .npz file") from None


def _read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
    with archive.open(info) as member:
        version = npy.read_magic(member)
        readers: dict[tuple[int, int], Any] = {
            (1, 0): npy.read_array_header_1_0,
            (2, 0): npy.read_array_header_2_0,
        }
        if version not in readers:
            raise ValueError(f"{info.filename}: .npy version {version}, expected 1.0 or 2.0")
        try:  # NumPy parses the header as Python's literals, and lets the parser's errors through
            shape, fortran, dtype = readers[version](member)
        except Exception:
            raise ValueError(f"{info.filename}: its header is not readable") from None
        if any(type(size) is not int for size in shape):
            raise ValueError(f"{info.filename}: shape {shape}, expected integers")
        if dtype.hasobject:
            raise ValueError(f"{info.filename}: Python objects, expected numbers")
        # By the archive's own size, so that a header cannot make us allocate more.
        declared = int(np.prod(shape, dtype=object)) * dtype.itemsize
        if declared != info.file_size - member.tell():
            raise ValueError(
                f"{info.filename}: shape {shape} of {dtype} needs {declared} bytes, "
                f"the file holds {info.file_size - member.tell()}"
            )
        # Straight into the memory where it will stay.
        assert isinstance(member, zipfile.ZipExtFile)
        array = aligned(tuple(shape), dtype)
        memory: Any = array.reshape(-1).view(np.uint8)
        read = 0
        while read < declared:
            count = member.readinto(memory[read : read + _BLOCK])
            if not count:
                raise EOFError
            read += count
        return array.reshape(shape[::-1]).T if fortran else array
