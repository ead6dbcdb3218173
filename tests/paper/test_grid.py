"""The study over λ and τ: each row is a run of its own, measured and bounded."""

import numpy as np
import pytest

from momentum_rl.mdp.families import garnet
from momentum_rl.mdp.solve.regularised import regularised_optimum
from momentum_rl.planning.comparison import compare_schemes
from momentum_rl.planning.engine import scheme
from momentum_rl.planning.theory import stochastic_losses, trace
from paper.tables.family import looked_at, sparse_rewards, study
from paper.tables.family_bounds import averaged_errors, moving_average_errors
from tests.oracles import random_mdp, refusal
from tests.planning.test_bounds import stacked

K = 20
# Rewards for each (s, a): with those of a Garnet rounding would decide ties.
MDPS = stacked([random_mdp(seed, 10, 3, 3) for seed in range(3)])


@pytest.fixture(scope="module")
def result():
    return study(MDPS, (0.0, 0.05), (0.0, 0.1), K, seed=6)


@pytest.mark.parametrize("how", ["regularised", "plain"])
@pytest.mark.parametrize(("lam", "tau"), [(0.05, 0.0), (0.0, 0.1), (0.05, 0.1)])
def test_a_row_is_the_run_of_its_scheme_with_its_bound(result, how, lam, tau):
    at, rows = result
    (row,) = (r for r in rows if r[:4] == ("md-vi", how, lam, tau))
    run = trace(MDPS, scheme(f"da-vi:lambda={lam}:tau={tau}:evaluation={how}"), K, seed=6)
    for m, mdp in enumerate(MDPS):
        best = regularised_optimum(mdp, tau).q
        loss = stochastic_losses(mdp, best, run.policies[at - 1, m], tau)
        expected = loss.l1 / np.abs(best).mean()
        np.testing.assert_allclose(row.relative[:, m], expected, rtol=0, atol=1e-10)
        np.testing.assert_allclose(row.sup[:, m], loss.sup, rtol=0, atol=1e-10)
    if tau:
        bound = moving_average_errors(MDPS, run, lam, tau, unproven=True)
    else:
        bound = averaged_errors(MDPS, run, lam, unproven=True)
    np.testing.assert_allclose(row.bound, bound[at - 1], rtol=1e-10)


def test_the_references_are_the_runs_of_a_comparison_on_the_same_samples(result):
    at, rows = result
    compared = compare_schemes(MDPS, ["avi", "sql", "movi"], iterations=K, seed=6)
    size = np.abs(np.stack([regularised_optimum(mdp, 0).q for mdp in MDPS])).mean((1, 2))
    for row, l1 in zip(rows, compared.l1):
        np.testing.assert_allclose(row.relative, l1[at - 1] / size, rtol=0, atol=1e-10)
    assert [row.scheme for row in rows[:3]] == ["avi", "sql", "movi"]


def test_there_is_a_row_for_every_pair_and_evaluation_but_the_corner(result):
    _, rows = result
    assert len(rows) == 3 + 2 * 3
    assert len({row[:4] for row in rows}) == len(rows)


def test_rewards_are_at_a_tenth_of_the_states_and_belong_to_the_state():
    mdps = sparse_rewards(garnet(30, 4, 4, count=50), 0)
    there = (mdps.rewards > 0).all(-1)
    np.testing.assert_array_equal(there.sum(1), 3)
    np.testing.assert_array_equal(np.ptp(mdps.rewards, -1), 0)
    assert 0.4 < mdps.rewards[there].mean() < 0.6
    assert mdps.rewards.max() < 1
    again = sparse_rewards(garnet(30, 4, 4, count=2), 0)
    np.testing.assert_array_equal(again.rewards, mdps.rewards[:2])


def test_iterations_are_kept_from_the_first_to_the_last():
    assert looked_at(800)[0] == 1
    assert looked_at(800)[-1] == 800
    assert len(looked_at(800)) <= 50
    np.testing.assert_array_equal(looked_at(1), [1])


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (((-1.0,), (0.1,)), "lambda: -1.0, expected a number of at least 0"),
        (((0.0,), (0.0,)), "lambdas and taus: no pair above 0, expected at least one"),
        (((0.1,), (0.0,), 0), "iterations: 0, expected at least 1"),
    ],
)
def test_a_grid_of_nothing_is_refused(given, says):
    assert refusal(study, MDPS, *given).startswith(says)
