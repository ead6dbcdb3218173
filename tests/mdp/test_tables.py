"""Arrays of other tools are read as they were meant, or with a warning."""

import warnings
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sparse

from momentum_rl.mdp.model import FiniteMDP
from momentum_rl.planning.solver import solve
from tests.oracles import refusal

# pymdptoolbox's own fixture: P[a, s, s'] and R[a, s, s'] with as many actions as states.
P = np.array([[[0.5, 0.5], [0.8, 0.2]], [[0.0, 1.0], [0.1, 0.9]]])
R = np.array([[[5.0, 10.0], [3.0, -1.0]], [[-1.0, 2.0], [4.0, 0.0]]])


def exact_values(p, r, discount):
    """v of a chain with rows p [S, S] (lists of Fractions) and rewards r: Cramer, for S = 2."""
    gamma = Fraction(discount)
    (a, b), (c, d) = [[(i == j) - gamma * p[i][j] for j in range(2)] for i in range(2)]
    determinant = a * d - b * c
    return (r[0] * d - b * r[1]) / determinant, (a * r[1] - c * r[0]) / determinant


def rational(x):
    return [[Fraction(float(y)) for y in row] for row in x]


def best_values(kernel, rewards, discount):
    """The best of the four policies in exact rationals."""
    every = []
    for policy in ((0, 0), (0, 1), (1, 0), (1, 1)):
        rows = rational([kernel[policy[s]][s] for s in range(2)])
        earned = rational([rewards[policy[s]][s] for s in range(2)])
        r = [sum(x * y for x, y in zip(p, e)) for p, e in zip(rows, earned)]
        every.append(exact_values(rows, r, discount))
    return [float(max(v[s] for v in every)) for s in range(2)]


@pytest.mark.parametrize("kind", [sparse.csr_array, np.asarray, np.ndarray.tolist])
@pytest.mark.parametrize("kernels", [sparse.coo_array, np.asarray])
def test_rewards_by_action_mean_the_same_sparse_and_dense(kind, kernels, recwarn):
    mdp = FiniteMDP.from_sparse([kernels(p) for p in P], [kind(r) for r in R], 0.9)
    np.testing.assert_allclose(solve(mdp, tolerance=1e-9).v, best_values(P, R, 0.9), atol=1e-8)
    assert len(recwarn) == 0
    whole = FiniteMDP.from_sparse([kernels(p) for p in P], R, 0.9)
    np.testing.assert_array_equal(whole.rewards, mdp.rewards)


def test_rewards_by_action_need_not_be_as_many_as_states():
    three = np.stack([np.eye(3), np.roll(np.eye(3), 1, 1)])
    earned = np.arange(18.0).reshape(2, 3, 3)
    mdp = FiniteMDP.from_sparse(list(three), list(earned), 0.5)
    np.testing.assert_array_equal(mdp.rewards, [[0, 10], [4, 14], [8, 15]])


def test_rewards_whose_axes_the_shape_does_not_show_are_taken_with_a_warning():
    square = np.array([[1.0, 2.0], [3.0, 4.0]])
    with pytest.warns(UserWarning, match=r"2 states and as many actions, taken as R\[s, a"):
        mdp = FiniteMDP.from_sparse([sparse.csr_array(p) for p in P], square, 0.5)
    np.testing.assert_array_equal(mdp.rewards, square)
    for rewards in (square, R):
        with pytest.warns(UserWarning, match=r"taken as R\[s, a\], whatever the axes") as seen:
            FiniteMDP.from_dense(P, rewards, 0.5, axes="AS")
        assert [w.filename for w in seen] == [__file__]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            FiniteMDP.from_dense(P.swapaxes(0, 1), rewards, 0.5, axes="SA")


def test_rewards_by_slot_that_might_be_by_state_are_taken_with_a_warning(recwarn):
    to, p = np.array([[[1, 0]], [[1, 0]]]), np.full((2, 1, 2), 0.5)
    FiniteMDP(np.sort(to), p, R[:1].swapaxes(0, 1), 0.5)  # by slot is by state
    assert len(recwarn) == 0
    skewed = np.where(to == 0, 0.9, 0.1)
    with pytest.warns(UserWarning, match=r"rewards: 2 states and as many successors, taken as R\["):
        mdp = FiniteMDP(to, skewed, R[:1].swapaxes(0, 1), 0.5)
    np.testing.assert_allclose(mdp.rewards[:, 0], [0.9 * 5 + 0.1 * 10, 0.9 * 3 - 0.1])


def test_a_masked_array_is_refused_and_one_without_a_mask_is_not():
    to, p = np.zeros((2, 2, 1), int), np.ones((2, 2, 1))
    masked = np.ma.array(np.ones((2, 2)), mask=[[True, False], [False, False]])
    assert refusal(FiniteMDP, to, p, masked, 0.5).startswith("rewards: a masked array, expected")
    assert FiniteMDP(to, p, np.ma.array(np.ones((2, 2))), 0.5).pairs == 4
