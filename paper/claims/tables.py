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

    def check(self, name: str, expected: str, *, least: float = 0, whole: bool = False) -> None:
        """Raises for the first number of a column that is none of these."""
        x = self.numbers[name]
        bad = ~np.isfinite(x) | (x < least) | (whole & (x != np.floor(x)))
        if bad.any():
            where = f"{self.path}: column {name!r}"
            raise UserError(f"{where}: {float(x[bad][0])!r}, expected {expected}")

    def rows(self, keys: Sequence[Any], counter: str) -> dict[Any, NDArray[np.bool_]]:
        """The rows of each key; all keys have the same whole numbers, which increase."""
        rows = {key: np.array([mask == key for mask in keys]) for key in dict.fromkeys(keys)}
        first = self.numbers[counter][next(iter(rows.values()))]
        for key, mask in rows.items():
            values = self.numbers[counter][mask]
            where = f"{self.path}: column {counter!r} of {key}"
            odd = values[(values < 1) | (values != np.floor(values))]
            if odd.size:
                raise UserError(f"{where}: {float(odd[0])!r}, expected a whole number from 1")
            back = np.flatnonzero(np.diff(values) <= 0)
            if back.size:
                after = f"{values[back[0] + 1]:.0f} after {values[back[0]]:.0f}"
                raise UserError(f"{where}: {after}, expected increasing numbers")
            if not np.array_equal(values, first):
                raise UserError(
                    f"{self.path}: {key} has {values.size} rows up to {counter} {values[-1]:.0f}, "
                    f"expected the {first.size} rows of {next(iter(rows))}"
                )
        return rows


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
        mean, std = ({k: c[rows] for k, c in mask.items()} for mask in (self.mean, self.std))
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
            key: mask
            for key, mask in self.members.items()
            if (key.scheme, key.evaluation) == ("md-vi", evaluation) and tau in (None, key.tau)
        }


NORM = "a finite number of at least 0"


def _cells(path: Path) -> list[list[str]]:
    try:
        return list(csv.reader(io.StringIO(text(path, LARGE), newline="")))
    except csv.Error as error:
        raise UserError(f"{path}: cannot be read as a CSV table ({error})") from error


def read_table(path: Path, required: Sequence[str], words: Sequence[str] = ()) -> Table:
    """The table in a CSV file with a header line; columns not in ``words`` are numbers.

    Columns beyond ``required`` and ``words`` are read too. Infinity is a number, NaN is not.
    """
    rows = _cells(path)
    header = [name.strip() for name in rows[0]] if rows else []
    if not any(header):
        raise UserError(f"{path}: empty, expected a header line with {', '.join(required)}")
    for name in (*required, *words):
        if name not in header:
            raise UserError(f"{path}: no column {name!r}, found {', '.join(header)}")
    for name in header:
        if header.count(name) > 1:
            raise UserError(f"{path}: column {name!r} occurs twice")
    body = [(line, row) for line, row in enumerate(rows[1:], start=2) if row]
    if not body:
        raise UserError(f"{path}: a header and no rows, expected at least one row")
    for line, row in body:
        if len(row) != len(header):
            raise UserError(f"{path}: line {line} has {len(row)} values, expected {len(header)}")

    def number(line: int, name: str, word: str) -> float:
        try:
            value = float(word)
        except ValueError:
            value = math.nan
        if math.isnan(value):
            raise UserError(f"{path}: line {line}, column {name!r}: {word!r}, expected a number")
        return value

    numbers = {
        name: np.array([number(line, name, row[i]) for line, row in body])
        for i, name in enumerate(header)
        if name not in words
    }
    texts = {name: tuple(row[header.index(name)].strip() for _, row in body) for name in words}
    return Table(path, numbers, texts)


def _check_words(table: Table, name: str, expected: Sequence[str]) -> None:
    for word in table.words[name]:
        if word not in expected:
            listed = ", ".join(expected)
            raise UserError(f"{table.path}: column {name!r}: {word!r}, expected one of {listed}")


def read_compare(path: Path) -> Compare:
    """``compare.csv``: scheme, iteration, l1_mean, l1_std; other columns are ignored."""
    table = read_table(path, ("iteration", "l1_mean", "l1_std"), words=("scheme",))
    for name in ("l1_mean", "l1_std"):
        table.check(name, NORM)
    rows = table.rows(table.words["scheme"], "iteration")
    mean, std = ({s: table.numbers[n][r] for s, r in rows.items()} for n in ("l1_mean", "l1_std"))
    return Compare(table.numbers["iteration"][next(iter(rows.values()))], mean, std)


def read_assumption(path: Path) -> Assumptions:
    """``assumption.csv``: reading, lowest, j, l, n, mean, std, settled."""
    numbers = ("j", "l", "n", "mean", "std", "settled")
    table = read_table(path, numbers, words=("reading", "lowest"))
    for name in ("mean", "std", "settled"):
        table.check(name, NORM)
    for name, least in (("j", 1), ("l", 0)):
        table.check(name, f"a whole number from {least}", least=least, whole=True)
    _check_words(table, "reading", ("printed", "assumed"))
    _check_words(table, "lowest", ("j+1", "j"))
    keys = [*zip(*table.words.values(), table.numbers["j"].astype(int).tolist())]
    parts: dict[tuple[str, str], dict[int, Assumption]] = {}
    for reading, lowest, j in dict.fromkeys(keys):
        mask = np.array([key == (reading, lowest, j) for key in keys])
        part = {name: table.numbers[name][mask] for name in numbers}
        below = Table(path, part, {})
        rows = below.rows(part["l"].astype(int).tolist(), "n")
        mean, std, settled = (
            {length: part[name][r] for length, r in sorted(rows.items())}
            for name in ("mean", "std", "settled")
        )
        n = part["n"][next(iter(rows.values()))]
        proven = {length: float(column[0]) for length, column in settled.items()}
        parts.setdefault((reading, lowest), {})[j] = Assumption(n, mean, std, proven)
    return Assumptions({product: dict(sorted(mask.items())) for product, mask in parts.items()})


def read_bounds(path: Path) -> Bounds:
    """``bounds.csv``: iteration and any columns of losses and bounds, which may be infinite."""
    table = read_table(path, ("iteration",))
    columns = {name: column for name, column in table.numbers.items() if name != "iteration"}
    if not columns:
        raise UserError(f"{path}: no column beside 'iteration', expected losses and bounds")
    for name, column in columns.items():
        if (column < 0).any():
            raise UserError(f"{path}: column {name!r}: {column.min()!r}, expected {NORM}")
    table.rows([path.name] * len(table.numbers["iteration"]), "iteration")
    return Bounds(table.numbers["iteration"], columns)


def read_family(path: Path) -> Family:
    """``family.csv``: scheme, evaluation, lambda, tau, iteration, and what was measured."""
    measured = ("error_mean", "error_std", "loss_sup", "bound", "holds")
    table = read_table(
        path, ("lambda", "tau", "iteration", *measured), words=("scheme", "evaluation")
    )
    for name in (*measured[:3], "holds", "lambda", "tau"):
        table.check(name, NORM)
    _check_words(table, "evaluation", ("regularised", "plain"))
    numbers = table.numbers
    columns = (*table.words.values(), numbers["lambda"].tolist(), numbers["tau"].tolist())
    rows = table.rows([Member(*mask) for mask in zip(*columns)], "iteration")
    return Family(
        numbers["iteration"][next(iter(rows.values()))],
        {key: Measured(*(numbers[name][row] for name in measured)) for key, row in rows.items()},
    )
