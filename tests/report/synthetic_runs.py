"""Made-up run directories with improvements that are known beforehand.

On game g a run of DQN with seed s has, at iteration i of n, the score

    curve_g(i) + (s − 2) · spread_g,      curve_g(i) = low_g + (high_g − low_g) · i / (n − 1)

so that over the seeds 0..4 its area is a_g = (low_g + high_g) / 2. An algorithm with improvement x
has this plus x · |a_g|. On DIVERGING games every run of Deep DPP is one of DQN that diverges in the
middle, within iteration n/2: it keeps the first half of the curve.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from momentum_rl.runs.config import Config
from momentum_rl.runs.presets import preset_fields

ITERATIONS = 20
SEEDS = 5
GAMES = (
    "Amidar",
    "Asterix",
    "Asteroids",
    "Atlantis",
    "Berzerk",
    "Breakout",
    "Centipede",
    "Enduro",
    "Frostbite",
    "Hero",
    "Jamesbond",
    "KungFuMaster",
    "MsPacman",
    "Pong",
    "RoadRunner",
    "Seaquest",
    "SpaceInvaders",
    "Tutankham",
    "UpNDown",
    "Zaxxon",
)
"""The games of the figures in the paper's appendix."""

LEVELS = {game: (20.0 + 10 * g, 1000.0 * (g + 1)) for g, game in enumerate(GAMES)}
LEVELS["Pong"] = (-21.0, 5.0)
SPREADS = {game: 0.05 * (high - low) for game, (low, high) in LEVELS.items()}

MOMENTUM = dict(zip(GAMES, [0.4] * 15 + [3.3] + [0.0] + [-0.1] * 3))
"""Mean (15 · 0.4 + 3.3 − 0.3) / 20 = 0.45, median 0.4, 16 of 20 improved."""
SQL = dict(zip(GAMES, [-0.5] * 15 + [0.25] * 5))
"""Mean (−7.5 + 1.25) / 20 = −0.3125, 5 of 20 improved."""
DIVERGING = GAMES[:12]


def area(game: str) -> float:
    return sum(LEVELS[game]) / 2


def curve(game: str, iterations: int = ITERATIONS) -> np.ndarray:
    return np.linspace(*LEVELS[game], iterations)


def lowest(game: str) -> float:
    """The lowest score that any run of ``write_atari`` has on a game."""
    gains = (0.0, MOMENTUM[game], SQL[game])
    return LEVELS[game][0] - 2 * SPREADS[game] + min(gains) * abs(area(game))


def write_run(
    path: Path,
    config: Config,
    scores: Sequence[float | None] | np.ndarray,
    *,
    status: str = "finished",
    step: int | None = None,
    evaluation: float | None = None,
    greedy: Sequence[float] = (),
) -> Path:
    """A run directory as ``movi train`` leaves it, with the fields that reports read."""
    path.mkdir(parents=True)
    (path / "config.json").write_text(config.to_json())
    rows = [
        {
            "iteration": i,
            "step": min((i + 1) * config.iteration_steps, config.steps),
            "episodes": 0 if score is None else 10,
            "score": None if score is None else float(score),
        }
        for i, score in enumerate(scores)
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (path / "metrics.jsonl").write_text(text)
    last = rows[-1]["step"] if rows else 0
    state = {"status": status, "step": last if step is None else step, "message": ""}
    (path / "status.json").write_text(json.dumps(state))
    if evaluation is not None:
        played = {"mean": evaluation, "std": 0.0, "returns": [evaluation] * 2, "lengths": [9, 9]}
        (path / "evaluation.json").write_text(json.dumps({"episodes": 2, **played}))
    if len(greedy):
        due = [step for step in config.iteration_ends if config.evaluates_at(step)]
        write_evaluations(path, dict(zip(due, greedy)))
    return path


def write_evaluations(run: Path, means: Mapping[int, float]) -> None:
    """``evaluations.jsonl``, by agent step."""
    rows = [
        {"step": step, "episodes": 1, "mean": float(x), "std": 0, "returns": [x], "lengths": [1]}
        for step, x in means.items()
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (run / "evaluations.jsonl").write_text(text)


def atari_config(algorithm: str, game: str, seed: int, iterations: int = ITERATIONS) -> Config:
    fields: dict[str, Any] = {**preset_fields("paper"), "steps": 250_000 * iterations}
    return Config(algorithm, f"ALE/{game}-v5", **{**fields, "seed": seed})


def scores_of(game: str, seed: int, gain: float, iterations: int = ITERATIONS) -> np.ndarray:
    return curve(game, iterations) + (seed - 2) * SPREADS[game] + gain * abs(area(game))


def write_atari(
    folder: Path,
    games: Sequence[str] = GAMES,
    seeds: int = SEEDS,
    iterations: int = ITERATIONS,
) -> Path:
    """Four algorithms on each game, in a folder of run directories."""
    gains = {"dqn": dict.fromkeys(GAMES, 0.0), "momentum-dqn": MOMENTUM, "deep-sql": SQL}
    for game in games:
        for seed in range(seeds):
            for algorithm, gain in gains.items():
                config = atari_config(algorithm, game, seed, iterations)
                scores = scores_of(game, seed, gain[game], iterations)
                place = folder / game / algorithm / f"seed-{seed}"
                write_run(place, config, scores, evaluation=scores[-1])
            config = atari_config("deep-dpp", game, seed, iterations)
            scores = scores_of(game, seed, 0.0, iterations)
            place = folder / game / "deep-dpp" / f"seed-{seed}"
            if game in DIVERGING:
                at = config.iteration_steps * (iterations // 2) + 100
                kept = scores[: iterations // 2 + 1]
                write_run(place, config, kept, status="diverged", step=at)
            else:
                write_run(place, config, scores)
    return folder


def write_sweep(folder: Path, cells: Sequence[tuple[str, Config, int]], name: str = "mine") -> None:
    """``sweep.json`` with cells of a label, the config of a seed and the number of seeds."""
    data = {
        "format": 1,
        "name": name,
        "scale": "quick",
        "version": "0.1.0",
        "command": f"movi sweep {name} --out results",
        "cells": [
            {
                "env": config.env,
                "label": label,
                "seeds": list(range(seeds)),
                "config": {k: v for k, v in config.to_dict().items() if k != "seed"},
            }
            for label, config, seeds in cells
        ],
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sweep.json").write_text(json.dumps(data))


def write_betas(folder: Path, games: Sequence[str] = ("Asterix", "Zaxxon"), seeds: int = 3) -> Path:
    """A sweep of β: the higher, the slower in the beginning and the higher in the end."""
    options: dict[str, tuple[str, dict[str, Any], float]] = {
        "dqn": ("dqn", {}, 1.0),
        "momentum-dqn": ("momentum-dqn", {}, 1.5),
        "momentum-dqn (heuristic)": ("momentum-dqn", {"beta_schedule": "heuristic"}, 1.4),
    }
    for beta in (0.1, 0.5, 0.9):
        changes = {"beta_schedule": "constant", "beta": beta}
        options[f"momentum-dqn β={beta}"] = ("momentum-dqn", changes, 1.0 + beta)
    cells = []
    ramp = np.linspace(0, 1, ITERATIONS)
    for game in games:
        for label, (algorithm, changes, height) in options.items():
            first = atari_config(algorithm, game, 0).replace(**changes)
            cells.append((label, first, seeds))
            slug = label.replace("β=", "beta-").replace(" ", "-").strip("()").replace("(", "")
            for seed in range(seeds):
                scores = 1000 * height * ramp**height + 30 * seed
                place = folder / "runs" / f"ALE-{game}-v5" / slug / f"seed-{seed}"
                write_run(place, replace(first, seed=seed), scores)
    write_sweep(folder, cells, "paper-beta")
    return folder
