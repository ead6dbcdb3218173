"""Made-up results of `python -m paper family`, with the shapes of real ones."""

import csv
from pathlib import Path

import numpy as np

from paper.claims.tables import Family, Measured, Member

LAMBDAS, TAUS = (0.0, 0.001, 0.01, 0.1, 1.0), (0.0, 0.001, 0.1)


def family(iterations: int = 800) -> Family:
    """Errors that fall to a level of their own, later the longer the average is."""
    k = np.unique(np.geomspace(1, iterations, 50).round())
    members = {
        Member("avi", "regularised", 0.0, 0.0): _measured(0.4 + 0.3 / k, 2.0),
        Member("sql", "regularised", 0.0, 0.0): _measured(0.7 / k, 2.0),
        Member("movi", "plain", 0.0, 0.0): _measured(0.8 / k, 2.0),
    }
    for how, factor in (("regularised", 1.0), ("plain", 1.2)):
        for tau in TAUS:
            for lam in LAMBDAS:
                if lam + tau == 0:
                    continue
                if tau == 0:
                    curve = 0.7 / (1 + k / (1 + 20 * lam))
                else:
                    beta = lam / (lam + tau)
                    curve = 0.4 * np.sqrt((1 - beta) / (1 + beta)) + 0.7 * np.exp(-k * (1 - beta))
                members[Member("md-vi", how, lam, tau)] = _measured(factor * curve, 3.0)
    return Family(k, members)


def _measured(curve: np.ndarray, slack: float) -> Measured:
    loss = 4 * curve
    return Measured(curve, curve / 10, loss, slack * loss, np.ones(curve.size))


def write_family(directory: Path, data: Family) -> None:
    with (directory / "family.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        names = ("error_mean", "error_std", "loss_sup", "bound", "holds")
        writer.writerow(["scheme", "evaluation", "lambda", "tau", "iteration", *names])
        for key, own in data.members.items():
            for k, *row in zip(data.iteration, *own):
                writer.writerow([*key, int(k), *row])
