"""Draws docs/figures/cartpole.svg: DQN and Momentum-DQN on CartPole-v1 with the shipped defaults.

    python docs/figures/cartpole.py RUNS

RUNS keeps the run directories; those that are there already are not repeated. Beside the figure,
cartpole.json says what made it: commands, config, version, and every final evaluation.
"""

import json
import sys
from pathlib import Path

import altair as alt

from momentum_rl.runs.config import Config
from momentum_rl.runs.files import read_config, read_metrics
from momentum_rl.training.commands import default_directory
from momentum_rl.training.train import train
from momentum_rl.version import __version__

HERE = Path(__file__).parent
ALGORITHMS = {"dqn": "DQN", "momentum-dqn": "Momentum-DQN"}
SEEDS = range(5)


def runs(folder: Path) -> list[Path]:
    paths = []
    for algorithm in ALGORITHMS:
        for seed in SEEDS:
            config = Config(algorithm, "CartPole-v1", seed=seed, final_episodes=100)
            path = folder / default_directory(config).name
            if not (path / "evaluation.json").exists():
                train(config, path)
            assert read_config(path) == config, path
            paths.append(path)
    return paths


def main() -> None:
    paths = runs(Path(sys.argv[1]))
    rows, finals = [], []
    for path in paths:
        config = read_config(path)
        evaluation = json.loads((path / "evaluation.json").read_text())
        finals.append({"algorithm": config.algorithm, "seed": config.seed, **evaluation})
        rows += [
            {
                "algorithm": ALGORITHMS[config.algorithm],
                "seed": config.seed,
                "step": row["step"],
                "score": row["score"],
            }
            for row in read_metrics(path)
            if row["score"] is not None
        ]
    base = alt.Chart(alt.Data(values=rows)).encode(
        alt.X("step:Q", title="agent steps"),
        alt.Color("algorithm:N", title=None),
    )
    score = alt.Y("score:Q", title="mean training score", scale=alt.Scale(domain=[0, 500]))
    single = base.mark_line(opacity=0.25, strokeWidth=1).encode(score, alt.Detail("seed:N"))
    mean = base.mark_line(strokeWidth=3).encode(
        alt.Y("mean(score):Q", title="mean training score", scale=alt.Scale(domain=[0, 500]))
    )
    (single + mean).properties(width=520, height=300).save(HERE / "cartpole.svg")
    config = json.loads(read_config(paths[0]).to_json())
    for name in ("algorithm", "seed"):
        del config[name]
    about = {
        "command": "movi train ALGORITHM --env CartPole-v1 --seed SEED --final-episodes 100",
        "figure": "python docs/figures/cartpole.py RUNS",
        "version": __version__,
        "algorithms": list(ALGORITHMS),
        "seeds": list(SEEDS),
        "config": config,
        "evaluation": [
            {name: final[name] for name in ("algorithm", "seed", "episodes", "mean", "std")}
            for final in finals
        ],
    }
    (HERE / "cartpole.json").write_text(json.dumps(about, indent=2) + "\n")
    for final in finals:
        print(final["algorithm"], final["seed"], final["mean"], final["std"])


if __name__ == "__main__":
    main()
