"""The variance of an average with errors of its own, against simulation; the best β."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from momentum_rl.planning.averaging import best_beta, variance
from tests.oracles import refusal


def simulated(beta, a, b, drift, memory, average_memory, steps, walkers=100_000):
    """The variance of h about q's mean, over many walkers, after many steps of the recursion."""
    rng = np.random.default_rng(0)
    q, own = (scale**0.5 * rng.normal(size=walkers) for scale in (a, b))
    mean, h = np.zeros(walkers), np.zeros(walkers)
    for _ in range(steps):
        mean += drift**0.5 * rng.normal(size=walkers)
        q = memory * q + ((1 - memory**2) * a) ** 0.5 * rng.normal(size=walkers)
        own = average_memory * own + ((1 - average_memory**2) * b) ** 0.5 * rng.normal(size=walkers)
        h = beta * h + (1 - beta) * (mean + q) + own
    return ((h - mean) ** 2).mean()


@pytest.mark.parametrize(
    "case",
    [
        (0.9, 1.0, 0.0, 0.0, 0.0, 0.0),
        (0.9, 1.0, 0.01, 0.0, 0.0, 0.0),
        (0.5, 0.3, 0.2, 0.05, 0.0, 0.0),
        (0.8, 1.0, 0.1, 0.0, 0.7, 0.0),
        (0.8, 1.0, 0.1, 0.0, 0.0, 0.9),
        (0.9, 1.0, 0.01, 0.02, 0.6, 0.8),
        (0.7, 1.0, 0.1, 0.0, 1.0, 1.0),
    ],
)
def test_the_variance_is_that_of_the_recursion(case):
    beta, a, b, drift, memory, own = case
    found = variance(beta, a, b, drift, memory=memory, average_memory=own)
    steps = 200 if drift == 0 else 400
    # 100,000 walkers: a standard error of 0.5 %.
    assert simulated(*case, steps=steps) == pytest.approx(float(found), rel=0.02)


@given(a=st.floats(0.01, 10), b=st.floats(0, 10), drift=st.floats(0, 10))
def test_the_law_is_where_the_variance_is_smallest(a, b, drift):
    best = best_beta(a, b, drift)
    assert (1 - best) ** 2 / best == pytest.approx((b + drift) / a, rel=1e-6, abs=1e-12)
    if best < 1:
        least = variance(best, a, b, drift)
        others = variance(np.linspace(0, 0.999, 500), a, b, drift)
        assert (others >= least * (1 - 1e-12)).all()


def test_with_memory_the_best_beta_is_where_the_variance_is_smallest():
    grid = np.linspace(0, 0.9999, 20_000)
    for memory, own in ((0.9, 0.0), (0.0, 0.9), (0.5, 1.0)):
        found = best_beta(1.0, 0.01, memory=memory, average_memory=own)
        by_grid = grid[variance(grid, 1.0, 0.01, memory=memory, average_memory=own).argmin()]
        assert found == pytest.approx(by_grid, abs=2e-4)


def test_memory_moves_the_best_beta_as_one_would_expect():
    """What repeats in q is not averaged away; what repeats in h piles up: a bias by 1/(1 − β)."""
    plain = best_beta(1.0, 0.01)
    assert plain == pytest.approx(0.905, abs=5e-4)
    assert best_beta(1.0, 0.01, memory=0.9) > plain > best_beta(1.0, 0.01, average_memory=0.9)
    # The table of docs/theory.md.
    for kind, c, best, excess in (
        ("average_memory", 0.5, 0.842, 1.15),
        ("average_memory", 0.9, 0.732, 2.3),
        ("average_memory", 1.0, 0.694, 4.0),
        ("memory", 0.5, 0.939, 1.09),
        ("memory", 0.9, 0.971, 1.38),
    ):
        grid = np.linspace(0, 0.9999, 20_000)
        of = variance(grid, 1.0, 0.01, **{kind: c})
        assert grid[of.argmin()] == pytest.approx(best, abs=6e-4)
        assert variance(plain, 1.0, 0.01, **{kind: c}) / of.min() == pytest.approx(excess, rel=0.02)
    # A small bias: (1 − β)³ = 4 b/a where 1 + β is nearly 2.
    assert 1 - best_beta(1.0, 1e-9, average_memory=1.0) == pytest.approx(4e-9 ** (1 / 3), rel=2e-2)


def test_the_gains_of_a_kalman_filter_tend_to_it_and_without_errors_are_the_mean():
    for ratio in (0.0, 0.01, 0.3):
        gain = 1.0
        for k in range(1, 400):
            gain = (gain + ratio) / (1 + gain + ratio)
            if ratio == 0:
                assert 1 - gain == pytest.approx(k / (k + 1))
        assert ratio == 0 or 1 - gain == pytest.approx(best_beta(1.0, ratio), abs=1e-9)


def test_impossible_numbers_are_refused():
    assert refusal(best_beta, 0.0, 1.0).startswith("a, b, drift: 0.0, 1.0, 0.0, expected a above 0")
    assert refusal(variance, 1.0, 1.0, 1.0) == "beta: 1.0, expected numbers in [0, 1)"
    assert refusal(variance, 0.5, 1.0, 1.0, memory=1.5).startswith("memory: 1.5, expected")
