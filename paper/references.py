"""Published learning curves, to lay over ours: Dopamine's JSON, or CSV tables.

Dopamine publishes a JSON file per game (``asterix.json``): a list of objects with ``Agent``,
``Iteration`` and ``Value``, one for each run and iteration, without saying which run: the n-th
value of an agent at an iteration is taken as that of its n-th run. Our CSV form of the same has the
columns game, variant, run, iteration and train_return. A CSV table with the columns game, algo,
step and return has greedy scores on MinAtar, one curve of each algorithm on a game.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from momentum_rl.errors import UserError
from momentum_rl.plumbing.reading import LARGE, read
from momentum_rl.report.curves import Curve, CurvesFigure
from momentum_rl.report.page import Plate
from momentum_rl.report.style import MUTED, Style
from paper.claims.tables import columns_of, read_table

LOOKS = ((MUTED, (1, 2)), (MUTED, (10, 3)), (MUTED, (5, 2, 1, 2)), (MUTED, (2, 5)))
"""Of published curves: grey, in the background."""
PUBLISHED_STEPS = 250_000
"""Agent steps of an iteration of published Atari curves."""
Points = dict[float, list[float]]
"""By agent step: the scores of the runs."""


@dataclass(frozen=True)
class _Point:
    """A score of Dopamine's, under its own names."""

    Agent: str
    Iteration: float
    Value: float


def read_references(files: Sequence[Path]) -> dict[tuple[str, str, str], Points]:
    """The curves of all files together, by game, variant and kind of score."""
    curves: dict[tuple[str, str, str], Points] = {}
    for file in files:
        for key, points in read_reference(file).items():
            if key in curves:
                raise UserError(f"{file}: {key[1]} on {key[0]} is in another file, too")
            curves[key] = points
    return curves


def read_reference(file: Path) -> dict[tuple[str, str, str], Points]:
    """The curves of a file."""
    kind = file.suffix.lower()
    if kind not in (".json", ".csv"):
        raise UserError(f"reference: {file}, expected a file that ends in .json or .csv")
    curves: dict[tuple[str, str, str], Points] = {}
    for game, variant, score, step, value in _json(file) if kind == ".json" else _csv(file):
        if not (0 <= step < 1e15 and abs(value) < 1e300):
            raise UserError(f"{file}: {variant} on {game}: {value} at {step}, expected numbers")
        points = curves.setdefault((plain(game), variant, score), {})
        points.setdefault(step, []).append(value)
    if not curves:
        raise UserError(f"{file}: no points, expected at least one")
    return curves


def _json(file: Path) -> list[tuple[str, str, str, float, float]]:
    game = file.stem.partition("_")[0]
    return [
        (game, point.Agent, "training", PUBLISHED_STEPS * (point.Iteration + 1), point.Value)
        for point in read(file, list[_Point], LARGE)
    ]


def _csv(file: Path) -> list[tuple[str, str, str, float, float]]:
    if {"algo", "step", "return"} <= set(columns_of(file)):
        table = read_table(file, ("step", "return"), words=("game", "algo"))
        names, score = (table.words["game"], table.words["algo"]), "greedy"
        steps, values = (table.numbers[name].tolist() for name in ("step", "return"))
    else:
        wanted = ("run", "iteration", "train_return")
        table = read_table(file, wanted, words=("game", "variant"))
        names, score = (table.words["game"], table.words["variant"]), "training"
        runs, iterations, values = (table.numbers[name].tolist() for name in wanted)
        steps = [PUBLISHED_STEPS * (i + 1) for i in iterations]
        (_, count), *_ = Counter(zip(*names, runs, iterations)).most_common(1)
        if count > 1:
            raise UserError(f"{file}: a run has an iteration twice")
    return [(game, variant, score, *rest) for game, variant, *rest in zip(*names, steps, values)]


def plain(game: str) -> str:
    """A game's name as all write it: space_invaders is SpaceInvaders."""
    return game.lower().replace("_", "")


def laid_over(plate: Plate, curves: Mapping[tuple[str, str, str], Points]) -> Plate:
    """Learning curves with what was published behind them, in grey, as far as ours go."""
    figure = plate.figure
    if not curves or not isinstance(figure, CurvesFigure) or figure.log:
        return plate
    variants = list(dict.fromkeys(variant for _, variant, _ in curves))
    panels = []
    for panel in figure.panels:
        longest = max(curve.x[-1] for curve in panel.curves)
        behind = []
        for variant, look in zip(variants, LOOKS * len(variants)):
            points = curves.get((plain(panel.title), variant, figure.y_title.split()[0]))
            if points is not None:
                x = np.array(sorted(step for step in points if 0 < step <= longest))
                means = np.array([np.mean(points[step]) for step in x])
                behind.append(Curve(Style(f"{variant} (published)", *look), x, means))
        panels.append(replace(panel, curves=(*panel.curves, *(c for c in behind if c.x.size))))
    return Plate(replace(figure, panels=tuple(panels)), plate.remarks)
