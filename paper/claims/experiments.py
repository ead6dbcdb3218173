"""What each experiment's table shows: its chapter of the page."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from momentum_rl.errors import UserError
from momentum_rl.mdp.families import FAMILIES
from momentum_rl.plumbing.reading import read
from momentum_rl.report.figure import Figure
from momentum_rl.report.page import Chapter, Table
from paper.claims import assumption, averaging, family, figures, verdicts
from paper.claims.drawing import number
from paper.claims.tables import (
    ASSUMED,
    ONE_MORE,
    PRINTED,
    Assumptions,
    Family,
    read_assumption,
    read_bounds,
    read_compare,
    read_family,
)
from paper.verdict import Finding, Verdict, said

Said = Verdict | Finding
Drawn = tuple[Callable[[Any], Figure | None], Sequence[Callable[[Any], Said | None]]]
"""A figure of a table, None if that lacks what is drawn, and what is judged and described."""


@dataclass(frozen=True)
class Experiment:
    """A table of results, and what it shows."""

    table: str
    """The name of its CSV file, without the ending."""
    title: str
    intro: str
    read: Callable[[Path], Any]
    drawn: tuple[Drawn, ...]

    def remarks(self, data: Any) -> list[tuple[Figure, list[Said]]]:
        """The figures, each with what is said beside it."""
        drawn = [(draw(data), [judge(data) for judge in judges]) for draw, judges in self.drawn]
        return [
            (figure, [one for one in remarks if one is not None])
            for figure, remarks in drawn
            if figure is not None
        ]

    def chapter(self, directory: Path) -> tuple[Chapter, list[Said]]:
        """The chapter on a directory that has the table, and all that is said in it."""
        file = directory / f"{self.table}.csv"
        empty = Chapter(self.table, self.title, self.intro)
        try:
            data, made_by = self.read(file), _made_by(file.with_suffix(".json"))
        except UserError as error:
            return replace(empty, problems=(str(error).removeprefix(f"{directory}/"),)), []
        drawn = self.remarks(data)
        if not drawn:
            problem = f"{file.name}: nothing that the report knows how to draw"
            return replace(empty, problems=(problem,)), []
        parts = [part for figure, remarks in drawn for part in (figure, said(remarks))]
        parts += [table(data) for of, table in TABLES.items() if isinstance(data, of)]
        made = Table("Settings and versions that made these data", made_by, folded=True)
        chapter = replace(empty, parts=(*parts, made), files=(file,))
        return chapter, [one for _, remarks in drawn for one in remarks]


def _made_by(file: Path) -> list[dict[str, Any]]:
    """The record beside a table: command, settings, versions, time."""
    if not file.exists():
        return [{"setting": "these data", "value": "how they were made is not recorded"}]
    record: Mapping[str, Any] = read(file, dict[str, Any])
    flat: dict[str, Any] = {}
    for name, value in record.items():
        flat |= value if isinstance(value, dict) else {name: value}
    return [{"setting": name, "value": str(value)} for name, value in flat.items()]


def _estimates(data: Assumptions) -> Table:
    names = {PRINTED: "as printed", ASSUMED: "as assumed", ONE_MORE: "as assumed, one kernel more"}
    ends = sorted({part.n[-1] for parts in data.parts.values() for part in parts.values()})
    rows = [
        {
            "reading": name,
            "j": f"{j:,}",
            "l": steps,
            "ε̄ at N = 1": number(curve[0]),
            **{
                f"at N = {n:,.0f}": number(curve[part.n == n][0]) if n in part.n else ""
                for n in ends
            },
            "proven to be 0 on": f"{100 * part.proven[steps]:.0f} %",
        }
        for product, name in names.items()
        for j, part in data.of(product).items()
        for steps, curve in part.mean.items()
    ]
    return Table("The estimates, mean over MDPs", rows, folded=True)


TABLES: dict[type, Callable[[Any], Table]] = {
    Assumptions: _estimates,
    averaging.Averaging: averaging.predicted,
    Family: family.grid,
}
"""What is shown beneath the figures of some data."""


def _of_family(data: Any, name: str) -> Figure:
    return replace(figures.schemes_mean(data), name=f"schemes_{name}")


EXPERIMENTS = (
    Experiment(
        "compare",
        "Sampled schemes on Garnets",
        "Random MDPs with a generative model: every iteration replaces the Bellman operator by one "
        "sampled next state per state and action. The error of a scheme at iteration k is "
        "‖q* − q_π‖₁, the average of |q* − q_π| over states and actions, where π is the policy of "
        "that iteration and q_π its exact value.",
        read_compare,
        (
            (figures.movi_vs_avi, [verdicts.momentum_converges]),
            (figures.schemes_mean, [verdicts.schemes_agree]),
            (figures.schemes_std, []),
        ),
    ),
    Experiment(
        "assumption",
        "The assumption behind Proposition 1",
        "Assumption 1 says that errors stay centred when they are multiplied by the kernels of "
        "later policies: E[P_{j+l:j+1} ε_j | F_{j−1}] = 0. The estimate ε̄(l, N) restarts MoVI N "
        "times, runs it for l steps, and takes the largest entry of the averaged, weighted error. "
        "First what the paper did: as Section 7.1 prints it, all restarts begin with the same q_j "
        "and h_j. Then the assumption's own indices: iteration j itself is repeated, from q_{j−1} "
        "and h_{j−1}. The paper says neither which j nor which l.",
        read_assumption,
        (
            (
                figures.assumption_mean,
                [assumption.assumption_vanishes, assumption.kernels_reduce_errors],
            ),
            (figures.assumption_further, []),
            (figures.assumption_std, []),
            (figures.assumption_assumed, [assumption.as_assumed]),
            (figures.assumption_one_more, [assumption.one_more_kernel]),
        ),
    ),
    Experiment(
        "bounds",
        "The bounds",
        "Along the same kind of runs the errors are known exactly, and so is every term of the "
        "paper's bounds on the loss q* − q_π. Each bound is drawn with what it bounds.",
        read_bounds,
        (
            (figures.bounds, [verdicts.movi_bounds_hold, verdicts.proposition_holds]),
            (
                figures.bounds_schemes,
                [verdicts.averaging_shrinks_bound, verdicts.scheme_bounds_hold],
            ),
            (figures.constant_beta, [verdicts.constant_beta_leaves_error]),
        ),
    ),
    Experiment(
        "averaging",
        "Beyond the paper: an average with errors of its own",
        "The paper's h is an exact average. A network's is not: it makes errors η_k of its own, "
        "and an average remembers them. Here MoVI's h gets Gaussian errors of a given share of q's "
        "noise in every iteration. Under a constant β their variance settles, and "
        "(1 − β)²/β = σ_η²/σ_q² makes that of h smallest; under β = k/(k+1) it grows without end.",
        averaging.read_averaging,
        (
            (averaging.by_beta, [averaging.law_is_best, averaging.measured_is_good]),
            (averaging.growing, [averaging.schedule_grows]),
        ),
    ),
    Experiment(
        "family",
        "The family: KL and entropy regularisation",
        "MoVI is one of a family of schemes with two weights, λ of the KL divergence to the policy "
        "before and τ of the entropy, and one bit, whether the evaluation is regularised like the "
        "greedy step (“Leverage the Average”, 2020). Sampled MD-VI(λ, τ) on Garnets with rewards "
        "at a tenth of the states; the error is ‖q^τ_* − q^τ_π‖₁ / ‖q^τ_*‖₁, where q^τ has τ times "
        "the entropy of the policy in it.",
        read_family,
        (
            (family.by_lambda, [family.kl_converges]),
            (family.by_beta, [family.beta_trades]),
            (
                family.beside_bounds,
                [family.theorem_1_holds, family.theorem_2_holds, family.plain_beside],
            ),
        ),
    ),
    *(
        Experiment(
            f"compare_{name}",
            f"Sampled schemes on another family: {name}",
            "The same comparison on a family with structure, where news travels slowly: does "
            "averaging still win? The paper does not look at it.",
            read_compare,
            ((partial(_of_family, name=name), [verdicts.averaging_on_a_family]),),
        )
        for name in FAMILIES
        if name != "garnet"
    ),
)
"""The experiments on tables, in order."""


def chapters_of_tables(directory: Path) -> list[tuple[Chapter, list[Said]]]:
    """The chapter of each table in a directory."""
    present = [one for one in EXPERIMENTS if (directory / f"{one.table}.csv").exists()]
    return [one.chapter(directory) for one in present]
