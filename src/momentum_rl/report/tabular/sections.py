"""The tabular half of the page: what each command's results show, wherever they are."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from momentum_rl.mdp.families import FAMILIES
from momentum_rl.report.drawing.figure import Figure
from momentum_rl.report.drawing.numbers import number
from momentum_rl.report.sections import Entry, Loaded, PageTable, Section, read_provenance
from momentum_rl.report.tabular import assumption, family, figures, verdicts
from momentum_rl.report.tabular.tables import (
    ASSUMED,
    ONE_MORE,
    PRINTED,
    Assumptions,
    read_assumption,
    read_bounds,
    read_compare,
    read_family,
)
from momentum_rl.runs.finding import directories
from momentum_rl.runs.sweep import slug


def csv_loader(name: str, read: Callable[[Path], Any]) -> Callable[[Path], Loaded | None]:
    """A loader of ``name.csv`` and its ``name.json``."""

    def load(directory: Path) -> Loaded | None:
        path, beside = directory / f"{name}.csv", directory / f"{name}.json"
        if not path.exists():
            return None
        files = (path, beside) if beside.exists() else (path,)
        return Loaded(read(path), files, read_provenance(beside))

    return load


def _load_assumption(directory: Path) -> Loaded | None:
    loaded = csv_loader("assumption", read_assumption)(directory)
    return loaded and replace(loaded, tables=(_assumption_table(loaded.data),))


def _assumption_table(data: Assumptions) -> PageTable:
    names = {PRINTED: "as printed", ASSUMED: "as assumed", ONE_MORE: "as assumed, one kernel more"}
    parts = [part for own in data.parts.values() for part in own.values()]
    ends = sorted({part.n[-1] for part in parts})
    rows: list[dict[str, str | int | Path]] = [
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
    return PageTable("The estimates, mean over MDPs", rows, folded=True)


def _family(name: str) -> Section:
    """The schemes on a family of structured MDPs: described, since the paper has Garnets only."""
    return Section(
        name=f"schemes_{name}",
        title=f"Sampled schemes on another family: {name}",
        intro=(
            "The same comparison on a family with structure, where news travels slowly: does "
            "averaging still win? The paper does not look at it."
        ),
        made_by=f"python -m paper compare --family {name}",
        file=f"compare_{name}",
        load=csv_loader(f"compare_{name}", read_compare),
        entries=(
            Entry(
                lambda data: replace(figures.schemes_mean(data), name=f"schemes_{name}"),
                (verdicts.averaging_on_a_family,),
            ),
        ),
        expected=False,
    )


SECTIONS: tuple[Section, ...] = (
    Section(
        name="schemes",
        title="Sampled schemes on Garnets",
        intro=(
            "Random MDPs with a generative model: every iteration replaces the Bellman operator by "
            "one sampled next state per state and action. The error of a scheme at iteration k is "
            "‖q* − q_π‖₁, the average of |q* − q_π| over states and actions, where π is the policy "
            "of that iteration and q_π its exact value."
        ),
        made_by="python -m paper compare",
        file="compare",
        load=csv_loader("compare", read_compare),
        entries=(
            Entry(figures.movi_vs_avi, (verdicts.momentum_converges,)),
            Entry(figures.schemes_mean, (verdicts.schemes_agree,)),
            Entry(figures.schemes_std, (verdicts.spread,)),
        ),
    ),
    Section(
        name="assumption",
        title="The assumption behind Proposition 1",
        intro=(
            "Assumption 1 says that errors stay centred when they are multiplied by the kernels of "
            "later policies: E[P_{j+l:j+1} ε_j | F_{j−1}] = 0. The estimate ε̄(l, N) restarts MoVI "
            "N times, runs it for l steps, and takes the largest entry of the averaged, weighted "
            "error. First what the paper did: as Section 7.1 prints it, all restarts begin with "
            "the same q_j and h_j. Then the assumption's own indices: iteration j itself is "
            "repeated, from q_{j−1} and h_{j−1}. The paper says neither which j nor which l."
        ),
        made_by="python -m paper assumption",
        file="assumption",
        load=_load_assumption,
        entries=(
            Entry(
                figures.assumption_mean,
                (assumption.assumption_vanishes, assumption.kernels_reduce_errors),
            ),
            Entry(figures.assumption_further),
            Entry(figures.assumption_std, (assumption.assumption_spread,)),
            Entry(figures.assumption_assumed, (assumption.as_assumed,)),
            Entry(figures.assumption_one_more, (assumption.one_more_kernel,)),
        ),
    ),
    Section(
        name="bounds",
        title="The bounds",
        intro=(
            "Along the same kind of runs the errors are known exactly, and so is every term of the "
            "paper's bounds on the loss q* − q_π. Each bound is drawn beside what it bounds."
        ),
        made_by="python -m paper bounds",
        file="bounds",
        load=csv_loader("bounds", read_bounds),
        entries=(
            Entry(figures.bounds, (verdicts.movi_bounds_hold, verdicts.proposition_holds)),
            Entry(
                figures.bounds_schemes,
                (verdicts.averaging_shrinks_bound, verdicts.scheme_bounds_hold),
            ),
            Entry(figures.constant_beta, (verdicts.constant_beta_leaves_error,)),
        ),
    ),
    Section(
        name="family",
        title="The family: KL and entropy regularisation",
        intro=(
            "MoVI is one of a family of schemes with two weights, λ of the KL divergence to the "
            "policy before and τ of the entropy, and one bit, whether the evaluation is "
            "regularised like the greedy step (“Leverage the Average”, 2020). Sampled MD-VI(λ, τ) "
            "on Garnets with rewards at a tenth of the states; the error is "
            "‖q^τ_* − q^τ_π‖₁ / ‖q^τ_*‖₁, where q^τ has τ times the entropy of the policy in it."
        ),
        made_by="python -m paper family",
        file="family",
        load=csv_loader("family", read_family),
        entries=(
            Entry(family.by_lambda, (family.kl_converges,)),
            Entry(family.by_beta, (family.beta_trades,)),
            Entry(family.grid, (family.plain_beside,)),
            Entry(family.beside_bounds, (family.theorem_1_holds, family.theorem_2_holds)),
        ),
    ),
    *(_family(name) for name in FAMILIES if name != "garnet"),
)
"""The tabular half of the report, in order."""


def tabular_sections(folder: Path, aside: str) -> tuple[Section, ...]:
    """The sections of the results in a folder, and of those in the folders below it.

    What there is neither here nor there has one section, which says how it is made.

    Args:
      folder: of results.
      aside: the name of folders that are passed over: numbers of figures are no results.
    """
    known = {f"{section.file}.csv" for section in SECTIONS}
    below = {
        path: files & known
        for path, files in directories(folder)
        if path != folder and files & known and aside not in path.relative_to(folder).parts
    }
    marks: dict[Path, str] = {}
    for path in below:
        mark = slug(path.relative_to(folder).as_posix())[:60] or "folder"
        same = (mark, *(f"{mark}-{i}" for i in range(2, len(below) + 2)))
        marks[path] = next(one for one in same if one not in marks.values())
    found = []
    for section in SECTIONS:
        moved = [
            _in_folder(section, path, path.relative_to(folder).as_posix(), mark)
            for path, mark in marks.items()
            if f"{section.file}.csv" in below[path]
        ]
        is_here = (folder / f"{section.file}.csv").exists()
        found += [*([section] if is_here or not moved else []), *moved]
    return tuple(found)


def _in_folder(section: Section, path: Path, place: str, mark: str) -> Section:
    """The section of results in another folder; its figures' names carry a mark."""

    def marked(data: Any, draw: Callable[[Any], Figure | None]) -> Figure | None:
        figure = draw(data)
        return None if figure is None else replace(figure, name=f"{mark}-{figure.name}")

    return replace(
        section,
        name=f"{mark}-{section.name}",
        title=f"{section.title}, in {place}",
        load=lambda _: section.load(path),
        entries=tuple(
            replace(entry, figure=partial(marked, draw=entry.figure)) for entry in section.entries
        ),
    )
