"""The tables of docs/evidence.md and README.md, each a function from the evidence to its rows."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import gt
from pathlib import Path
from typing import Any

import numpy as np

from momentum_rl.report.chapters import probability
from momentum_rl.report.intervals import bracketed
from momentum_rl.report.results import BASELINE, game_of, pretty, suite_of
from momentum_rl.report.style import percent, short
from momentum_rl.runs.files import read_metrics
from momentum_rl.runs.finding import Score
from paper.evidence.claims import (
    BETA_GAMES,
    BETAS,
    DECOUPLED,
    DOUBLE,
    HEURISTIC,
    MOMENTUM,
    SAME,
    by_beta,
    verdicts,
)
from paper.evidence.gathered import MAIN, OPTIMISER, SAC, Contrast, Evidence, Group

HERE = Path(__file__).parent
Rows = list[dict[str, str]]
"""Of the same columns."""
CONTRASTS = (
    (MOMENTUM, BASELINE),
    ("deep-sql", BASELINE),
    ("deep-dpp", BASELINE),
    (HEURISTIC, MOMENTUM),
    ("munchausen-dqn", BASELINE),
    (DECOUPLED, BASELINE),
    (MOMENTUM, DECOUPLED),
    (DOUBLE, BASELINE),
    (MOMENTUM, DOUBLE),
    ("c51", BASELINE),
    ("momentum-c51", "c51"),
    ("momentum-c51", MOMENTUM),
)
"""What the plan compares by the claims' protocol: label, over."""
SAC_CONTRASTS = (("momentum-sac", "sac"), ("momentum-sac (regularised)", "momentum-sac"))
GOOD_ENDS = {"sac": ("sac", -200.0, 0), "c51": ("c51-cleanrl", 475.0, 1)}
"""By label: the protocol, what a seed's mean return at the end must be at least to be that of the
published algorithm, and how many seeds may miss it."""
WATCHED = ("Asterix", "Asterix torch", "Breakout", "Freeway", "Seaquest", "SpaceInvaders")
DRAWN_STEPS = 10_000_000
"""What was measured alongside (a game, and from which weights); and the length of the runs whose
curves it is compared with."""
ANSWERS: Mapping[Group, Sequence[str]] = {
    MAIN: (BASELINE, DECOUPLED, MOMENTUM, "munchausen-dqn"),
    OPTIMISER: (BASELINE, MOMENTUM),
}
ANSWERED = "Asterix"
"""What the answer compares, by protocol; and the game that both protocols have."""
MUJOCO = (("Hopper-v5", 2), ("HalfCheetah-v5", 2))
"""What the peer was run on and with how many seeds, as the plan says."""


def answer(evidence: Evidence) -> Rows:
    """What helps, by which setting; and how large values become on the game of both settings."""
    game, rows = ANSWERED, []
    for group, labels in ANSWERS.items():
        for label in labels:
            contrast = evidence.contrast(label, BASELINE, group=group)
            cell, _, _ = evidence.counted(game, label, group=group)
            area = "" if cell is None else short(float(cell.areas.mean()))
            whole = contrast.is_complete and label != BASELINE
            better = [entry for entry in contrast.complete if _above(evidence, entry, label, group)]
            row = {"protocol": f"`{group[1]}`", "algorithm": _name(label)}
            row["improvement over DQN"] = _mean(contrast) if whole else ""
            row["all runs above all of DQN's on"] = (
                f"{len(better)} of {len(contrast.games)} games" if whole else ""
            )
            row[f"area on {game}"] = area
            row[f"largest mean of Q on {game}"] = _largest(evidence, game, label, group)
            rows.append(row)
    return rows


def _above(evidence: Evidence, game: str, label: str, group: Group) -> bool:
    """Whether the worst of the runs is better than the best of DQN's, by greedy area."""
    ours, theirs = (evidence.counted(game, entry, group=group)[0] for entry in (label, BASELINE))
    return ours is not None and theirs is not None and min(ours.areas) > max(theirs.areas)


def contrasts(evidence: Evidence, score: Score) -> Rows:
    """Improvements in area, game by game and in the mean, as far as complete."""
    games = evidence.contrast(MOMENTUM, BASELINE).games
    rows = []
    for label, over in CONTRASTS:
        contrast = evidence.contrast(label, over, score=score)
        row = {"improvement": f"{_name(label)} over {_name(over)}"}
        row |= {game: _gain(contrast, game) for game in games}
        row |= {"mean": _mean(contrast), "probability of improvement": ""}
        if contrast.is_complete and contrast.comparison is not None:
            row["probability of improvement"] = probability(contrast.comparison.probability)
        rows.append(row)
    return rows


def _name(label: str) -> str:
    return pretty(label, label.split()[0])


def _gain(contrast: Contrast, game: str) -> str:
    known = {} if contrast.comparison is None else contrast.comparison.games
    return bracketed(known[game]) if game in known else ""


def _mean(contrast: Contrast) -> str:
    if not contrast.is_complete or contrast.comparison is None:
        return ""
    return bracketed(contrast.comparison.mean)


def in_sac(evidence: Evidence) -> Rows:
    """What momentum makes of SAC: improvements in training area."""
    rows = []
    for group in SAC:
        pairs = [
            evidence.contrast(label, over, score="training", group=group)
            for label, over in SAC_CONTRASTS
        ]
        for game in pairs[0].games:
            gains = {f"{_name(c.label)} over {_name(c.over)}": _gain(c, game) for c in pairs}
            rows.append({"environment": f"{game} ({group[0]})", **gains})
    return rows


def fixed_beta(evidence: Evidence) -> Rows:
    """Mean greedy scores of a quarter of the run, by β."""
    return [
        {
            "game": game,
            "quarter": quarter.name,
            **{
                label.split()[1]: short(float(scores.mean()))
                for label, scores in zip(BETAS, quarter.scores)
            },
            "pooled standard error": short(quarter.error),
            "with β it": quarter.word,
        }
        for game in BETA_GAMES
        for quarter in by_beta(evidence, game) or ()
    ]


def at_the_ends(evidence: Evidence) -> Rows:
    """Whether ours is the published algorithm where a score at the end says so, seed by seed."""
    rows = []
    for score in evidence.plan.published:
        if suite_of(score.env) == MAIN[0] or score.label not in GOOD_ENDS:
            continue
        protocol, good_from, may_miss = GOOD_ENDS[score.label]
        group = suite_of(score.env), protocol
        cell, _, planned = evidence.counted(game_of(score.env), score.label, "training", group)
        ours = () if cell is None else cell.evaluations
        good = sum(mean >= good_from for mean in ours)
        same = "yes" if good >= planned - may_miss else "no"
        rows.append(
            {
                "environment": score.env,
                "algorithm": _name(score.label),
                "published": f"{short(score.score)} ({score.source})",
                "the same if": f"{short(good_from)} in {planned - may_miss} of {planned} seeds",
                "mean returns, by seed": _by_seed(ours, planned),
                "the same": same if len(ours) == planned else "",
            }
        )
    return rows


def judged(evidence: Evidence) -> Rows:
    """The paper's claims, judged."""
    return [{"claim": v.claim, "seen": v.seen, "verdict": v.word} for v in verdicts(evidence)]


def pairs(evidence: Evidence) -> Rows:
    """In how many pairs of runs with the same seed the one with the average is above the other."""
    scores: tuple[Score, ...] = ("greedy", "training")
    rows = []
    for score in scores:
        won, played, row = 0, 0, {"area by": f"{score} score"}
        for game in evidence.contrast(MOMENTUM, DECOUPLED).games:
            cells = [evidence.counted(game, entry, score)[0] for entry in (MOMENTUM, DECOUPLED)]
            ours, theirs = (() if cell is None else cell.areas for cell in cells)
            above = sum(map(gt, ours, theirs))
            won, played = won + above, played + len(ours)
            row[game] = f"{above} of {len(ours)}"
        rows.append({**row, "all": f"{won} of {played}"})
    return rows


def alongside(evidence: Evidence) -> Rows:
    """DQN measured as the study measures: games played alongside the training."""
    rows = []
    published = {
        game_of(entry.env): entry for entry in evidence.plan.published if entry.label == BASELINE
    }
    for watched in WATCHED:
        game, _, torch = watched.partition(" ")
        theirs = published[game]
        files = sorted((HERE / "alongside" / watched.replace(" ", "-")).glob("seed-*.json"))
        scores = [as_drawn(json.loads(file.read_text())["rows"]) for file in files]
        ours = sum(scores) / len(scores)
        share = ours / theirs.score - 1
        rows.append(
            {
                "game": game,
                "weights": "PyTorch's" if torch else "ours",
                "published": f"{theirs.score:g}",
                "as the study draws it, by seed": ", ".join(f"{one:.3g}" for one in scores),
                "mean": f"{ours:.3g}",
                "difference": percent(share),
                "within ±25 %": "yes" if abs(share) <= SAME else "no",
            }
        )
    return rows


def original(evidence: Evidence) -> Rows:
    """The zoo's agents in the games of MinAtar's authors (original.py), beside their cards."""
    rows = []
    for place, returns in json.loads((HERE / "original.json").read_text())["returns"].items():
        card = json.loads((HERE.parent / "zoo" / place / "card.json").read_text())
        mean, error = np.mean(returns), np.std(returns, ddof=1) / len(returns) ** 0.5
        theirs = card["deviation"] / card["episodes"] ** 0.5
        errors = (mean - card["score"]) / np.hypot(error, theirs)
        rows.append(
            {
                "agent": place.removeprefix("MinAtar-"),
                "in gymnax's game": f"{card['score']:.2f} ± {theirs:.2f}",
                "in the original": f"{mean:.2f} ± {error:.2f}",
                "difference": percent(mean / card["score"] - 1),
                "in standard errors": f"{errors:+.1f}".replace("-", "−"),
            }
        )
    return rows


def values(evidence: Evidence) -> Rows:
    """The largest mean of Q on minibatches in an iteration, and the best score, over seeds."""
    rows = []
    for game in evidence.contrast(MOMENTUM, BASELINE).games:
        dqn, _, _ = evidence.counted(game, BASELINE)
        best = "" if dqn is None else short(float(dqn.scores.max(1).mean()))
        row = {"game": game, "best greedy score of DQN": best}
        for label in (BASELINE, DOUBLE, DECOUPLED, MOMENTUM):
            cell, ended, planned = evidence.counted(game, label)
            whole = cell is not None and ended == planned
            name = f"Q of {_name(label)}"
            row[name] = _largest(evidence, game, label) if whole else ""
        rows.append(row)
    return rows


def _largest(evidence: Evidence, game: str, label: str, group: Group = MAIN) -> str:
    results = evidence.by("training", group)
    entry = [
        max(row["mean_q"] or 0.0 for row in read_metrics(run.path))
        for run in (() if results is None else results.runs)
        if (game_of(run.config.env), run.label) == (game, label)
    ]
    return short(sum(entry) / len(entry)) if entry else ""


def peer(evidence: Evidence) -> Rows:
    """SAC on MuJoCo beside stable-baselines3's: the greedy scores at the ends, seed by seed."""
    rows = []
    for env, seeds in MUJOCO:
        cell, _, _ = evidence.counted(env, "sac", "training", SAC[1])
        ours = () if cell is None else cell.evaluations
        files = sorted((HERE / "peers" / env).glob("seed-*.json"))
        theirs = [json.loads(file.read_text())["rows"][-1]["mean"] for file in files]
        difference = ""
        if len(ours) == len(theirs) == seeds:
            difference = percent((sum(ours) - sum(theirs)) / abs(sum(theirs)))
        columns = [_by_seed(entry, seeds) for entry in (ours, theirs)]
        names = "environment", "SAC, by seed", "stable-baselines3, by seed", "difference of means"
        rows.append(dict(zip(names, (env, *columns, difference))))
    return rows


def _by_seed(scores: Sequence[float], seeds: int) -> str:
    each = ", ".join(map(short, scores))
    return each if len(scores) == seeds else f"{len(scores)} of {seeds} runs: {each}".rstrip(": ")


def as_drawn(rows: Sequence[Mapping[str, Any]]) -> float:
    """The last point of a curve as the study draws it.

    It samples 500 games of a run of 10,000,000 steps and draws means of 50 in a row: of a tenth of
    all games. How many there were is not published; here they go on as often as in the last rows.
    """
    rate = sum(row["episodes"] for row in rows[-2:]) / (rows[-1]["step"] - rows[-3]["step"])
    games = sum(row["episodes"] for row in rows) + rate * (DRAWN_STEPS - rows[-1]["step"])
    window, total, taken = games / 10, 0.0, 0.0
    for row in reversed(rows):
        entry = min(row["episodes"], window - taken)
        total, taken = total + entry * (row["score"] or 0.0), taken + entry
    return total / taken


BLOCKS: Mapping[str, Callable[[Evidence], Rows]] = {
    "answer": answer,
    "verdicts": judged,
    "greedy": partial(contrasts, score="greedy"),
    "training": partial(contrasts, score="training"),
    "beta": fixed_beta,
    "sac": in_sac,
    "ends": at_the_ends,
    "alongside": alongside,
    "original": original,
    "peer": peer,
    "values": values,
    "pairs": pairs,
}
"""By the name between the markers."""
