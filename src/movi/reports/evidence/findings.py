"""What the plan asks beside the paper's claims: described with intervals, and not judged.

Whether our baselines are the published ones; and momentum in agents for which the paper announces
it and claims nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from movi.reports.deep.naming import game_of, suite_of
from movi.reports.deep.results import BASELINE, MOMENTUM
from movi.reports.drawing.numbers import percent, share, short
from movi.reports.evidence.claims import SAME, around, missing, told, verdicts
from movi.reports.evidence.gathered import MAIN, Contrast, Evidence, Group
from movi.reports.verdict import Finding, Verdict
from movi.runs.files import read_metrics

DECOUPLED, DOUBLE = "momentum-dqn β=0", "double-dqn"
CONTRASTS = (
    ("munchausen-dqn", BASELINE, "Munchausen-DQN over DQN"),
    ("momentum-munchausen-dqn", BASELINE, "Momentum-Munchausen-DQN over DQN"),
    ("momentum-munchausen-dqn", "munchausen-dqn", "Momentum-Munchausen-DQN over Munchausen-DQN"),
    ("deep-sql (printed)", BASELINE, "Deep SQL with the printed sign over DQN"),
    ("deep-dpp η=10", BASELINE, "Deep DPP with η = 10 over DQN"),
    (DECOUPLED, BASELINE, "Momentum-DQN with β = 0 (decoupled, no average) over DQN"),
    (MOMENTUM, DECOUPLED, "Momentum-DQN over Momentum-DQN with β = 0 (what the average adds)"),
    (DOUBLE, BASELINE, "Double DQN over DQN"),
    (MOMENTUM, DOUBLE, "Momentum-DQN over Double DQN"),
    ("c51", BASELINE, "C51 over DQN"),
    ("momentum-c51", "c51", "Momentum-C51 over C51"),
    ("momentum-c51", MOMENTUM, "Momentum-C51 over Momentum-DQN"),
)
"""Beside the claims, by the claims' protocol and score: label, over, in words."""
OPTIMISER: Group = ("MinAtar", "minatar")
SAC: tuple[Group, ...] = (("gymnax", "sac"), ("Gymnasium", "sac"))
SAC_CONTRASTS = (
    ("momentum-sac", "sac", "Momentum-SAC over SAC"),
    ("momentum-sac (regularised)", "momentum-sac", "Regularised Momentum-SAC over plain"),
)
GOOD_RETURN = -200.0
"""On Pendulum: a seed's mean return at the end of at least this is that of the published SAC."""
NARROW = 0.01
"""A support that clips a larger share of the probability than this was too narrow."""


def everything(evidence: Evidence) -> tuple[Verdict | Finding, ...]:
    """All that the plan asks, in its order."""
    return (
        is_published(evidence, BASELINE, "DQN"),
        *verdicts(evidence),
        is_published(evidence, "munchausen-dqn", "Munchausen-DQN"),
        *(one for one in _others(evidence) if one is not None),
    )


def _others(evidence: Evidence) -> Iterator[Finding | None]:
    for label, over, name in CONTRASTS:
        yield described(evidence.contrast(label, over), name)
    yield clipped(evidence)
    name = "Momentum-DQN over DQN with RMSProp and the Huber loss (preset minatar)"
    yield described(evidence.contrast(MOMENTUM, BASELINE, group=OPTIMISER), name)
    yield sac_is_published(evidence)
    for group in SAC:
        games = dict.fromkeys(game for game, _ in evidence.seeds.get(group, {}))
        for game in games:
            for label, over, name in SAC_CONTRASTS:
                contrast = evidence.contrast(
                    label, over, score="training", group=group, games=[game]
                )
                yield described(contrast, name)


def described(contrast: Contrast, name: str) -> Finding | None:
    """None if the plan does not have the two on a game."""
    if not contrast.games:
        return None
    about = f"{name}, on {', '.join(contrast.games)}, by the {contrast.score} score."
    if not contrast.is_complete or contrast.comparison is None:
        return Finding(about, f"Not decided yet, {missing(contrast)}. {told(contrast)}")
    mean = contrast.comparison.mean
    word = "No difference seen" if around(mean, 0) else "Helps" if mean.value > 0 else "Harms"
    return Finding(about, f"{word}. {told(contrast)}")


def clipped(evidence: Evidence) -> Finding | None:
    """How much of the probability of C51 was beyond its support; None without a run of it."""
    results = evidence.by("training")
    runs = () if results is None else results.runs
    own = [run for run in runs if run.config.algorithm in ("c51", "momentum-c51")]
    if not own:
        return None
    shares = [row.get("clipped_q") or 0.0 for run in own for row in read_metrics(run.path)]
    most = max(shares, default=0.0)
    verdict = "too narrow" if most > NARROW else "wide enough"
    return Finding(
        "Was the support of C51 (51 atoms on ±100) wide enough?",
        f"At most {share(most)} of the probability of an iteration was beyond it, in "
        f"{len(own)} runs: it was {verdict}.",
    )


def sac_is_published(evidence: Evidence) -> Finding | None:
    """Whether our SAC on Pendulum is the published one: a good return in every seed."""
    score = next((own for own in evidence.plan.published if own.label == "sac"), None)
    if score is None:
        return None
    group = suite_of(score.env), "sac"
    cell, ended, planned = evidence.counted(game_of(score.env), "sac", "training", group)
    about = (
        "Is our SAC the published SAC? The mean return of 100 episodes at the end, seed by seed, "
        f"beside {short(score.score)} ({score.source}); at least {short(GOOD_RETURN)} in every "
        "seed counts as the same."
    )
    if cell is None or ended < planned:
        return Finding(about, f"Not decided yet, {ended} of {planned} runs.")
    good = sum(own >= GOOD_RETURN for own in cell.evaluations)
    same = "The same" if good == planned else "Not the same"
    each = ", ".join(short(own) for own in cell.evaluations)
    return Finding(about, f"{same}: {good} of {planned} seeds. The returns: {each}.")


@dataclass(frozen=True)
class Beside:
    """Our score at the ends of runs, mean ± deviation over seeds, beside a published one."""

    game: str
    label: str
    ended: int
    planned: int
    published: float
    source: str
    ours: float | None = None
    """None while runs are missing."""
    deviation: float = 0.0

    @property
    def difference(self) -> float | None:
        """As a share of the published score."""
        return None if self.ours is None else (self.ours - self.published) / abs(self.published)


def beside_published(evidence: Evidence) -> list[Beside]:
    """Every published score on MinAtar with ours."""
    rows = []
    for one in evidence.plan.published:
        if suite_of(one.env) != MAIN[0]:
            continue
        game = game_of(one.env)
        cell, ended, planned = evidence.counted(game, one.label, "training")
        row = Beside(game, one.label, ended, planned, one.score, one.source)
        if cell is not None and ended == planned == len(cell.evaluations):
            scores = np.array(cell.evaluations)
            row = replace(row, ours=float(scores.mean()), deviation=float(scores.std()))
        rows.append(row)
    return rows


def is_published(evidence: Evidence, label: str, name: str) -> Finding:
    """Whether ours is the published algorithm: within ±25 % of its score, game by game."""
    rows = [row for row in beside_published(evidence) if row.label == label]
    same, each = 0, []
    for row in rows:
        if row.ours is not None and row.difference is not None:
            same += abs(row.difference) <= SAME
            gap = percent(row.difference)
            each.append(f"{row.game} {short(row.ours)} beside {short(row.published)} ({gap})")
    about = (
        f"Is our {name} the published {name}? The mean score of 100 greedy episodes at the end, "
        f"beside {'; '.join(dict.fromkeys(row.source for row in rows))}. Within ±25 % counts as "
        "the same."
    )
    rest = [f"{r.game} {r.ended} of {r.planned} runs" for r in rows if r.ours is None]
    seen = f"The same on {same} of {len(each)} games: {', '.join(each)}." if each else ""
    seen += f" Not decided yet: {', '.join(rest)}." if rest else ""
    return Finding(about, seen.strip())
