"""The experiment on averages with errors of their own, and what is said of its table."""

import numpy as np
import pytest

from momentum_rl.core.schedules import Capped, Mean
from momentum_rl.mdp.families import garnet
from momentum_rl.mdp.solve.exact import optimum
from momentum_rl.planning.averaging import best_beta
from momentum_rl.planning.engine import scheme
from momentum_rl.planning.theory import trace
from paper.claims import averaging
from paper.claims.averaging import Averaging, Cell
from paper.claims.averaging import read_averaging as read
from paper.tables.averaging import Noise, columns, losses_by_beta, noise
from paper.tables.experiments import Averaging as Experiment
from tests.oracles import policy_q, refusal

BETAS = (0.0, 0.5, 0.9)
CELLS = [Cell(problem, ratio) for problem in ("a", "b") for ratio in (0.0, 0.1, 0.5)]


def made_up(law=1.05, measured=1.1, worst=1.1):
    """Six cells, four of them up to 0.3 times q's noise; the best constant loses 1."""
    losses = {"0": 3.0, "0.5": 1.0, "0.9": 1.04, "law": law, "new": 1.02, "mean": 4.0}
    losses |= {"capped": 1.0, "measured": measured}
    betas = {"0": 0.0, "0.5": 0.5, "0.9": 0.9, "law": 0.8, "new": 0.7, "mean": 0.99}
    betas |= {"capped": 0.8, "measured": 0.75}
    loss = {cell: dict(losses) for cell in CELLS}
    loss[CELLS[-1]]["measured"] = worst
    growth = {cell: {10.0: 1.0, 100.0: 2.0} for cell in CELLS}
    return Averaging(loss, dict.fromkeys(CELLS, betas), growth)


def test_a_schedules_losses_are_those_of_traces_with_the_same_samples():
    """With exact averages: the constants, the mean; q_π by dense inverses."""
    mdps = garnet(5, 3, 2, seed=3, count=2)
    rows = losses_by_beta(mdps, BETAS, (0.0,), 40, 20, seed=4)
    found = {row["schedule"]: row["loss"] for row in rows if row["to"] == 40}
    best = optimum(mdps).q
    for name in ("0", "0.5", "0.9", "mean"):
        label = "movi" if name == "mean" else f"movi:beta={name}"
        policies = trace(mdps, scheme(label), 40, seed=4).policies[20:40:5]
        loss = np.mean(
            [
                np.abs(best[m] - policy_q(mdps[m], p)).mean()
                for m in range(2)
                for p in policies[:, m]
            ]
        )
        assert found[name] == pytest.approx(loss, abs=1e-9)
    assert found["law"] == found["new"] == found["capped"] == found["mean"]
    # Without errors of h a Kalman filter's gains are those of the mean.
    assert found["measured"] == pytest.approx(found["mean"], abs=1e-9)
    spans = [(row["from"], row["to"]) for row in rows if row["to"] < 40]
    assert spans == [(10, 20)]


def test_errors_of_h_reach_the_losses_and_the_measured_beta():
    mdps = garnet(8, 3, 2, seed=3, count=3)
    rows = losses_by_beta(mdps, BETAS, (0.0, 0.5), 200, 100, seed=4)
    last = {(row["ratio"], row["schedule"]): row for row in rows if row["to"] == 200}
    assert last[0.5, "mean"]["loss"] > 2 * last[0.0, "mean"]["loss"]
    assert last[0.0, "measured"]["beta"] == pytest.approx(200 / 201)
    assert 0.2 < last[0.5, "measured"]["beta"] < 0.8


def test_the_noise_of_q_is_measured_about_its_mean_and_from_step_to_step():
    mdps = garnet(5, 3, 2, seed=3, count=2)
    q = trace(mdps, scheme("movi"), 30, seed=1).q[10:]
    found = noise(mdps, 30, 10, 1)
    assert found.variance == pytest.approx(np.mean((q - q.mean(0)) ** 2))
    steps = [((q[i + 1] - q[i]) ** 2).mean() / 2 for i in range(20)]
    assert found.new == pytest.approx(np.mean(steps))


def test_the_schedules_are_the_constants_the_laws_and_the_mean():
    side = columns(BETAS, (0.0, 0.1), Noise(4.0, 1.0), 50)
    assert side.names == 2 * ["0", "0.5", "0.9", "law", "new", "mean", "capped", "measured"]
    rate = dict(zip(side.names[8:], side.rates.T[8:]))
    law, new = best_beta(4.0, 0.04), best_beta(1.0, 0.04)
    assert set(rate["law"]) == {law}
    assert set(rate["new"]) == {new}
    assert new < law
    capped = Capped(Mean(), law)
    np.testing.assert_array_equal(rate["capped"], [capped(k) for k in range(1, 51)])
    assert set(rate["measured"]) == {-1}


def test_the_table_is_read_as_it_was_written(tmp_path):
    small = Experiment(
        out=tmp_path,
        mdps=2,
        states=5,
        actions=2,
        branching=2,
        iterations=60,
        settled=40,
        ratios=(0.0, 0.1),
        betas=BETAS,
        discounts=(0.9,),
    )
    data = read(small.compute())
    assert [cell.problem for cell in data.loss][::2] == [
        "Garnets γ = 0.9",
        "sparse γ = 0.9",
        "mazes γ = 0.9",
    ]
    assert all(list(data.constants(cell)) == list(BETAS) for cell in data.loss)
    assert all(list(growth) == [10, 20] for growth in data.growth.values())
    assert all(
        part.shape
        for figure in (averaging.by_beta, averaging.growing)
        for panel in figure(data).panels
        for part in [panel.curves[0].y]
    )
    assert len(averaging.predicted(data).rows) == 6


def test_the_rules_are_applied_as_they_are_written():
    assert averaging.law_is_best(made_up()).seen.startswith("Held: 4 of 4 cells ")
    assert averaging.law_is_best(made_up(law=1.11)).seen.startswith("Not held: 0 of 4 cells ")
    assert "each iteration in place of all of it: 4 of 4" in averaging.law_is_best(made_up()).seen
    assert averaging.measured_is_good(made_up()).seen.startswith("Held: 6 of 6 cells; the worst")
    bad = averaging.measured_is_good(made_up(worst=1.2)).seen
    assert bad == "Not held: 5 of 6 cells; the worst is 1.2 times the best, on b with 0.5."
    assert averaging.schedule_grows(made_up()).seen.endswith("constant's: a: 4; b: 4.")
    row = averaging.predicted(made_up()).rows[0]
    assert (row["best β"], row["within 5 %"], row["its loss"]) == ("0.5", "0.5 to 0.9", "1")


def test_an_impossible_experiment_is_refused(tmp_path):
    mdps = garnet(5, 2, 2, count=1)
    assert refusal(losses_by_beta, mdps, BETAS, (0.1,), 20, 20).startswith("settled: 20, expected")
    wrong = Experiment(out=tmp_path, discount=0.5)
    assert refusal(wrong.compute).startswith("discounts: (0.9, 0.95, 0.99), expected 0.5 among")
