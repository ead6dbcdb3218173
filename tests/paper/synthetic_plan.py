"""A made-up plan with runs whose improvements are known: as paper/evidence/ has them, but short.

On either game a run of DQN with seed s has the greedy scores (1, 2, 3, 6) + s and the training
scores (1, 1, 2, 4). What an algorithm has beyond that is its gain, added to every greedy score.
"""

from collections.abc import Collection, Mapping
from pathlib import Path

import numpy as np

from momentum_rl.runs.sweep import read_sweep_file, run_directory, write_sweep
from tests.report.synthetic_runs import write_run

GAMES = ("Asterix", "Breakout")
GREEDY = np.array([1.0, 2, 3, 6])
"""Area 3; over the seeds 0, 1 and 2 the mean area is 4."""
TRAINING = (1.0, 1, 2, 4)

MATRICES = {
    "1-momentum": ('algorithms = ["dqn", "momentum-dqn"]', "seeds = 3"),
    "2-speedy": ('algorithms = ["deep-sql", "deep-dpp"]', "seeds = 3"),
    "4-beta": (
        "algorithms = ["
        + ", ".join(
            f'{{algorithm = "momentum-dqn", label = "momentum-dqn β={b}", '
            f'beta_schedule = "constant", beta = {b}}}'
            for b in (0.1, 0.5, 0.9)
        )
        + ', {algorithm = "momentum-dqn", label = "momentum-dqn (heuristic)", '
        'beta_schedule = "heuristic"}]',
        "seeds = 3",
    ),
}


def write_plan(folder: Path) -> Path:
    """The plan's files, without any run."""
    folder.mkdir(parents=True, exist_ok=True)
    games = ", ".join(f'"MinAtar/{game}"' for game in GAMES)
    for name, (algorithms, seeds) in MATRICES.items():
        lines = [f"environments = [{games}]", algorithms, seeds, 'preset = "minatar"']
        text = "\n".join([*lines, "[config]", "steps = 200_000", "evaluate_every = 50_000"])
        (folder / f"{name}.toml").write_text(text + "\n", encoding="utf-8")
    matrices = ", ".join(f'"{name}.toml"' for name in MATRICES)
    (folder / "evidence.toml").write_text(
        f'title = "Does it help?"\nmatrices = [{matrices}]\npublished = "published.csv"\n'
        f"[protocols]\nminatar-published = [{matrices}]\n"
    )
    (folder / "published.csv").write_text(
        "env,label,steps,score,source\nMinAtar/Asterix,dqn,200000,8,somebody\n"
        "MinAtar/Breakout,dqn,200000,5,somebody\n"
    )
    return folder


def write_matrix(
    folder: Path,
    name: str,
    gains: Mapping[str, np.ndarray | float],
    *,
    games: Collection[str] = GAMES,
    without: Collection[tuple[str, str, int]] = (),
    diverged: Collection[tuple[str, str, int]] = (),
) -> None:
    """The runs of a matrix's labels, but for those left out, by game, label and seed."""
    sweep = read_sweep_file(folder / f"{name}.toml")
    write_sweep(folder / "runs" / name, sweep)
    for cell in sweep.cells:
        game = cell.env.removeprefix("MinAtar/")
        for seed in cell.seeds:
            key = game, cell.label, seed
            if cell.label not in gains or game not in games or key in without:
                continue
            path = run_directory(folder / "runs" / name, cell, seed)
            greedy = GREEDY + seed + gains[cell.label]
            stop = {"status": "diverged", "step": 60_000} if key in diverged else {}
            config = cell.config_of(seed)
            write_run(path, config, TRAINING, evaluation=9.0 + seed, greedy=greedy, **stop)
