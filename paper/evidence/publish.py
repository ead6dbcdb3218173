"""Makes what the repository shows of the evidence, from the committed runs: `make evidence`.

python -m paper.evidence.publish PAGE writes the figures (PNG, SVG, and their numbers as CSV) into
paper/evidence/figures, the page on all of it to PAGE, and the numbers of docs/evidence.md and
README.md between their markers:

    <!-- evidence:NAME -->
    the table NAME of blocks.py
    <!-- /evidence -->
"""

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from momentum_rl.plumbing.files import write_aside
from momentum_rl.report.chapters import chapter_of
from momentum_rl.report.page import Chapter, Table, page_to_write, write_page
from momentum_rl.runs.finding import Score, find_runs
from paper.evidence import claims
from paper.evidence.blocks import BLOCKS, contrasts
from paper.evidence.gathered import Evidence, gather
from paper.evidence.plan import PLAN_FILE, read_plan
from paper.evidence.plates import drawn
from paper.verdict import said

HERE = Path(__file__).parent
FIGURES = HERE / "figures"
PAGES = (HERE.parents[1] / "docs" / "evidence.md", HERE.parents[1] / "README.md")
FORMATS = ("png", "svg", "csv")
SCALE = 1.5
"""Pixels of a committed PNG by point of the figure: every version of it stays in the history."""
MARKED = re.compile(r"(<!-- evidence:([a-z-]+) -->\n).*?(<!-- /evidence -->)", re.DOTALL)


def read_evidence(folder: Path = HERE) -> Evidence:
    """The committed runs of the plan."""
    evidence, odd = gather(read_plan(folder), find_runs(folder).runs)
    for line in odd:
        print(line)
    return evidence


def _table(rows: Sequence[Mapping[str, str]]) -> str:
    """Rows of the same columns in Markdown."""
    lines = [list(rows[0]), ["---"] * len(rows[0]), *(list(row.values()) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def filled(text: str, evidence: Evidence) -> str:
    """A page with what is between its markers made anew."""
    return MARKED.sub(lambda m: f"{m[1]}{_table(BLOCKS[m[2]](evidence))}\n{m[3]}", text)


INTRO = (
    "What is compared, by which score, and what counts as confirmed was fixed before the runs "
    "(PLAN.md). A game counts when every planned run has ended on it; a claim is decided when "
    "every planned run that it is about has ended. Intervals hold 95 % of a bootstrap that draws "
    "runs again within each game. Training and greedy scores are never mixed. The protocol by "
    "which claims are judged has a baseline that diverges; PLAN-2.md has the deciding experiment."
)


def chapters(evidence: Evidence) -> list[Chapter]:
    """What was asked and seen, and every group of runs of the plan by itself."""
    figures = [figure for draw in drawn() if (figure := draw(evidence)) is not None]
    progress = [
        {
            "matrix": entry.name,
            "runs that have ended": f"{evidence.ended[entry.name]} of {entry.runs}",
        }
        for entry in evidence.plan.matrices
    ]
    scores: tuple[Score, ...] = ("greedy", "training")
    front = Chapter(
        "evidence",
        evidence.plan.title,
        INTRO,
        (
            said(claims.verdicts(evidence)),
            *figures,
            *(Table(f"Improvements, {one} score", contrasts(evidence, one)) for one in scores),
            Table("How far the matrices are", progress),
        ),
        files=(HERE / PLAN_FILE,),
    )
    return [front, *(chapter_of(group, HERE) for group in evidence.groups.values())]


def publish(out: Path) -> None:
    """Writes the figures, the page and the pages' numbers."""
    file = page_to_write(HERE, out, ("svg", "csv"))
    evidence = read_evidence()
    shown = chapters(evidence)
    written = {
        path for figure in shown[0].figures for path in figure.save(FIGURES, FORMATS, scale=SCALE)
    }
    for old in set(FIGURES.iterdir()) - written:
        old.unlink()
    lead = "What was planned, what these runs show, and the verdict by the plan's rules."
    write_page(file, evidence.plan.title, lead, shown, ("svg", "csv"))
    for page in PAGES:
        write_aside(page, filled(page.read_text(encoding="utf-8"), evidence))
    print(f"{len(written)} files in {FIGURES.name}; numbers in {', '.join(p.name for p in PAGES)}")
    print(f"report       {file}")


if __name__ == "__main__":
    publish(Path(sys.argv[1]))
