"""The paper's claims on deep agents, judged by the rules that the plan fixed before the runs.

C6 Momentum-DQN outperforms DQN; C7 Deep SQL and Deep DPP do not, and Deep DPP fails; C8 a higher
fixed β learns more slowly at first and ends higher; C9 the heuristic schedule of β does as well as
the other one. The greedy score decides.
"""

import math
from dataclasses import replace
from typing import NamedTuple

from momentum_rl.report.chapters import probability
from momentum_rl.report.intervals import bracketed
from momentum_rl.report.results import BASELINE
from momentum_rl.report.statistics import Estimate
from momentum_rl.report.style import Array, percent
from paper.claims.atari import count
from paper.evidence.gathered import Contrast, Evidence
from paper.verdict import Verdict

MOMENTUM, DECOUPLED, DOUBLE = "momentum-dqn", "momentum-dqn β=0", "double-dqn"
FAILS = -0.5
"""Deep DPP fails if the interval of its mean improvement lies below this, or a run diverges."""
SAME = 0.25
"""Scores and schedules within ± this share count as the same."""
BETA_GAMES = ("Asterix", "Breakout")
BETAS = ("momentum-dqn β=0.1", "momentum-dqn β=0.5", "momentum-dqn β=0.9")
HEURISTIC = "momentum-dqn (heuristic)"
CONTRADICTED = "Contradicted"
"""By data that decide against a claim, as the plan has it; failing is only not confirmed."""
LIMITED = "one protocol, its baseline diverges"
"""What none of these verdicts is without (PLAN-2.md)."""
WHERE = "judged here on MinAtar at 1,000,000 steps, by the area under the greedy curve"


def verdicts(evidence: Evidence) -> tuple[Verdict, ...]:
    """The claims, in the plan's order."""
    judged = (
        momentum_helps(evidence),
        does_not_improve(evidence, "deep-sql", "Deep SQL"),
        does_not_improve(evidence, "deep-dpp", "Deep DPP"),
        fails(evidence),
        slower_and_higher(evidence),
        heuristic_does_as_well(evidence),
    )
    return tuple(replace(verdict, but=LIMITED) for verdict in judged)


def missing(contrast: Contrast) -> str:
    """How many runs there are, while some are missing."""
    return "" if contrast.is_complete else f"{contrast.ended} of {contrast.planned} runs"


def momentum_helps(evidence: Evidence) -> Verdict:
    """C6: confirmed if the interval of the mean improvement lies above 0, contradicted if below."""
    contrast = evidence.contrast(MOMENTUM, BASELINE)
    mean = _mean(contrast)
    decided = None if mean is None or around(mean, 0.0) else mean.value > 0
    claim = (
        "C6. “Momentum-DQN outperforms DQN on 16 games out of 20, with an average normalized "
        f"improvement of 45%” (Section 7.2, fig:auc); {WHERE}."
    )
    return Verdict(claim, told(contrast), decided, missing(contrast), CONTRADICTED)


def does_not_improve(evidence: Evidence, label: str, name: str) -> Verdict:
    """C7: confirmed if the interval ends at 0 or below it, contradicted if it begins above 0."""
    contrast = evidence.contrast(label, BASELINE)
    mean, decided = _mean(contrast), None
    if mean is not None and mean.low is not None and mean.high is not None:
        decided = True if mean.high <= 0 else False if mean.low > 0 else None
    sign = ""
    if label == "deep-sql":
        sign = ", with Speedy Q-learning's own sign (the appendix prints the other one: see below)"
    claim = (
        f"C7. “both DSQL and DDPP underperform DQN on most of the games” (Section 7.2): {name} "
        f"does not improve on DQN; {WHERE}{sign}."
    )
    return Verdict(claim, told(contrast), decided, missing(contrast), CONTRADICTED)


def fails(evidence: Evidence) -> Verdict:
    """C7: Deep DPP fails if a run diverges or the interval lies below −50 %."""
    contrast = evidence.contrast("deep-dpp", BASELINE)
    results = evidence.by("training")
    diverged = 0 if results is None else count(results, "deep-dpp")[1]
    mean, decided = _mean(contrast), None
    if diverged:
        decided = True
    elif mean is not None and mean.high is not None:
        decided = mean.high < FAILS
    claim = (
        "C7. Deep DPP: “the algorithms fails on most of the games” (Section 7.2); judged here on "
        "MinAtar at 1,000,000 steps: at least one run diverges, or the interval of the mean "
        f"improvement lies below {percent(FAILS)}."
    )
    seen = f"{diverged} of its runs diverged. {told(contrast)}"
    return Verdict(claim, seen, decided, "" if decided else missing(contrast))


def slower_and_higher(evidence: Evidence) -> Verdict:
    """C8: from β = 0.1 to 0.9 the first quarter falls and the last one rises, each by more than
    the pooled standard error of the two; contradicted if either is reversed by more.
    """
    claim = (
        "C8. “We observe for Asterix how a higher β […] slows down learning in the beginning, but "
        "eventually leads to a much higher performance” (app:atari-mixt); judged here on "
        "MinAtar's Asterix at 1,000,000 steps, by the mean greedy score of the first and of the "
        "last quarter of the run."
    )
    quarters = by_beta(evidence, BETA_GAMES[0])
    if quarters is None:
        counts = [evidence.counted(BETA_GAMES[0], label)[1:] for label in BETAS]
        ended, planned = map(sum, zip(*counts))
        waiting = f"{ended} of {planned} runs"
        return Verdict(claim, f"{waiting} have ended.", None, waiting, CONTRADICTED)
    first, last = (quarter.word for quarter in quarters)
    seen = f"As β rises from 0.1 to 0.9, the first quarter {first} and the last quarter {last}."
    decided = None
    if (first, last) == ("falls", "rises"):
        decided = True
    elif first == "rises" or last == "falls":
        decided = False
    return Verdict(claim, seen, decided, "", CONTRADICTED)


class Quarter(NamedTuple):
    """The mean greedy score in the first or the last quarter of the runs: by β, of each seed."""

    name: str
    scores: list[Array]

    @property
    def error(self) -> float:
        """The pooled standard error of the difference between the largest β and the smallest."""
        one, other = self.scores[0], self.scores[-1]
        n, m = one.size, other.size
        squares = float(((one - one.mean()) ** 2).sum() + ((other - other.mean()) ** 2).sum())
        return math.sqrt(squares / (n + m - 2) * (1 / n + 1 / m))

    @property
    def word(self) -> str:
        """What the score does with β: it rises or falls if by more than the error."""
        difference = float(self.scores[-1].mean() - self.scores[0].mean())
        if abs(difference) <= self.error:
            return "stays within the error"
        return "rises" if difference > 0 else "falls"


def by_beta(evidence: Evidence, game: str) -> tuple[Quarter, Quarter] | None:
    """A fixed β on a game: its first and last quarter; None while runs are missing."""
    cells = []
    for label in BETAS:
        cell, ended, planned = evidence.counted(game, label)
        if cell is None or ended < planned:
            return None
        cells.append(cell)
    n = cells[0].scores.shape[1] // 4
    first = Quarter("first", [cell.scores[:, :n].mean(1) for cell in cells])
    return first, Quarter("last", [cell.scores[:, -n:].mean(1) for cell in cells])


def heuristic_does_as_well(evidence: Evidence) -> Verdict:
    """C9: confirmed if the interval contains 0 and lies within ±25 %, contradicted if it does not
    contain 0.
    """
    contrast = evidence.contrast(HEURISTIC, MOMENTUM)
    mean, decided = _mean(contrast), None
    if mean is not None and mean.low is not None and mean.high is not None:
        within = mean.low >= -SAME and mean.high <= SAME
        decided = None if around(mean, 0.0) and not within else around(mean, 0.0)
    claim = (
        "C9. “We tested similar schedules that gave almost the same performance as the one "
        "presented here” (app:atari-mixt, of a heuristic schedule of β); judged here on MinAtar's "
        "Asterix and Breakout at 1,000,000 steps, by the area under the greedy curve: its "
        "improvement has an interval that contains 0 and lies within ±25 %."
    )
    return Verdict(claim, told(contrast), decided, missing(contrast), CONTRADICTED)


def _mean(contrast: Contrast) -> Estimate | None:
    """The mean improvement, if every run is there to decide."""
    if not contrast.is_complete or contrast.comparison is None:
        return None
    return contrast.comparison.mean


def around(estimate: Estimate, value: float) -> bool:
    """Whether the interval contains a value; without one nothing can be said against it."""
    if estimate.low is None or estimate.high is None:
        return True
    return estimate.low <= value <= estimate.high


def told(contrast: Contrast) -> str:
    """A contrast in words; its games are in the tables."""
    result = contrast.comparison
    if result is None:
        return f"{contrast.ended} of {contrast.planned} runs have ended, no game is complete."
    begins = f"By the {contrast.score} score"
    if not contrast.is_complete:
        count = f"{contrast.ended} of {contrast.planned} runs"
        begins += f", so far ({count}; complete: {', '.join(contrast.complete)})"
    return (
        f"{begins}: mean improvement {bracketed(result.mean)}; probability of improvement "
        f"{probability(result.probability)}."
    )
