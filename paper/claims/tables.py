"""Results files, read and checked: CSV tables and the provenance beside them.

A mistake in a file is one line that names the file, the place, the value and what was expected.
"""

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from momentum_rl.errors import UserError
from momentum_rl.plumbing.reading import LARGE, text
from momentum_rl.report.style import Array

PRINTED = ("printed", "j+1")
"""The check as Section 7.1 prints it: restarted from q_j and h_j."""
ASSUMED = ("assumed", "j+1")
"""The check as Assumption 1 has it: iteration j itself is repeated."""
ONE_MORE = ("assumed", "j")
"""The same with P_{π_j} as well: P_{j+l:j} ε_j."""
PAPER_N = 200
"""The largest number of restarts N in the paper's figure."""


@dataclass(frozen=True)
class Table:
    """A CSV file's columns of numbers and of words, all of one length and at least one row."""

    path: Path
    """Where it was read: the name that errors give."""
    numbers: Mapping[str, Array]
    words: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Compare:
    """``compare.csv``: the loss ‖q* − q_{π_k}‖₁ at each iteration k, by scheme, over MDPs."""

    iteration: Array
    mean: Mapping[str, Array]
    std: Mapping[str, Array]


@dataclass(frozen=True)
class Assumption:
    """A part of ``assumption.csv``: ε̄_{l,N} at each N, by l, over MDPs, of one reading at one j."""

    n: Array
    mean: Mapping[int, Array]
    std: Mapping[int, Array]
    proven: Mapping[int, float]
    """The share of MDPs on which what is estimated is proven to be zero."""

    def upto(self, largest: int) -> "Assumption":
        """The same without what has more restarts."""
        rows = self.n <= largest
        mean, std = ({k: c[rows] for k, c in own.items()} for own in (self.mean, self.std))
        return replace(self, n=self.n[rows], mean=mean, std=std)


@dataclass(frozen=True)
class Assumptions:
    """``assumption.csv``: by ``PRINTED``, ``ASSUMED`` and ``ONE_MORE``; then by j, increasing."""

    parts: Mapping[tuple[str, str], Mapping[int, Assumption]]

    def of(self, product: tuple[str, str]) -> Mapping[int, Assumption]:
        """By j; nothing if the file does not have it."""
        return self.parts.get(product, {})

    @property
    def paper(self) -> Mapping[int, Assumption]:
        """As printed, up to the paper's number of restarts."""
        return {j: part.upto(PAPER_N) for j, part in self.of(PRINTED).items()}

    @property
    def further(self) -> Mapping[int, Assumption]:
        """As printed, where there are more restarts than the paper has."""
        return {j: part for j, part in self.of(PRINTED).items() if part.n[-1] > PAPER_N}


@dataclass(frozen=True)
class Bounds:
    """``bounds.csv``: losses and bounds by column, at each iteration k; a bound may be infinite."""

    iteration: Array
    columns: Mapping[str, Array]


class Member(NamedTuple):
    """Which scheme of the family: md-vi, avi, sql or movi; regularised or plain; λ and τ."""

    scheme: str
    evaluation: str
    lam: float
    tau: float


class Measured(NamedTuple):
    """What was measured of it, at every iteration that was kept; means over MDPs."""

    mean: Array
    """‖q^τ_* − q^τ_π‖₁ / ‖q^τ_*‖₁."""
    std: Array
    """Its standard deviation."""
    loss: Array
    """‖q^τ_* − q^τ_π‖∞."""
    bound: Array
    """What the theorem gives, or would give, for it."""
    holds: Array
    """In which share of the MDPs that was no less than the loss."""


@dataclass(frozen=True)
class Family:
    """``family.csv``: by scheme, at the iterations that were kept."""

    iteration: Array
    members: Mapping[Member, Measured]

    def where(self, evaluation: str, tau: float | None = None) -> dict[Member, Measured]:
        """MD-VI with this evaluation, and with this τ if it is given."""
        return {
            key: own
            for key, own in self.members.items()
            if (key.scheme, key.evaluation) == ("md-vi", evaluation) and tau in (None, key.tau)
        }


def _number(path: Path, line: int, column: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise UserError(f"{path}: line {line}, column {column!r}: {text!r}, expected a number")
    return value


def _cells(path: Path) -> list[list[str]]:
    try:
        return list(csv.reader(io.StringIO(text(path, LARGE), newline="")))
    except csv.Error as error:
        raise UserError(f"{path}: cannot be read as a CSV table ({error})") from error


def columns_of(path: Path) -> list[str]:
    """The names in the header line of a CSV file; none if it is empty."""
    return [name.strip() for name in next(iter(_cells(path)), [])]


def read_table(path: Path, required: Sequence[str], words: Sequence[str] = ()) -> Table:
    """The table in a CSV file with a header line; columns not in ``words`` are numbers.

    Columns beyond ``required`` and ``words`` are read too. Infinity is a number, NaN is not.
    """
    rows = _cells(path)
    if not rows or not any(rows[0]):
        raise UserError(f"{path}: empty, expected a header line with columns {_listed(required)}")
    header = [name.strip() for name in rows[0]]
    for name in (*required, *words):
        if name not in header:
            raise UserError(f"{path}: no column {name!r}, found {_listed(header)}")
    for name in header:
        if header.count(name) > 1:
            raise UserError(f"{path}: column {name!r} occurs twice")
    body = [(line, row) for line, row in enumerate(rows[1:], start=2) if row]
    if not body:
        raise UserError(f"{path}: a header and no rows, expected at least one row")
    for line, row in body:
        if len(row) != len(header):
            raise UserError(f"{path}: line {line} has {len(row)} values, expected {len(header)}")
    texts = {name: tuple(row[header.index(name)].strip() for _, row in body) for name in words}
    numbers = {
        name: np.array([_number(path, line, name, row[i]) for line, row in body])
        for i, name in enumerate(header)
        if name not in words
    }
    return Table(path, numbers, texts)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if names else "none"


def _check(where: str, values: Array, bad: NDArray[np.bool_], expected: str) -> None:
    """Raises for the first value that is bad."""
    if bad.any():
        raise UserError(f"{where}: {float(values[bad][0])!r}, expected {expected}")


def _check_norms(table: Table, names: Sequence[str], *, finite: bool = True) -> None:
    """Norms are at least 0, and finite unless they are bounds."""
    expected = f"a {'finite ' if finite else ''}number of at least 0"
    for name in names:
        x = table.numbers[name]
        bad = (x < 0) | (finite & ~np.isfinite(x))
        _check(f"{table.path}: column {name!r}", x, bad, expected)


def _check_whole(table: Table, name: str, values: Array, least: int, of: str = "") -> str:
    """Counts are whole numbers; the place that was looked at."""
    where = f"{table.path}: column {name!r}{of}"
    bad = ~np.isfinite(values) | (values < least) | (values != np.floor(values))
    _check(where, values, bad, f"a whole number from {least}")
    return where


def _check_counter(table: Table, name: str, values: Array, of: str = "") -> None:
    """Iterations and sample counts: whole numbers from 1, strictly increasing."""
    where = _check_whole(table, name, values, 1, of)
    back = np.flatnonzero(np.diff(values) <= 0)
    if back.size:
        before, after = values[back[0]], values[back[0] + 1]
        raise UserError(f"{where}: {after:.0f} after {before:.0f}, expected increasing numbers")


def _same_grid(table: Table, name: str, grids: Mapping[Any, Array], what: str) -> Array:
    """The one grid that all groups share."""
    first, grid = next(iter(grids.items()))
    for key, other in grids.items():
        _check_counter(table, name, other, f" of {what} {key}")
        if other.shape != grid.shape or (other != grid).any():
            raise UserError(
                f"{table.path}: {what} {key} has {other.size} rows up to {name} {other[-1]:.0f}, "
                f"expected the {grid.size} rows of {what} {first}"
            )
    return grid


def read_compare(path: Path) -> Compare:
    """``compare.csv``: scheme, iteration, l1_mean, l1_std; other columns are ignored."""
    table = read_table(path, ("iteration", "l1_mean", "l1_std"), words=("scheme",))
    _check_norms(table, ("l1_mean", "l1_std"))
    schemes = np.array(table.words["scheme"])
    rows = {name: schemes == name for name in dict.fromkeys(table.words["scheme"])}
    iteration, mean, std = (table.numbers[name] for name in ("iteration", "l1_mean", "l1_std"))
    return Compare(
        _same_grid(table, "iteration", {s: iteration[r] for s, r in rows.items()}, "scheme"),
        {scheme: mean[row] for scheme, row in rows.items()},
        {scheme: std[row] for scheme, row in rows.items()},
    )


def read_assumption(path: Path) -> Assumptions:
    """``assumption.csv``: reading, lowest, j, l, n, mean, std, settled."""
    numbers = ("j", "l", "n", "mean", "std", "settled")
    table = read_table(path, numbers, words=("reading", "lowest"))
    _check_norms(table, ("mean", "std", "settled"))
    _check_words(table, "reading", ("printed", "assumed"))
    _check_words(table, "lowest", ("j+1", "j"))
    _check_whole(table, "j", table.numbers["j"], 1)
    _check_whole(table, "l", table.numbers["l"], 0)
    products = np.array([*zip(table.words["reading"], table.words["lowest"])])
    parts: dict[tuple[str, str], dict[int, Assumption]] = {}
    for reading, lowest in dict.fromkeys(map(tuple, products.tolist())):
        own = (products == (reading, lowest)).all(1)
        parts[reading, lowest] = {
            int(j): _assumption(table, own & (table.numbers["j"] == j))
            for j in np.unique(table.numbers["j"][own])
        }
    return Assumptions(parts)


def _assumption(table: Table, rows: NDArray[np.bool_]) -> Assumption:
    ls, n, mean, std, settled = (
        table.numbers[name][rows] for name in ("l", "n", "mean", "std", "settled")
    )
    by_l = {int(value): ls == value for value in np.unique(ls)}
    return Assumption(
        _same_grid(table, "n", {value: n[row] for value, row in by_l.items()}, "l ="),
        {value: mean[row] for value, row in by_l.items()},
        {value: std[row] for value, row in by_l.items()},
        {value: float(settled[row][0]) for value, row in by_l.items()},
    )


def _check_words(table: Table, name: str, expected: Sequence[str]) -> None:
    for word in table.words[name]:
        if word not in expected:
            raise UserError(
                f"{table.path}: column {name!r}: {word!r}, expected one of {_listed(expected)}"
            )


def read_bounds(path: Path) -> Bounds:
    """``bounds.csv``: iteration and any columns of losses and bounds."""
    table = read_table(path, ("iteration",))
    columns = {name: column for name, column in table.numbers.items() if name != "iteration"}
    if not columns:
        raise UserError(f"{path}: no column beside 'iteration', expected losses and bounds")
    _check_norms(table, tuple(columns), finite=False)
    _check_counter(table, "iteration", table.numbers["iteration"])
    return Bounds(table.numbers["iteration"], columns)


def read_family(path: Path) -> Family:
    """``family.csv``: scheme, evaluation, lambda, tau, iteration, and what was measured."""
    measured = ("error_mean", "error_std", "loss_sup", "bound", "holds")
    table = read_table(
        path, ("lambda", "tau", "iteration", *measured), words=("scheme", "evaluation")
    )
    _check_norms(table, (*measured[:3], "holds", "lambda", "tau"))
    _check_norms(table, ("bound",), finite=False)
    _check_words(table, "evaluation", ("regularised", "plain"))
    numbers = table.numbers
    columns = (*table.words.values(), numbers["lambda"].tolist(), numbers["tau"].tolist())
    keys = [Member(*own) for own in zip(*columns)]
    rows = {key: np.array([own == key for own in keys]) for key in dict.fromkeys(keys)}
    grids = {key: numbers["iteration"][row] for key, row in rows.items()}
    grid = _same_grid(table, "iteration", grids, "scheme")
    return Family(
        grid,
        {key: Measured(*(numbers[name][row] for name in measured)) for key, row in rows.items()},
    )
