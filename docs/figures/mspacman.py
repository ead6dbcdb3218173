"""Draws docs/figures/mspacman.svg: DQN on Ms. Pac-Man beside the published scores of Dopamine.

    python docs/figures/mspacman.py RUN REFERENCE [NOTE]

RUN is the run directory, finished or not; REFERENCE a file of Dopamine's published scores, one for
each 250,000 steps of each of five runs. Beside the figure, mspacman.json says what made it, and
has the note.
"""

import csv
import json
import math
import sys
from pathlib import Path

import altair as alt

from momentum_rl.runs.files import read_config, read_metrics

HERE = Path(__file__).parent
ITERATION = 250_000
VARIANT = "tf_rmsprop_huber"
OURS, THEIRS = "movi, one seed", "Dopamine, five seeds"


def whole_iterations(rows: list[dict]) -> list[dict]:
    """The mean score of the games that ended in each 250,000 steps, as Dopamine counts them."""
    found: list[dict] = []
    for first in range(0, rows[-1]["step"] // ITERATION * ITERATION, ITERATION):
        own = [row for row in rows if first < row["step"] <= first + ITERATION and row["episodes"]]
        games = sum(row["episodes"] for row in own)
        mean = sum(row["episodes"] * row["score"] for row in own) / games
        square = sum(row["episodes"] * (row["score_std"] ** 2 + row["score"] ** 2) for row in own)
        deviation = math.sqrt(max(0.0, square / games - mean**2))
        found.append(
            {
                "first": first,
                "last": first + ITERATION,
                "games": games,
                "score": round(mean, 1),
                "standard_error": round(deviation / math.sqrt(games), 1),
            }
        )
    return found


def main() -> None:
    run, reference = Path(sys.argv[1]), Path(sys.argv[2])
    config, rows = read_config(run), read_metrics(run)
    assert ITERATION % config.iteration_steps == 0
    own = whole_iterations(rows)
    with reference.open(newline="") as file:
        table = [row for row in csv.DictReader(file) if row["variant"] == VARIANT]
    published = [
        {
            "first": int(row["iteration"]) * ITERATION,
            "last": (int(row["iteration"]) + 1) * ITERATION,
            "run": int(row["run"]),
            "score": float(row["train_return"]),
        }
        for row in table
        if row["game"] == "MsPacman" and int(row["iteration"]) < len(own)
    ]
    last = max(rows[-1]["step"], ITERATION)
    x = alt.X(
        "first:Q",
        title="agent steps",
        scale=alt.Scale(domain=[0, last]),
        axis=alt.Axis(tickCount=6),
    )
    colour = alt.Color(
        "who:N", title=None, scale=alt.Scale(domain=[OURS, THEIRS], range=["#0072b2", "#d55e00"])
    )
    theirs = (
        alt.Chart(alt.Data(values=[{**row, "who": THEIRS} for row in published]))
        .mark_rule(strokeWidth=1.5)
        .encode(x, alt.X2("last:Q"), alt.Y("score:Q", title="mean training score"), colour)
    )
    means = (
        alt.Chart(alt.Data(values=[{**row, "who": OURS} for row in own]))
        .mark_rule(strokeWidth=3)
        .encode(x, alt.X2("last:Q"), alt.Y("score:Q"), colour)
    )
    points = [{"first": row["step"], "score": row["score"], "who": OURS} for row in rows]
    line = (
        alt.Chart(alt.Data(values=points))
        .mark_line(point=True, strokeWidth=1)
        .encode(x, alt.Y("score:Q"), colour)
    )
    (line + theirs + means).properties(width=520, height=300).save(HERE / "mspacman.svg")
    about = {
        "figure": "python docs/figures/mspacman.py RUN REFERENCE",
        "note": " ".join(sys.argv[3:]),
        "command": f"movi train {config.algorithm} --env {config.env} --preset {config.preset} "
        f"--seed {config.seed} --steps {config.steps} "
        f"--iteration-steps {config.iteration_steps} "
        f"--final-episodes {config.final_episodes} --out RUN",
        "versions": json.loads((run / "versions.json").read_text())["since"]
        if (run / "versions.json").exists()
        else None,
        "config": json.loads(config.to_json()),
        "rows": [{key: row[key] for key in ("step", "episodes", "score")} for row in rows],
        "iterations": own,
    }
    (HERE / "mspacman.json").write_text(json.dumps(about, indent=1) + "\n")
    for row in own:
        scores = [one["score"] for one in published if one["first"] == row["first"]]
        print(row, "published", round(min(scores), 1), "to", round(max(scores), 1))


if __name__ == "__main__":
    main()
