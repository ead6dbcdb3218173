"""Published learning curves, to lay over ours: Dopamine's JSON, or a CSV table.

Dopamine publishes a JSON file per game (``asterix.json``): a list of objects with ``Agent``,
``Iteration`` and ``Value``, one for each run and iteration, without saying which run. The n-th
value of an agent at an iteration is taken as that of its n-th run: mean and spread over runs do not
depend on it. Our CSV form has the columns game, variant, run, iteration and train_return.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from movi.errors import UserError
from movi.reading import LARGE, read
from movi.reports.drawing.numbers import Array
from movi.reports.tabular.tables import read_table

LONGEST = 100_000
"""Iterations of a run that is still read: the published ones have 200."""
MOST = 10**7
"""Scores of a variant on a game that are still read."""
COLUMNS = ("run", "iteration", "train_return")
WORDS = ("game", "variant")


@dataclass(frozen=True)
class Reference:
    """Published curves of some variants on some games."""

    name: str
    curves: Mapping[tuple[str, str], Array]
    """By game and variant: scores [runs, iterations]; NaN where a run has no value."""

    @property
    def variants(self) -> tuple[str, ...]:
        """In the file's order."""
        return tuple(dict.fromkeys(variant for _, variant in self.curves))

    def of_games(self, games: Sequence[str]) -> "Reference | None":
        """The curves of these games, under these names; None if there are none."""
        names = {game.lower(): game for game in games}
        curves = {
            (names[game.lower()], variant): scores
            for (game, variant), scores in self.curves.items()
            if game.lower() in names
        }
        return Reference(self.name, curves) if curves else None


def read_references(files: Sequence[Path]) -> Reference | None:
    """The curves of all files together; None for no file."""
    if not files:
        return None
    curves: dict[tuple[str, str], Array] = {}
    for file in files:
        for key, scores in read_reference(file).items():
            if key in curves:
                raise UserError(f"{file}: {key[1]} on {key[0]} is in another file, too")
            curves[key] = scores
    return Reference(", ".join(file.name for file in files), curves)


def read_reference(file: Path) -> dict[tuple[str, str], Array]:
    """The curves of a file, by game and variant."""
    if file.suffix.lower() == ".json":
        return _read_json(file)
    if file.suffix.lower() == ".csv":
        return _read_csv(file)
    raise UserError(f"reference: {file}, expected a file that ends in .json or .csv")


def _read_csv(file: Path) -> dict[tuple[str, str], Array]:
    table = read_table(file, COLUMNS, words=WORDS)
    points: dict[tuple[str, str], dict[tuple[int, int], float]] = {}
    numbers = (table.numbers[name].tolist() for name in COLUMNS)
    columns = (*(table.words[name] for name in WORDS), *numbers)
    for game, variant, run, iteration, score in zip(*columns):
        where = f"{file}: {variant} on {game}"
        own = points.setdefault((game, variant), {})
        at = (_whole(run, f"{where}: run"), _whole(iteration, f"{where}: iteration"))
        if at in own:
            raise UserError(f"{where}: run {at[0]} has iteration {at[1]} twice")
        own[at] = _score(score, f"{where}: train_return")
    return {key: _matrix(own, file) for key, own in points.items()}


@dataclass(frozen=True)
class _Point:
    """A score of Dopamine's, under its own names."""

    Agent: str
    Iteration: float
    Value: float


def _read_json(file: Path) -> dict[tuple[str, str], Array]:
    game = file.stem.partition("_")[0]
    points: dict[tuple[str, str], dict[tuple[int, int], float]] = {}
    runs: dict[tuple[str, int], int] = {}
    for i, point in enumerate(read(file, list[_Point], LARGE)):
        iteration = _whole(point.Iteration, f"{file}: entry {i}: Iteration")
        run = runs[point.Agent, iteration] = runs.get((point.Agent, iteration), -1) + 1
        points.setdefault((game, point.Agent), {})[run, iteration] = float(point.Value)
    if not points:
        raise UserError(f"{file}: expected a list of objects with Agent, Iteration and Value")
    return {key: _matrix(own, file) for key, own in points.items()}


def _whole(value: float, where: str) -> int:
    if value != value // 1 or not 0 <= value < LONGEST:
        raise UserError(f"{where} {value}, expected a whole number from 0 to {LONGEST - 1}")
    return int(value)


def _score(value: float, where: str) -> float:
    if not abs(value) < 1e300:
        raise UserError(f"{where} {value}, expected a finite number")
    return value


def _matrix(points: Mapping[tuple[int, int], float], file: Path) -> Array:
    runs = {run: i for i, run in enumerate(sorted({run for run, _ in points}))}
    first = min(iteration for _, iteration in points)
    last = max(iteration for _, iteration in points)
    if len(runs) * (last - first + 1) > MOST:
        raise UserError(f"{file}: {len(runs)} runs up to iteration {last}, expected complete runs")
    scores = np.full((len(runs), last - first + 1), math.nan)
    for (run, iteration), score in points.items():
        scores[runs[run], iteration - first] = score
    return scores
