"""Makes what the repository shows of the evidence, from the committed runs: `make evidence`.

python -m paper.evidence.publish PAGE writes the figures (PNG, SVG, and their numbers as CSV) into
paper/evidence/figures, the page on all of it to PAGE, and the numbers of docs/evidence.md and
README.md between their markers:

    <!-- evidence:NAME -->
    what the block NAME below makes
    <!-- /evidence -->

No number about these runs stands outside of them.
"""

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from operator import gt
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import ttest_ind

from momentum_rl.plumbing.files import write_aside
from momentum_rl.report.chapters import chapter_of
from momentum_rl.report.intervals import bracketed
from momentum_rl.report.page import Chapter, Table, page_to_write, write_page
from momentum_rl.report.results import BASELINE, game_of, pretty
from momentum_rl.report.statistics import Estimate
from momentum_rl.report.style import percent, short
from momentum_rl.runs.files import read_metrics
from momentum_rl.runs.finding import Score, find_runs
from paper.evidence import claims
from paper.evidence.claims import MOMENTUM
from paper.evidence.findings import DECOUPLED, DOUBLE, OPTIMISER, everything
from paper.evidence.gathered import MAIN, Contrast, Evidence, Group, gather
from paper.evidence.plan import PLAN_FILE, read_plan
from paper.evidence.plates import drawn
from paper.verdict import Finding, said

HERE = Path(__file__).parent
FIGURES = HERE / "figures"
PAGES = (HERE.parents[1] / "docs" / "evidence.md", HERE.parents[1] / "README.md")
WATCHED = ("Asterix", "Asterix torch", "Breakout", "Freeway", "Seaquest", "SpaceInvaders")
SEEDS, DRAWN_STEPS = 3, 10_000_000
"""What was measured alongside (a game, and from which weights), with how many seeds; and
the length of the runs whose curves it is compared with."""
ANSWERS: Mapping[Group, Sequence[str]] = {
    MAIN: (BASELINE, DECOUPLED, MOMENTUM, "munchausen-dqn"),
    OPTIMISER: (BASELINE, MOMENTUM),
}
ANSWERED = "Asterix"
"""What the answer compares, by protocol; and the game that both protocols have."""
MUJOCO, SAC = (("Hopper-v5", 2), ("HalfCheetah-v5", 2)), ("Gymnasium", "sac")
"""What the peer was run on and with how many seeds, as the plan says; our runs of it."""
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


def answer(evidence: Evidence) -> str:
    """What helps, by which setting; and how large values become on the game of both settings."""
    game, rows = ANSWERED, []
    for group, labels in ANSWERS.items():
        for label in labels:
            contrast = evidence.contrast(label, BASELINE, group=group)
            cell, _, _ = evidence.counted(game, label, group=group)
            area = "" if cell is None else short(float(cell.areas.mean()))
            whole = contrast.is_complete and label != BASELINE
            better = [entry for entry in contrast.complete if _above(evidence, entry, label, group)]
            row = {"protocol": f"`{group[1]}`", "algorithm": pretty(label, label.split()[0])}
            row["improvement over DQN"] = _gain(contrast) if whole else ""
            row["all runs above all of DQN's on"] = (
                f"{len(better)} of {len(contrast.games)} games" if whole else ""
            )
            row[f"area on {game}"] = area
            row[f"largest mean of Q on {game}"] = _largest(evidence, game, label, group)
            rows.append(row)
    return _table(rows)


def _above(evidence: Evidence, game: str, label: str, group: Group) -> bool:
    """Whether the worst of the runs is better than the best of DQN's, by greedy area."""
    ours, theirs = (evidence.counted(game, entry, group=group)[0] for entry in (label, BASELINE))
    return ours is not None and theirs is not None and min(ours.areas) > max(theirs.areas)


def average(evidence: Evidence) -> str:
    """What decoupling does and what the average adds, game by game."""
    asked = {
        "β = 0 over DQN": (DECOUPLED, BASELINE),
        "Momentum-DQN over β = 0": (MOMENTUM, DECOUPLED),
        "Double DQN over DQN": (DOUBLE, BASELINE),
        "Momentum-DQN over Double DQN": (MOMENTUM, DOUBLE),
    }
    known = {name: evidence.contrast(*pair) for name, pair in asked.items()}
    rows = []
    for game in evidence.contrast(MOMENTUM, BASELINE).games:
        gains = {n: {} if c.comparison is None else c.comparison.games for n, c in known.items()}
        rows.append({"game": game, **{n: _estimate(entry.get(game)) for n, entry in gains.items()}})
    whole = {n: _gain(c) if c.is_complete else "" for n, c in known.items()}
    rows.append({"game": "mean", **whole})
    return _table(rows)


def pairs(evidence: Evidence) -> str:
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
    return _table(rows)


def _gain(contrast: Contrast) -> str:
    return bracketed(contrast.comparison.mean) if contrast.comparison is not None else "not known"


def verdicts(evidence: Evidence) -> str:
    """The paper's claims, judged."""
    judged = claims.verdicts(evidence)
    return _table([{"claim": v.claim, "seen": v.seen, "verdict": v.word} for v in judged])


def findings(evidence: Evidence) -> str:
    """What is described and not judged."""
    judged = [one for one in everything(evidence) if isinstance(one, Finding)]
    return _table([{"asked": one.about, "seen": one.seen} for one in judged])


def games(evidence: Evidence) -> str:
    """Momentum-DQN over DQN, game by game."""
    greedy = evidence.contrast(MOMENTUM, BASELINE)
    training = evidence.contrast(MOMENTUM, BASELINE, score="training")
    rows = []
    for game in greedy.games:
        _, dqn, planned = evidence.counted(game, BASELINE)
        _, momentum, wanted = evidence.counted(game, MOMENTUM)
        row = {"game": game, "runs": f"{dqn} of {planned} and {momentum} of {wanted}"}
        for entry in (greedy, training):
            known = {} if entry.comparison is None else entry.comparison.games
            row[f"improvement, {entry.score} score"] = _estimate(known.get(game))
            cells = [evidence.counted(game, one, entry.score)[0] for one in (MOMENTUM, BASELINE)]
            areas = [cell.areas for cell in cells if cell is not None]
            row[f"p, {entry.score} score"] = (
                f"{ttest_ind(*areas, equal_var=False).pvalue:.2g}" if game in known else ""
            )
        rows.append(row)
    return _table(rows)


def _estimate(estimate: Estimate | None) -> str:
    return "" if estimate is None else bracketed(estimate)


def alongside(evidence: Evidence) -> str:
    """DQN measured as the study measures: games played alongside the training."""
    rows = []
    published = {
        game_of(entry.env): entry for entry in evidence.plan.published if entry.label == BASELINE
    }
    for watched in WATCHED:
        game, _, torch = watched.partition(" ")
        theirs = published[game]
        files = sorted((HERE / "alongside" / watched.replace(" ", "-")).glob("seed-*.json"))
        row = {"game": game, "weights": "PyTorch's" if torch else "ours"}
        row |= {"runs": f"{len(files)} of {SEEDS}", "published": f"{theirs.score:g}"}
        if len(files) == SEEDS:
            scores = [as_drawn(json.loads(file.read_text())["rows"]) for file in files]
            ours = sum(scores) / SEEDS
            share = ours / theirs.score - 1
            row["as the study draws it, by seed"] = ", ".join(f"{one:.3g}" for one in scores)
            row["mean"] = f"{ours:.3g}"
            row["difference"] = percent(share)
            row["within ±25 %"] = "yes" if abs(share) <= claims.SAME else "no"
        rows.append(row)
    columns = max(rows, key=len)
    return _table([{name: row.get(name, "") for name in columns} for row in rows])


def original(evidence: Evidence) -> str:
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
    return _table(rows)


def values(evidence: Evidence) -> str:
    """The largest mean of Q on minibatches in an iteration, and the best score, over seeds."""
    rows = []
    for game in evidence.contrast(MOMENTUM, BASELINE).games:
        dqn, _, _ = evidence.counted(game, BASELINE)
        best = "" if dqn is None else short(float(dqn.scores.max(1).mean()))
        row = {"game": game, "best greedy score of DQN": best}
        for label in (BASELINE, DOUBLE, DECOUPLED, MOMENTUM):
            cell, ended, planned = evidence.counted(game, label)
            whole = cell is not None and ended == planned
            name = f"Q of {pretty(label, label.split()[0])}"
            row[name] = _largest(evidence, game, label) if whole else ""
        rows.append(row)
    return _table(rows)


def _largest(evidence: Evidence, game: str, label: str, group: Group = MAIN) -> str:
    results = evidence.by("training", group)
    entry = [
        max(row["mean_q"] or 0.0 for row in read_metrics(run.path))
        for run in (() if results is None else results.runs)
        if (game_of(run.config.env), run.label) == (game, label)
    ]
    return short(sum(entry) / len(entry)) if entry else ""


def peer(evidence: Evidence) -> str:
    """SAC on MuJoCo beside stable-baselines3's: the greedy scores at the ends, seed by seed."""
    rows = []
    for env, seeds in MUJOCO:
        cell, _, _ = evidence.counted(env, "sac", "training", SAC)
        ours = () if cell is None else cell.evaluations
        files = sorted((HERE / "peers" / env).glob("seed-*.json"))
        theirs = [json.loads(file.read_text())["rows"][-1]["mean"] for file in files]
        difference = ""
        if len(ours) == len(theirs) == seeds:
            difference = percent((sum(ours) - sum(theirs)) / abs(sum(theirs)))
        columns = [_by_seed(entry, seeds) for entry in (ours, theirs)]
        names = "environment", "SAC, by seed", "stable-baselines3, by seed", "difference of means"
        rows.append(dict(zip(names, (env, *columns, difference))))
    return _table(rows)


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


BLOCKS: Mapping[str, Callable[[Evidence], str]] = {
    "answer": answer,
    "verdicts": verdicts,
    "findings": findings,
    "games": games,
    "alongside": alongside,
    "original": original,
    "peer": peer,
    "values": values,
    "average": average,
    "pairs": pairs,
}


def _table(rows: Sequence[Mapping[str, str]]) -> str:
    """Rows of the same columns in Markdown."""
    lines = [list(rows[0]), ["---"] * len(rows[0]), *(list(row.values()) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def filled(text: str, evidence: Evidence) -> str:
    """A page with what is between its markers made anew."""
    return MARKED.sub(lambda m: f"{m[1]}{BLOCKS[m[2]](evidence)}\n{m[3]}", text)


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
    front = Chapter(
        "evidence",
        evidence.plan.title,
        INTRO,
        (said(everything(evidence)), *figures, Table("How far the matrices are", progress)),
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
