"""Checkpoints: one file each, complete or absent, the last two of a run.

A file is a safetensors file: arrays by name, and a JSON text with everything else. The text names
its format; a SHA-256 is of the text and all arrays. Reading executes nothing, allocates no more
than the file's size, and takes nothing from a file whose checksum is wrong.
"""

import hashlib
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from momentum_rl.errors import Damaged, Interrupted, NoRoom, UserError, one_line
from momentum_rl.plumbing.files import write_aside, writing
from momentum_rl.plumbing.reading import as_json, checked, parsed, tensors
from momentum_rl.version import __version__

FORMAT = 1
KEPT = 2
DIRECTORY = "checkpoint"
SUFFIX = ".safetensors"

log = logging.getLogger("movi")


class Saved(NamedTuple):
    """The content of a checkpoint: arrays, and the rest of JSON's types."""

    arrays: dict[str, np.ndarray]
    state: dict[str, Any]


class Checkpoints:
    """The checkpoints of a run directory."""

    def __init__(self, run: Path) -> None:
        self.path = run / DIRECTORY

    def steps(self) -> list[int]:
        """The agent steps of which there is one, in order."""
        files = (path for path in self.path.glob(f"*{SUFFIX}") if not path.is_dir())
        steps = [int(file.stem) for file in files if re.fullmatch("[0-9]{12,18}", file.stem)]
        return sorted(step for step in steps if self.file(step).is_file())

    def file(self, step: int) -> Path:
        """The file of a step."""
        return self.path / f"{step:012d}{SUFFIX}"

    def write(self, step: int, saved: Saved) -> None:
        """Writes one; then only the last two are kept."""
        with writing(self.path):
            self.path.mkdir(exist_ok=True)
            write_aside(self.file(step), encoded(saved))
            for old in self.steps()[:-KEPT]:
                self.file(old).unlink()

    def read(self, step: int) -> Saved:
        """Reads one; ``Damaged`` if it is not as it was written."""
        return read(self.file(step))

    def keep_until(self, step: int) -> None:
        """Removes those of later steps."""
        with writing(self.path):
            for later in self.steps():
                if later > step:
                    self.file(later).unlink()


def encoded(saved: Saved) -> bytes:
    """The bytes of a checkpoint's file."""
    import jax
    from safetensors.numpy import save

    about = {"format": FORMAT, "version": __version__, "jax": jax.__version__, "state": saved.state}
    text = as_json(about, sort_keys=True)
    arrays = {name: np.ascontiguousarray(array) for name, array in saved.arrays.items()}
    arrays = {name: array.reshape(saved.arrays[name].shape) for name, array in arrays.items()}
    return save(arrays, metadata={"movi": text, "sha256": _digest(text, arrays)})


def read(file: Path) -> Saved:
    """The content of a checkpoint's file."""
    try:
        metadata, arrays = tensors(file)
        text = metadata.get("movi", "")
        about: _About = checked(parsed(text, str(file)), _About, str(file))
    except NoRoom:
        raise
    except UserError:
        raise Damaged(f"{file}: damaged, or no checkpoint") from None
    if about.format > FORMAT:
        raise UserError(f"{file}: format {about.format}, this version of movi reads up to {FORMAT}")
    if metadata.get("sha256") != _digest(text, arrays):
        raise Damaged(f"{file}: damaged (its checksum is wrong)")
    return Saved(arrays, about.state)


@dataclass(frozen=True)
class _About:
    format: int
    state: dict[str, Any]


def _digest(text: str, arrays: Mapping[str, np.ndarray]) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def newest(
    checkpoints: Sequence[Checkpoints], restore: Callable[[list[Saved]], None]
) -> list[Saved] | None:
    """Restores the newest checkpoint that all runs have and that is not damaged.

    None if there is no checkpoint at all. A damaged one is passed over with a warning; if all are,
    that is an error: whoever has it decides what to do with the run. So is one that was forged, and
    makes no sense though its checksum is right.
    """
    damaged: list[Damaged] = []
    common = sorted(set.intersection(*(set(c.steps()) for c in checkpoints)))
    for step in reversed(common):
        try:
            saved = [c.read(step) for c in checkpoints]
            try:
                restore(saved)
            except (UserError, Interrupted):
                raise
            except Exception as error:  # whatever loops and environments say to what makes no sense
                file = checkpoints[0].file(step)
                raise Damaged(f"{file}: damaged ({type(error).__name__} {error})") from None
        except Damaged as error:
            damaged.append(error)
            continue
        for one in damaged:
            log.warning(
                "movi: warning: went on from an earlier checkpoint: %s", one_line(str(one), 250)
            )
        for c in checkpoints:
            c.keep_until(step)
        return saved
    if damaged:
        raise UserError(
            f"{damaged[0]}; no checkpoint can be resumed (without {DIRECTORY}/ the run begins anew)"
        )
    return None
