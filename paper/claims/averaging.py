"""Beyond the paper: what ``averaging.csv`` shows of the best β. The rules stand before any data:

- the law's β loses at most 10 % against the best constant of the grid in at least 90 % of the
  cells, a cell being a problem and a size σ_η ≤ 0.3 σ_q;
- the measured β is within 15 % of the best constant in every cell up to 0.5 σ_q.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from momentum_rl.report.curves import Curve, CurvesFigure, Panel
from momentum_rl.report.page import Table
from momentum_rl.report.style import INK, Style
from paper.claims.drawing import cycled, number
from paper.claims.tables import NORM, read_table
from paper.verdict import Finding

LOSES, OF_CELLS, LARGEST = 1.1, 0.9, 0.3
MEASURED = 1.15
ALIKE = 1.05
"""A constant β is as good as the best within this factor."""
SCHEDULES = ("law", "new", "mean", "capped", "measured")
"""What is not a constant of the grid."""


class Cell(NamedTuple):
    """A problem, and a size of the errors of h as a share of q's noise."""

    problem: str
    ratio: float


@dataclass(frozen=True)
class Averaging:
    """Losses by cell and schedule, what a schedule's β was, and how k/(k+1) fared on the way."""

    loss: Mapping[Cell, Mapping[str, float]]
    beta: Mapping[Cell, Mapping[str, float]]
    growth: Mapping[Cell, Mapping[float, float]]
    """Mean loss over iterations k to 2k, by k."""

    def constants(self, cell: Cell) -> dict[float, float]:
        """The losses of the grid's constant β, by β."""
        return {
            self.beta[cell][name]: loss
            for name, loss in self.loss[cell].items()
            if name not in SCHEDULES
        }

    def best(self, cell: Cell) -> float:
        """The smallest loss of a constant β."""
        return min(self.constants(cell).values())

    def within(self, schedule: str, factor: float, largest: float) -> tuple[int, int]:
        """In how many cells a schedule loses at most this often the best constant; of how many."""
        cells = [cell for cell in self.loss if cell.ratio <= largest]
        good = [self.loss[cell][schedule] <= factor * self.best(cell) for cell in cells]
        return sum(good), len(good)


def read_averaging(path: Path) -> Averaging:
    """``averaging.csv``: problem, schedule, ratio, beta, from, to, loss."""
    numbers = ("ratio", "beta", "from", "to", "loss")
    table = read_table(path, numbers, words=("problem", "schedule"))
    for name in numbers:
        table.check(name, NORM)
    rows = list(zip(*table.words.values(), *(table.numbers[n].tolist() for n in numbers)))
    last = max(row[5] for row in rows)
    data: tuple[dict[Cell, dict[Any, float]], ...] = ({}, {}, {})
    for problem, schedule, ratio, beta, begin, end, loss in rows:
        cell = Cell(problem, ratio)
        loss_of, beta_of, growth_of = (part.setdefault(cell, {}) for part in data)
        if end == last:
            loss_of[schedule], beta_of[schedule] = loss, beta
        else:
            growth_of[begin] = loss
    return Averaging(*data)


def _problems(data: Averaging) -> list[str]:
    return list(dict.fromkeys(cell.problem for cell in data.loss))


def _style(i: int, ratio: float) -> Style:
    return Style(f"σ of h / σ of q = {ratio:g}", *cycled(i))


def by_beta(data: Averaging) -> CurvesFigure:
    """Loss against 1 − β, with the law's choice; k/(k+1) is where it ends, at 1/(K + 1)."""
    panels = []
    for problem in _problems(data):
        cells = [cell for cell in data.loss if cell.problem == problem]
        curves = []
        for i, cell in enumerate(cells):
            points = {**data.constants(cell), data.beta[cell]["mean"]: data.loss[cell]["mean"]}
            betas, losses = zip(*sorted(points.items(), reverse=True))
            curves.append(Curve(_style(i, cell.ratio), 1 - np.array(betas), np.array(losses)))
        some = [cell for cell in cells if cell.ratio > 0]
        law = [(1 - data.beta[cell]["law"], data.loss[cell]["law"]) for cell in some]
        curves.append(Curve(Style("the law's β", INK, (1, 3)), *np.array(law).T))
        panels.append(Panel(problem, tuple(curves)))
    return CurvesFigure(
        "best_beta",
        "An average with errors of its own: which β is best",
        "mean loss of MoVI's policies by a constant β; leftmost: β = k/(k+1); black: the law's β",
        tuple(panels),
        "1 − β",
        "mean of |q* − qπ|",
        log=True,
    )


def growing(data: Averaging) -> CurvesFigure:
    """Loss against k under the paper's schedule."""
    panels = []
    for problem in _problems(data):
        parts = {cell.ratio: data.growth[cell] for cell in data.growth if cell.problem == problem}
        curves = [
            Curve(_style(i, ratio), np.array([*part]), np.array([*part.values()]))
            for i, (ratio, part) in enumerate(parts.items())
        ]
        panels.append(Panel(problem, tuple(curves)))
    return CurvesFigure(
        "errors_pile_up",
        "Under β = k/(k+1) errors of the average pile up",
        "mean loss of MoVI's policies over iterations k to 2k",
        tuple(panels),
        "iteration k",
        "mean of |q* − qπ|",
        log=True,
    )


def law_is_best(data: Averaging) -> Finding:
    """The first rule."""
    (good, cells), (new, _) = (data.within(name, LOSES, LARGEST) for name in ("law", "new"))
    held = "Held" if good >= OF_CELLS * cells else "Not held"
    return Finding(
        "Rule: the law's β, (1 − β)²/β = σ_η²/σ_q², loses at most 10 % against the best constant β "
        "in at least 90 % of the cells. The paper has no errors of h.",
        f"{held}: {good} of {cells} cells (without errors of h the law says k/(k+1) "
        f"itself). With the part of q's noise that is new in each "
        f"iteration in place of all of it: {new} of {cells}.",
    )


def measured_is_good(data: Averaging) -> Finding:
    """The second rule."""
    largest = max(cell.ratio for cell in data.loss)
    good, cells = data.within("measured", MEASURED, largest)
    ratios = {cell: data.loss[cell]["measured"] / data.best(cell) for cell in data.loss}
    worst = max(ratios, key=lambda cell: ratios[cell])
    return Finding(
        "Rule: a β that is measured in the run is within 15 % of the best constant in every cell.",
        f"{'Held' if good == cells else 'Not held'}: {good} of {cells} cells; the worst is "
        f"{number(ratios[worst])} times the best, on {worst.problem} with {worst.ratio:g}.",
    )


def schedule_grows(data: Averaging) -> Finding:
    """What k/(k+1) makes of errors of h."""
    small = min(cell.ratio for cell in data.loss if cell.ratio > 0)
    parts = [
        f"{cell.problem}: {number(data.loss[cell]['mean'] / data.best(cell))}"
        for cell in data.loss
        if cell.ratio == small
    ]
    return Finding(
        f"The paper's β = k/(k+1) where h has errors of {small:g} times q's noise.",
        f"Its loss as a multiple of the best constant's: {'; '.join(parts)}.",
    )


def predicted(data: Averaging) -> Table:
    """Predicted and best β, and the losses, by cell."""
    rows = []
    for cell, losses in data.loss.items():
        constants, best = data.constants(cell), data.best(cell)
        alike = [beta for beta, loss in constants.items() if loss <= ALIKE * best]
        rows.append(
            {
                "problem": cell.problem,
                "σ_η/σ_q": f"{cell.ratio:g}",
                "best β": f"{min(constants, key=lambda beta: constants[beta]):g}",
                "within 5 %": f"{min(alike):g} to {max(alike):g}",
                "its loss": number(best),
                **{
                    f"{name}: β, loss": f"{data.beta[cell][name]:.3f}, {number(losses[name])}"
                    for name in SCHEDULES
                },
            }
        )
    return Table("Predicted and best β", rows, folded=True)
