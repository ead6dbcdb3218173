"""MDPs from functions."""

import numpy as np
import pytest

from momentum_rl.mdp.families import Maze, garnet
from momentum_rl.mdp.model import FiniteMDP
from momentum_rl.mdp.solve.exact import optimum
from momentum_rl.planning.solver import solve
from tests.oracles import refusal

SIZE = 9


def maze(s, a):
    """The maze without walls of `families`."""
    moves = np.array([[-1, 0], [0, 1], [1, 0], [0, -1]])

    def to(a):
        i, j = s // SIZE + moves[a % 4, 0], s % SIZE + moves[a % 4, 1]
        inside = (i >= 0) & (i < SIZE) & (j >= 0) & (j < SIZE)
        return np.where(inside, i * SIZE + j, s)

    end = s == SIZE * SIZE - 1
    there = np.stack([to(a), to(a + 3), to(a + 1)], -1)
    to = np.where(end[..., None], s[..., None], there)
    return to, np.broadcast_to([0.8, 0.1, 0.1], to.shape), np.where(end, 0.0, -1.0)


def table(mdp):
    """A function of the rows of an MDP."""
    return lambda s, a: (mdp.successors[s, a], mdp.probabilities[s, a], mdp.rewards[s, a])


def test_a_function_that_is_stored_is_the_mdp_it_describes():
    mdp = FiniteMDP.from_function(SIZE**2, 4, maze, 0.95)
    expected = Maze(size=SIZE, walls=0, discount=0.95).mdp()
    np.testing.assert_array_equal(mdp.dense(), expected.dense())
    np.testing.assert_array_equal(mdp.rewards, expected.rewards)
    other = garnet(37, 3, 4, seed=2)
    again = FiniteMDP.from_function(37, 3, table(other), 0.9)
    np.testing.assert_array_equal(again.probabilities, other.probabilities)


def test_a_function_says_which_actions_are_not_there():
    mdp = garnet(30, 3, 2, seed=1)
    rewards = np.where(np.arange(3) == 1, -np.inf, mdp.rewards)
    masked = FiniteMDP(mdp.successors, mdp.probabilities, rewards, 0.9)
    solution = solve(FiniteMDP.from_function(30, 3, table(masked), 0.9))
    assert not (solution.policy == 1).any()
    assert np.abs(solution.v - optimum(masked).q.max(1)).max() <= solution.bound


def spoiled(what):
    def rows(s, a):
        bad = (s == 5) & (a == 1) | (s == 7)
        to = np.stack([s, np.where(bad, 99 if what == "to" else 0, 0)], -1)
        p = np.where(bad[..., None], {"sum": 0.4, "sign": -0.5}.get(what, 0.5), 0.5)
        p = np.repeat(p, 2, -1)
        if what == "sign":
            p[..., 1] = 1 - p[..., 0]
        r = np.where(bad, np.nan if what == "reward" else 0.0, 0.0)
        return to, p, r

    return rows


@pytest.mark.parametrize(
    ("what", "line"),
    [
        ("to", "successors: state 5, action 1: 99, expected a state in 0..19"),
        ("sum", "probabilities: state 5, action 1: they sum to 0.8, expected 1"),
        ("sign", "probabilities: state 5, action 1: -0.5, expected a number ≥ 0"),
        ("reward", "rewards: state 5, action 1: nan, expected a finite number"),
    ],
)
def test_the_first_offending_pair_is_named(what, line):
    rows = spoiled(what)
    assert refusal(FiniteMDP.from_function, 20, 2, rows, 0.9) == line


def test_a_function_that_fails_or_gives_other_shapes_is_refused():
    def fails(s, a):
        raise RuntimeError("no such place")

    make = FiniteMDP.from_function
    assert refusal(make, 3, 2, fails, 0.9) == "successors: the function fails: no such place"
    line = "successors: shape (3, 2), expected [S, A, B] or [M, S, A, B], each at least 1"
    assert refusal(make, 3, 2, lambda s, a: (s, s, s), 0.9) == line
    assert refusal(make, 3, 0, maze, 0.9) == "actions: 0, expected at least 1"
    assert refusal(make, 3, 2, table(garnet(3, 2, 1)), 1.0).startswith("discount: 1.0")
    assert refusal(make, 2**31, 2, maze, 0.9) == "states: 2147483648, expected at most 2147483647"
    none = lambda s, a: (s[..., None], np.ones((*s.shape, 1)), np.full(s.shape, -np.inf))  # noqa: E731
    assert refusal(make, 4, 2, none, 0.9).startswith("rewards: state 0: −inf for every action")


def test_a_successor_beyond_int32_does_not_come_back_as_a_state():
    """2**32 + 1 is 1 to whoever keeps 32 bits of it."""
    far = lambda s, a: (2**32 * (s == 5)[..., None] + 1, np.ones((*s.shape, 1)), 0.0 * s)  # noqa: E731
    line = "successors: state 5, action 0: 4294967297, expected a state in 0..8"
    assert refusal(FiniteMDP.from_function, 9, 2, far, 0.9) == line
