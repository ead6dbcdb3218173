"""The certificate is about the numbers that were given: checked in exact rationals."""

from fractions import Fraction

import numpy as np
import pytest

import momentum_rl
from momentum_rl.errors import ToleranceMissed, UserError
from momentum_rl.mdp.arrays import expectation
from momentum_rl.mdp.model import FiniteMDP
from momentum_rl.mdp.solve.exact import policy_values
from momentum_rl.mdp.solve.horizons import total_reward
from momentum_rl.mdp.solve.regularised import stochastic_policy_value
from momentum_rl.mdp.solve.solution import rounding_floor
from momentum_rl.planning.solver import solve

# Rewards that cancel ----------------------------------------------------------------------------


def chain(p, rewards, discount):
    """Two states with the same row and the same rewards of successors: v is the same in both."""
    return FiniteMDP.from_dense(np.array([[p], [p]]), np.array([[rewards]] * 2), discount)


@pytest.mark.parametrize("discount", [0.999, 0.5])
@pytest.mark.parametrize(
    ("p", "rewards"),
    [
        ((0.1, 0.9), (9e12, -1e12)),
        ((0.3, 0.7), (7e12, -3e12)),
        ((0.5, 0.5), (1e100, -1e100)),
        ((0.7, 0.3), (1.0, 2.0)),
        ((1 / 3, 2 / 3), (2e140, -1e140)),
    ],
)
def test_a_certificate_holds_where_expected_rewards_cancel(p, rewards, discount):
    mdp = chain(p, rewards, discount)
    earned = sum(Fraction(x) * Fraction(y) for x, y in zip(p, rewards))
    total = sum(map(Fraction, p))
    truth = earned / (1 - Fraction(discount) * total)
    found = solve(mdp)
    assert max(abs(Fraction(float(v)) - truth) for v in found.v) <= Fraction(float(found.bound))
    values = policy_values(mdp, np.zeros(2, int))
    assert abs(Fraction(float(values[0, 0])) - truth) <= Fraction(float(found.bound)) * 2 + 1e-9


def test_an_expectation_is_that_of_exact_rationals_whatever_cancels():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(6), 400)
    x = rng.normal(size=p.shape) * 10.0 ** rng.integers(-8, 9, p.shape)
    x[:, 0] = -(p[:, 1:] * x[:, 1:]).sum(1) / p[:, 0]  # nothing is left but rounding
    naive, found = (p * x).sum(-1), expectation(p, x)
    exact = [sum(Fraction(a) * Fraction(b) for a, b in zip(*rows)) for rows in zip(p, x)]
    np.testing.assert_allclose(found, np.array(exact, float), rtol=1e-15)
    assert np.abs(naive / np.array(exact, float) - 1).max() > 0.1


def test_an_expectation_leaves_out_what_cannot_happen_and_keeps_what_is_refused():
    p = np.array([[1.0, 0.0], [0.5, 0.5], [0.5, 0.5]])
    x = np.array([[2.0, -np.inf], [1.0, -np.inf], [1e200, -1e200]])
    with np.errstate(invalid="raise"):
        np.testing.assert_array_equal(expectation(p, x), [2.0, -np.inf, 1e200])


# Rows that miss one -----------------------------------------------------------------------------


def missing(miss, discount=0.999):
    """Two rows that sum to 1 − miss; every step earns 1."""
    p = np.array([0.5, 0.5 - miss])
    return p, FiniteMDP(np.array([[[0, 1]]] * 2), np.array([[p]] * 2), np.ones((2, 1)), discount)


def of_pairs(mdp):
    return FiniteMDP.from_pairs([0, 1], [0, 0], [missing(5e-7)[0]] * 2, np.ones(2), 0.999)


def by_function(mdp):
    p = missing(5e-7)[0]
    return lambda s, a: (
        np.tile([0, 1], (*s.shape, 1)),
        np.tile(p, (*s.shape, 1)),
        np.ones(s.shape),
    )


class Valued:
    """Values and their bound, as a solution has them."""

    def __init__(self, v, bound):
        self.v, self.bound = v, float(bound)


def by_optimum(mdp):
    found = momentum_rl.optimum(mdp)
    return Valued(found.q.max(-1).reshape(-1), found.bound.max())


def evaluated(mdp):
    with pytest.raises(ToleranceMissed) as missed:
        policy_values(mdp, np.zeros(2, int), tolerance=1e-6)
    return Valued(missed.value.answer[:, 0], missed.value.bound)


def of_a_policy(mdp):
    policy = np.ones((2, 1))
    v, _, bound = stochastic_policy_value(mdp, policy, 0.0, 1e-9)
    return Valued(v, bound)


WAYS = {
    "pi": solve,
    "vi": lambda mdp: solve(mdp, method="vi"),
    "mpi": lambda mdp: solve(mdp, method="mpi"),
    "ipi": lambda mdp: solve(mdp, method="ipi"),
    "avi": lambda mdp: solve(mdp, "avi"),
    "movi": lambda mdp: solve(mdp, "movi", iterations=20_000, tolerance=1.0),
    "pairs": lambda mdp: solve(of_pairs(mdp)),
    "a member": lambda mdp: solve(mdp.as_batch()[0]),
    "a batch": lambda mdp: by_optimum(mdp.as_batch()),
    "function": lambda mdp: solve(FiniteMDP.from_function(2, 1, by_function(mdp), 0.999)),
    "policy": evaluated,
    "stochastic policy": of_a_policy,
}


@pytest.mark.parametrize("way", WAYS)
def test_rows_that_are_normalised_are_within_the_bound(way):
    p, mdp = missing(5e-7)
    truth = 1 / (1 - Fraction(0.999) * sum(map(Fraction, p)))
    found = WAYS[way](mdp)
    error = float(abs(Fraction(float(found.v[0])) - truth))
    assert 0.4 < error <= found.bound < 5 * error  # 999.5 by the rows as given, 1,000 by others


@pytest.mark.parametrize("miss", [5e-7, -5e-7, 1e-8, 0.0])
def test_the_bound_grows_with_what_is_missing_and_not_without(miss):
    p, mdp = missing(miss)
    truth = 1 / (1 - Fraction(0.999) * sum(map(Fraction, p)))
    found = solve(mdp)
    assert abs(Fraction(float(found.v[0])) - truth) <= Fraction(found.bound)
    assert found.converged == (miss == 0)
    assert rounding_floor(mdp) == pytest.approx(2 * abs(miss) * 1001 / 1e-3, rel=0.01, abs=1e-8)


def test_rows_are_refused_where_what_they_miss_might_be_worth_anything():
    assert missing(-4e-7, 1 - 1e-6)[1].missed == pytest.approx(4e-7)
    with pytest.raises(UserError, match=r"state 0, action 0: they sum to 1\.0000006"):
        missing(-6e-7, 1 - 1e-6)
    rows = lambda s, a: (s[..., None], np.full((2, 1, 1), 1 + 6e-7), np.ones((2, 1)))  # noqa: E731
    with pytest.raises(UserError, match=r"they sum to 1\.0000006, expected 1"):
        FiniteMDP.from_function(2, 1, rows, 1 - 1e-6)


@pytest.mark.parametrize(("shape", "discount"), [((30, 4, 4), 0.99), ((200, 3, 50), 0.999)])
def test_ordinary_certificates_are_as_near_as_before(shape, discount):
    found = solve(momentum_rl.garnet(*shape, discount=discount, seed=1))
    assert found.converged
    size = float(np.abs(found.q).max())
    unit = 2 * ((shape[2] + 3) * 2.0**-53 + (shape[2] + 4) * 2.0**-52)  # of rounding alone
    assert found.floor <= unit * (1 + size) / (1 - discount)


def test_rows_that_miss_one_bound_nothing_over_very_many_steps():
    def walk(p):
        return FiniteMDP(
            np.array([[[0, 1]], [[1, 1]]]), np.array([[p], [[1.0, 0.0]]]), [[-1.0], [0.0]], 0.5
        )

    for p in ([0.5, 0.5], [0.5, 0.5 - 5e-7], [0.9, 0.1 + 5e-7]):
        found = total_reward(walk(p))
        truth = -1 / (1 - Fraction(p[0]))
        assert abs(Fraction(float(found.v[0])) - truth) <= Fraction(found.bound) < 1e-3
    assert total_reward(walk([1 - 1e-6, 1e-6 - 5e-7])).bound == np.inf
