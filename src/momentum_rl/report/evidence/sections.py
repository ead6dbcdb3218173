"""The evidence page: what was asked and seen, and every group of runs of the plan by itself."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from momentum_rl.report.deep.references import Reference
from momentum_rl.report.deep.sections import section_of
from momentum_rl.report.drawing.figure import Figure
from momentum_rl.report.evidence import figures
from momentum_rl.report.evidence.findings import SAC, everything
from momentum_rl.report.evidence.gathered import Evidence, gather
from momentum_rl.report.evidence.plan import PLAN_FILE, read_plan
from momentum_rl.report.sections import Entry, Loaded, PageTable, Section
from momentum_rl.runs.finding import find_runs

INTRO = (
    "What is compared, by which score, and what counts as confirmed was fixed before the runs "
    "(PLAN.md). A game counts when every planned run has ended on it; a claim is decided when "
    "every planned run that it is about has ended. Intervals hold 95 % of a bootstrap that draws "
    "runs again within each game. Training and greedy scores are never mixed. The protocol by "
    "which claims are judged has a baseline that diverges; PLAN-2.md has the deciding experiment."
)


def evidence_sections(
    folder: Path, reference: Reference | None = None, game: str | None = None
) -> tuple[tuple[Section, ...], tuple[str, ...]]:
    """The sections of a folder with a plan; and what is wrong there."""
    found = find_runs(folder)
    evidence, odd = gather(read_plan(folder), found.runs, reference)
    problems = (*found.problems, *(line.replace(f"{folder}/", "") for line in odd))
    front = Section(
        name="evidence",
        title=evidence.plan.title,
        intro=INTRO,
        made_by="movi sweep",
        load=lambda directory: _loaded(evidence, directory),
        entries=tuple(map(Entry, drawn())),
    )
    groups = (section_of(own, game=game, judged=False) for own in evidence.groups.values())
    return (front, *groups), problems


def drawn() -> tuple[Callable[[Evidence], Figure | None], ...]:
    """The front section's figures; these are the ones that are kept beside the plan."""
    return (
        figures.does_it_help,
        partial(figures.improvements, score="greedy"),
        partial(figures.overall, score="greedy"),
        partial(figures.does_it_help, score="training"),
        partial(figures.improvements, score="training"),
        partial(figures.overall, score="training"),
        figures.is_it_the_average,
        figures.beta,
        figures.in_c51,
        *(partial(figures.in_sac, group=group) for group in SAC),
    )


def _loaded(evidence: Evidence, directory: Path) -> Loaded:
    return Loaded(
        evidence,
        (directory / PLAN_FILE,),
        tables=(PageTable("How far the matrices are", progress_rows(evidence)),),
        said=everything(evidence),
    )


def progress_rows(evidence: Evidence) -> list[dict[str, str]]:
    """How many runs of each matrix have ended."""
    return [
        {
            "matrix": sweep.name,
            "runs that have ended": f"{evidence.ended.get(sweep.name, 0)} of {sweep.runs}",
        }
        for sweep in evidence.plan.matrices
    ]
