"""The deep half's data: runs side by side, game by game and variant by variant, compared."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from momentum_rl.report.deep.references import Reference
from momentum_rl.report.drawing.numbers import Array
from momentum_rl.report.drawing.styles import Style
from momentum_rl.report.statistics import Comparison, auc, compare
from momentum_rl.runs.finding import Run, Score
from momentum_rl.runs.sweep import Sweep

BASELINE = "dqn"
"""The algorithm that the others are compared with."""
MOMENTUM = "momentum-dqn"


@dataclass(frozen=True)
class GameScores:
    """The runs of a series on a game."""

    steps: Array
    """[points]: the agent steps of the scores, the ends of iterations or the evaluations."""
    scores: Array
    """[runs, points], by ``gathering``'s rules; NaN where an unfinished run has not been."""
    ended: NDArray[np.bool_]
    """By run: finished or diverged, so that it is compared."""
    diverged: tuple[int, ...] = ()
    """The points (from 0) that diverged runs did not reach."""
    evaluations: tuple[float, ...] = ()
    """Mean scores of the evaluations at the ends of runs."""

    @cached_property
    def areas(self) -> Array:
        """The area under the curve of each run that ended."""
        return auc(self.scores[self.ended])


@dataclass(frozen=True)
class Series:
    """An algorithm with its settings: one curve in every figure."""

    label: str
    algorithm: str
    """dqn, momentum-dqn, deep-sql, deep-dpp, or whatever a reference calls it."""
    style: Style
    beta: float | None = None
    """Its β if that is constant."""
    sign: str | None = None
    """Of Deep SQL: "sql" for Speedy Q-learning's own, "printed" for the appendix's."""
    main: bool = True
    """Not one that differs from another in its schedule of β alone: those have their own figure."""


@dataclass(frozen=True)
class Results:
    """Runs that belong together: of one sweep or one folder, and one suite of environments."""

    name: str
    """Short, for the names of files."""
    title: str
    suite: str
    """Atari, MinAtar, gymnax, or Gymnasium."""
    games: tuple[str, ...]
    series: tuple[Series, ...]
    cells: Mapping[tuple[str, str], GameScores]
    """By game and label."""
    baselines: Mapping[tuple[str, str], str]
    """By game and label: the label that it is compared with."""
    protocol: str
    """How the numbers came about: preset, steps, seeds, sticky actions, kind of score."""
    runs: tuple[Run, ...] = ()
    score: Score = "training"
    """The kind of all scores here."""
    greedy: "Results | None" = None
    """Of results by the training score: the same runs by the greedy score, if they have one."""
    reference: Reference | None = None
    """Published curves to lay over."""
    sweep: Sweep | None = None
    notes: tuple[str, ...] = ()
    """What a reader must know beside the rules."""

    def labelled(self, label: str) -> Series:
        """The series with a label."""
        return next(own for own in self.series if own.label == label)

    @cached_property
    def comparisons(self) -> dict[str, Comparison]:
        """By label: against its baseline, over the games where both have runs that ended."""
        found = {}
        for series in self.series:
            ours, theirs = {}, {}
            for game in self.games:
                baseline = self.baselines.get((game, series.label))
                own, other = (
                    self.cells.get((game, name)) for name in (series.label, baseline or "")
                )
                if own is not None and other is not None and own.ended.any() and other.ended.any():
                    ours[game], theirs[game] = areas_in_common(own, other)
            if any(areas.mean() != 0 for areas in theirs.values()):
                found[series.label] = compare(ours, theirs)
        return found

    def baseline_of(self, label: str) -> str:
        """What a series is compared with, in a word."""
        names = [self.baselines[key] for key in self.baselines if key[1] == label]
        return self.labelled(names[0]).style.label if names else "DQN"

    def count(self, label: str) -> tuple[int, int, int]:
        """Runs of a series: all, diverged, unfinished."""
        cells = [cell for (_, own), cell in self.cells.items() if own == label]
        return (
            sum(cell.ended.size for cell in cells),
            sum(len(cell.diverged) for cell in cells),
            sum(int((~cell.ended).sum()) for cell in cells),
        )


def areas_in_common(ours: GameScores, theirs: GameScores) -> tuple[Array, Array]:
    """Areas of the runs that ended, over the points that both have."""
    common = min(ours.scores.shape[1], theirs.scores.shape[1])
    return auc(ours.scores[ours.ended, :common]), auc(theirs.scores[theirs.ended, :common])
