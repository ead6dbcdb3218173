"""Made-up results with the shapes of real ones, written as the commands write them."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from paper.claims.tables import (
    ASSUMED,
    ONE_MORE,
    PRINTED,
    Array,
    Assumption,
    Assumptions,
    Bounds,
    Compare,
)


def compare(iterations: int = 10_000, seed: int = 0) -> Compare:
    """AVI flat and noisy; MoVI, SQL and DPP falling like a power of k."""
    rng = np.random.default_rng(seed)
    k = np.arange(1.0, iterations + 1)

    def noisy(curve: Array, noise: float) -> Array:
        return curve * np.exp(noise * rng.standard_normal(k.size))

    # Sampled policies change rarely late in a run: the noise of the averaging schemes is in steps.
    def stepped(scale: float, power: float) -> Array:
        steps = np.repeat(rng.standard_normal(k.size // 25 + 1), 25)[: k.size]
        return scale * 4.2 * (k + 3) ** power * np.exp(0.05 * steps)

    avi = noisy(1.3 + 0.9 * np.exp(-k / 6), 0.03)
    movi, sql = stepped(1.0, -0.86), stepped(1.15, -0.84)
    mean = {"avi": avi, "movi": movi, "sql": sql, "dpp": sql * 1.01}
    std = {
        "avi": noisy(np.full(k.size, 0.28), 0.05),
        "movi": noisy(movi * np.minimum(0.35 + k / 2500, 1.6), 0.02),
        "sql": noisy(sql * np.minimum(0.35 + k / 2600, 1.6), 0.02),
        "dpp": noisy(sql * np.minimum(0.36 + k / 2500, 1.6), 0.02),
    }
    return Compare(k, mean, std)


def assumption(largest: int = 200, seed: int = 0) -> Assumption:
    rng = np.random.default_rng(seed)
    n = np.arange(1.0, largest + 1)
    mean, std, proven = {}, {}, {}
    for steps, scale in {0: 1.9, 1: 1.1, 2: 0.75, 5: 0.5, 10: 0.42}.items():
        wobble = np.exp(np.cumsum(0.004 * rng.standard_normal(n.size)))
        mean[steps] = scale / np.sqrt(n) * wobble
        std[steps] = 0.25 * scale / np.sqrt(n) * wobble**2
        proven[steps] = 1 / (1 + steps)
    return Assumption(n, mean, std, proven)


def assumptions(largest: int = 200) -> Assumptions:
    """As printed all is centred; as assumed a bias remains at j = 10 and 100, and not at 1000."""
    js = (10, 100, 1000)
    parts = {
        product: {j: assumption(largest, j) for j in js} for product in (PRINTED, ASSUMED, ONE_MORE)
    }
    for j, bias in ((10, 0.4), (100, 0.2)):
        part = parts[ASSUMED][j]
        mean = {steps: c + bias * (steps > 0) / max(steps, 1) for steps, c in part.mean.items()}
        parts[ASSUMED][j] = replace(part, mean=mean)
    return Assumptions(parts)


def bounds(iterations: int = 10_000, seed: int = 0) -> Bounds:
    rng = np.random.default_rng(seed)
    k = np.arange(1.0, iterations + 1)
    loss = 9.0 * (k + 3) ** -0.8
    theorem = 60.0 / np.sqrt(k) + 100 / k
    columns = {
        "loss_limit": np.full(k.size, 20.0),
        "loss_sup": loss,
        "theorem_1_sup": theorem,
        "supremum": 1.8 * theorem,
        "proposition_1": 40 * theorem,
        "loss_l1": 0.4 * loss,
        "corollary_1": 6 * theorem,
        "avi_loss_sup": 3.1 * np.exp(0.03 * rng.standard_normal(k.size)),
        "avi_bound": 20 * 0.9**k + 180 * (2 - np.exp(-k / 30)),
        "sql_loss_sup": 1.15 * loss,
        "sql_bound": 2.4 * theorem + 900 / k,
        "dpp_loss_sup": 1.17 * loss,
        "dpp_bound": 2.5 * theorem + 900 / k,
        "constant_beta_loss_0.1": 2.9 * np.exp(0.03 * rng.standard_normal(k.size)),
        "constant_beta_loss_0.5": 2.1 * np.exp(0.03 * rng.standard_normal(k.size)),
        "constant_beta_loss_0.9": 0.7 * np.exp(0.03 * rng.standard_normal(k.size)) + 5 / k,
    }
    for beta, level in ((0.1, 90.0), (0.5, 40.0), (0.9, 13.0)):
        columns[f"constant_beta_bound_{beta}"] = level + 5 / k
        columns[f"constant_beta_bound_{beta}_holds"] = np.ones(k.size)
    return Bounds(k, columns)


def _write(path: Path, header: list[str], rows: list[list[object]], command: str) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
    provenance = {
        "command": command,
        "config": {"mdps": 100, "states": 30, "actions": 4, "branching": 4, "discount": 0.9},
        "seed": 0,
        "version": "0.1.0",
        "versions": {"jax": "0.10.2", "numpy": "2.3.1", "python": "3.11.2"},
        "seconds": 12.345,
    }
    path.with_suffix(".json").write_text(json.dumps(provenance), encoding="utf-8")


def write_compare(path: Path, data: Compare) -> None:
    rows: list[list[object]] = [
        [s, int(k), data.mean[s][i], data.std[s][i], 3 * data.mean[s][i], 3 * data.std[s][i]]
        for s in data.mean
        for i, k in enumerate(data.iteration)
    ]
    header = ["scheme", "iteration", "l1_mean", "l1_std", "sup_mean", "sup_std"]
    _write(path, header, rows, "python -m paper compare --out results")


def write_assumption(path: Path, data: Assumptions) -> None:
    rows: list[list[object]] = [
        [*product, j, steps, int(n), part.mean[steps][i], part.std[steps][i], part.proven[steps]]
        for product, own in data.parts.items()
        for j, part in own.items()
        for steps in part.mean
        for i, n in enumerate(part.n)
    ]
    header = ["reading", "lowest", "j", "l", "n", "mean", "std", "settled"]
    _write(path, header, rows, "python -m paper assumption --out results")


def write_bounds(path: Path, data: Bounds) -> None:
    rows: list[list[object]] = [
        [int(k), *(column[i] for column in data.columns.values())]
        for i, k in enumerate(data.iteration)
    ]
    _write(path, ["iteration", *data.columns], rows, "python -m paper bounds --out results")


def write_all(directory: Path, iterations: int = 10_000) -> Path:
    """A whole results directory."""
    directory.mkdir(parents=True, exist_ok=True)
    write_compare(directory / "compare.csv", compare(iterations))
    write_assumption(directory / "assumption.csv", assumptions())
    write_bounds(directory / "bounds.csv", bounds(iterations))
    return directory
