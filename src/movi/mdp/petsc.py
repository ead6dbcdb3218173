"""PETSc's binary matrices, as madupite reads them: P [S·A, S] and the rewards [S, A] beside it.

    big-endian: class id 1211216, rows, columns, entries: int32; entries of each row: int32 [rows];
    columns: int32 [entries]; values: float64 [entries]

Row s·A + a of P is (s, a). ``NAME.petsc`` holds P and ``NAME.rewards.petsc`` the rewards; madupite
minimises, so that costs are what it wants there: see ``minimise``.
"""

from pathlib import Path
from typing import Any

import numpy as np

from movi.errors import UserError
from movi.files import file_to_write, writing, written_aside
from movi.mdp.model import FiniteMDP
from movi.mdp.tables import Arrays, slots
from movi.sizes import require

_CLASS = 1211216


def rewards_beside(path: Path) -> Path:
    """Where the rewards of a matrix are."""
    return path.with_name(f"{path.stem}.rewards{path.suffix}")


def read_petsc(path: Path) -> Arrays:
    """An MDP from two matrices."""
    beside = rewards_beside(path)
    (rows, states), starts, columns, values = _matrix(path)
    (own, actions), r_starts, r_columns, r_values = _matrix(beside)
    if own != states or rows != states * actions:
        raise UserError(
            f"{path}: {rows} × {states}, expected S·A × S with rewards of {own} × {actions}"
        )
    require(f"{path}", memory=2 * rows * int(np.diff(starts).max(initial=1)) * 12 + 8 * rows)
    for file, found, count in ((path, columns, states), (beside, r_columns, actions)):
        if len(found) and (found.min() < 0 or found.max() >= count):
            raise UserError(f"{file}: a column outside 0..{count - 1}")
    rewards = np.zeros((states, actions))
    rewards[np.repeat(np.arange(states), np.diff(r_starts)), r_columns] = r_values
    successors, probabilities = slots(starts, columns, values)
    shape = (states, actions, successors.shape[1])
    dense = {"successors": successors, "probabilities": probabilities}
    return {name: x.reshape(shape) for name, x in dense.items()} | {"rewards": rewards}


def _matrix(path: Path) -> tuple[tuple[int, int], np.ndarray, np.ndarray, np.ndarray]:
    """The shape, the offsets of rows, the columns and the values; sizes before anything else."""
    if path.exists() and not path.is_file():
        raise UserError(f"{path}: not a file, expected a matrix of PETSc")
    try:
        with path.open("rb") as file:
            size = path.stat().st_size
            head = np.fromfile(file, ">i4", 4)
            if len(head) < 4 or head[0] != _CLASS:
                raise UserError(f"{path}: not a binary matrix of PETSc")
            rows, columns, entries = (int(x) for x in head[1:])
            claimed = 16 + 4 * rows + 12 * entries
            if rows < 1 or columns < 1 or entries < 0 or claimed != size:
                raise UserError(
                    f"{path}: {rows} × {columns} with {entries} entries needs {claimed} bytes, "
                    f"the file has {size}"
                )
            require(f"{path}", memory=2 * size)
            counts = np.fromfile(file, ">i4", rows)
            if (counts < 0).any() or counts.sum(dtype=np.int64) != entries:
                raise UserError(f"{path}: rows of {counts.sum()} entries, expected {entries}")
            found = np.fromfile(file, ">i4", entries).astype(np.int32)
            values: Any = np.fromfile(file, ">f8", entries).astype(np.float64)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or 'cannot be read'}") from None
    starts = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    return (rows, columns), starts, found, values


def write_petsc(mdp: FiniteMDP, path: Path) -> None:
    """Write P and the rewards."""
    if mdp.batch is not None or mdp.pairs != mdp.states * mdp.actions:
        raise UserError("mdp: PETSc's matrices want one MDP with every action in every state")
    mdp = mdp.padded()
    used = (mdp.probabilities > 0).reshape(-1, mdp.branching)
    entries = (
        mdp.successors.reshape(used.shape)[used],
        mdp.probabilities.reshape(used.shape)[used],
    )
    _write(path, mdp.states, used.sum(1), *entries)
    columns = np.tile(np.arange(mdp.actions), mdp.states)
    full = np.full(mdp.states, mdp.actions)
    _write(rewards_beside(path), mdp.actions, full, columns, mdp.rewards.reshape(-1))


def _write(
    path: Path, columns: int, counts: np.ndarray, found: np.ndarray, values: np.ndarray
) -> None:
    if max(len(counts), len(values)) >= 2**31:
        raise UserError(f"mdp: {len(values):,} entries, PETSc's files hold fewer than 2**31")
    target = file_to_write(path)
    with writing(target), written_aside(target) as file:
        file.write(np.array([_CLASS, len(counts), columns, len(values)], ">i4").tobytes())
        for array, dtype in ((counts, ">i4"), (found, ">i4"), (values, ">f8")):
            file.write(np.ascontiguousarray(array.astype(dtype)).data)
