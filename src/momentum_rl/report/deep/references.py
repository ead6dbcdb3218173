"""Published learning curves, to lay over ours: Dopamine's JSON, or CSV tables.

Dopamine publishes a JSON file per game (``asterix.json``): a list of objects with ``Agent``,
``Iteration`` and ``Value``, one for each run and iteration, without saying which run. The n-th
value of an agent at an iteration is taken as that of its n-th run: mean and spread over runs do not
depend on it. Our CSV form of the same has the columns game, variant, run, iteration and
train_return. A CSV table with the columns game, algo, step and return has greedy scores on MinAtar,
at agent steps, one curve of each algorithm on a game (a mean over runs).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from momentum_rl.errors import UserError
from momentum_rl.plumbing.reading import LARGE, read
from momentum_rl.report.drawing.numbers import Array
from momentum_rl.report.tabular.tables import columns_of, read_table
from momentum_rl.runs.finding import Score

PUBLISHED_STEPS = 250_000
"""Agent steps of an iteration of published Atari curves."""
LONGEST = 100_000
"""Iterations of a run that is still read: the published ones have 200."""
MOST = 10**7
"""Scores of a variant on a game that are still read."""
COLUMNS = ("run", "iteration", "train_return")
WORDS = ("game", "variant")
GREEDY_COLUMNS = ("step", "return")
GREEDY_WORDS = ("game", "algo")


@dataclass(frozen=True)
class Published:
    """What was published of a variant on a game."""

    steps: Array
    """[points]: agent steps."""
    scores: Array
    """[runs, points]; NaN where a run has no value."""
    suite: str = "Atari"
    score: Score = "training"


@dataclass(frozen=True)
class Reference:
    """Published curves of some variants on some games."""

    name: str
    curves: Mapping[tuple[str, str], Published]
    """By game and variant."""

    @property
    def variants(self) -> tuple[str, ...]:
        """In the file's order."""
        return tuple(dict.fromkeys(variant for _, variant in self.curves))

    def of(self, suite: str, score: Score, games: Sequence[str] = ()) -> "Reference | None":
        """The curves of a suite by a score; of these games alone, if any are named, and under
        these names. None if there are none.
        """
        names = {plain(game): game for game in games}
        curves = {
            (names.get(plain(game), game), variant): own
            for (game, variant), own in self.curves.items()
            if (own.suite, own.score) == (suite, score) and (not games or plain(game) in names)
        }
        return Reference(self.name, curves) if curves else None


def plain(game: str) -> str:
    """A game's name as all write it: space_invaders is SpaceInvaders."""
    return game.lower().replace("_", "")


def read_references(files: Sequence[Path]) -> Reference | None:
    """The curves of all files together; None for no file."""
    if not files:
        return None
    curves: dict[tuple[str, str], Published] = {}
    for file in files:
        for key, own in read_reference(file).items():
            if key in curves:
                raise UserError(f"{file}: {key[1]} on {key[0]} is in another file, too")
            curves[key] = own
    return Reference(", ".join(file.name for file in files), curves)


def read_reference(file: Path) -> dict[tuple[str, str], Published]:
    """The curves of a file, by game and variant."""
    if file.suffix.lower() == ".json":
        return _read_json(file)
    if file.suffix.lower() == ".csv":
        return _read_csv(file)
    raise UserError(f"reference: {file}, expected a file that ends in .json or .csv")


def _read_csv(file: Path) -> dict[tuple[str, str], Published]:
    if set(columns_of(file)) >= {*GREEDY_COLUMNS, *GREEDY_WORDS}:
        return _read_greedy(file)
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


def _read_greedy(file: Path) -> dict[tuple[str, str], Published]:
    """Greedy scores on MinAtar, by agent step."""
    table = read_table(file, GREEDY_COLUMNS, words=GREEDY_WORDS)
    points: dict[tuple[str, str], dict[float, float]] = {}
    numbers = (table.numbers[name].tolist() for name in GREEDY_COLUMNS)
    for game, variant, step, score in zip(*(table.words[name] for name in GREEDY_WORDS), *numbers):
        where = f"{file}: {variant} on {game}"
        own = points.setdefault((game, variant), {})
        if step < 0 or step in own:
            raise UserError(f"{where}: step {step:g}, expected each once, from 0 on")
        own[step] = _score(score, f"{where}: return")
    return {
        key: Published(
            np.array(sorted(own)), np.array([[own[s] for s in sorted(own)]]), "MinAtar", "greedy"
        )
        for key, own in points.items()
    }


@dataclass(frozen=True)
class _Point:
    """A score of Dopamine's, under its own names."""

    Agent: str
    Iteration: float
    Value: float


def _read_json(file: Path) -> dict[tuple[str, str], Published]:
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


def _matrix(points: Mapping[tuple[int, int], float], file: Path) -> Published:
    runs = {run: i for i, run in enumerate(sorted({run for run, _ in points}))}
    first = min(iteration for _, iteration in points)
    last = max(iteration for _, iteration in points)
    if len(runs) * (last - first + 1) > MOST:
        raise UserError(f"{file}: {len(runs)} runs up to iteration {last}, expected complete runs")
    scores = np.full((len(runs), last - first + 1), math.nan)
    for (run, iteration), score in points.items():
        scores[runs[run], iteration - first] = score
    return Published(PUBLISHED_STEPS * np.arange(1.0, scores.shape[1] + 1), scores)
