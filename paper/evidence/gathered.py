"""The runs of the plan, side by side, and one algorithm against another on what is complete.

Nothing is compared in part: a game counts when every planned run of both algorithms has ended on
it, and a claim is decided when every planned run of both has ended everywhere.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from momentum_rl.report.results import (
    GameScores,
    Results,
    areas_in_common,
    game_of,
    gathered,
    suite_of,
)
from momentum_rl.report.statistics import Comparison, compare
from momentum_rl.runs.files import ENDED
from momentum_rl.runs.finding import Run, Score
from momentum_rl.runs.sweep import slug
from paper.evidence.plan import Plan

Group = tuple[str, str]
"""A suite and a protocol: what is comparable."""
MAIN: Group = ("MinAtar", "minatar-published")
"""The protocol by which the paper's claims are judged."""
OPTIMISER: Group = ("MinAtar", "minatar")
SAC: tuple[Group, ...] = (("gymnax", "sac"), ("Gymnasium", "sac"))
RESAMPLES = 2_000
"""Bootstrap samples behind an interval, as the plan has it."""


@dataclass(frozen=True)
class Contrast:
    """An algorithm against another, on the games where all planned runs of both have ended."""

    label: str
    over: str
    score: Score
    games: tuple[str, ...]
    """Those on which the plan has both."""
    complete: tuple[str, ...]
    ended: int
    """Runs of both on these games; of the one that is not complete, if the other is."""
    planned: int
    comparison: Comparison | None
    """Over the complete games; None if there are none."""

    @property
    def is_complete(self) -> bool:
        """Whether nothing is missing."""
        return bool(self.games) and self.complete == self.games


@dataclass(frozen=True)
class Evidence:
    """Everything that has been run of a plan."""

    plan: Plan
    groups: Mapping[Group, Results]
    """By training score; ``greedy`` has the other."""
    ended: Mapping[str, int]
    """Runs that have ended, by matrix."""

    @cached_property
    def seeds(self) -> dict[Group, dict[tuple[str, str], int]]:
        """The number of planned seeds, by game and label."""
        planned: dict[Group, dict[tuple[str, str], int]] = {}
        for sweep in self.plan.matrices:
            for cell in sweep.cells:
                members = planned.setdefault(
                    (suite_of(cell.env), self.plan.protocol_of(sweep.name)), {}
                )
                key = game_of(cell.env), cell.label
                members[key] = members.get(key, 0) + len(cell.seeds)
        return planned

    def by(self, score: Score, group: Group = MAIN) -> Results | None:
        """The results of a group by a score, if there are any."""
        results = self.groups.get(group)
        return results if results is None or score == "training" else results.greedy

    def counted(
        self, game: str, label: str, score: Score = "greedy", group: Group = MAIN
    ) -> tuple[GameScores | None, int, int]:
        """The runs of a label on a game; how many of them have ended, and how many are planned."""
        results = self.by(score, group)
        cell = None if results is None else results.cells.get((game, label))
        ended = 0 if cell is None else int(cell.ended.sum())
        return cell, ended, self.seeds.get(group, {}).get((game, label), 0)

    def contrast(
        self,
        label: str,
        over: str,
        *,
        score: Score = "greedy",
        group: Group = MAIN,
    ) -> Contrast:
        """An algorithm against another, on the games on which both are planned."""
        planned = self.seeds.get(group, {})
        shared = tuple(game for game, one in planned if one == label and (game, over) in planned)
        ours, theirs = {}, {}
        counts = np.zeros((2, 2), int)  # that have ended and are planned, of either
        for game in shared:
            one, has, wants = self.counted(game, label, score, group)
            other, had, wanted = self.counted(game, over, score, group)
            counts += [(has, had), (wants, wanted)]
            if one is not None and other is not None and (has, had) == (wants, wanted):
                ours[game], theirs[game] = areas_in_common(one, other)
        lacking = counts[0] < counts[1]
        ended, due = counts[:, lacking if lacking.any() else ~lacking].sum(1).tolist()
        defined = any(areas.mean() != 0 for areas in theirs.values())
        comparison = compare(ours, theirs, resamples=RESAMPLES) if defined else None
        return Contrast(label, over, score, shared, tuple(ours), ended, due, comparison)


def gather(plan: Plan, runs: Sequence[Run]) -> tuple[Evidence, tuple[str, ...]]:
    """The runs of a plan, and what is odd: runs of no matrix of the plan are left out."""
    names = {sweep.name for sweep in plan.matrices}
    ended, odd, known = Counter[str](), [], dict[Group, list[Run]]()
    for run in runs:
        if run.sweep is None or run.sweep.name not in names or run.cell is None:
            odd.append(f"{run.path}: of no matrix of the plan; left out")
            continue
        ended[run.sweep.name] += run.state in ENDED
        group = suite_of(run.config.env), plan.protocol_of(run.sweep.name)
        known.setdefault(group, []).append(run)
    groups = {}
    for (suite, protocol), members in known.items():
        name = slug(f"{suite} {protocol}").lower()
        title = f"{suite}, protocol {protocol}"
        groups[suite, protocol], problems = gathered(name, title, suite, members)
        odd += problems
    return Evidence(plan, groups, ended), tuple(odd)
