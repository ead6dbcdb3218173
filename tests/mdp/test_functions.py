"""MDPs from functions."""

import jax.numpy as jnp
import numpy as np
import pytest

import momentum_rl.mdp.tables
from momentum_rl.mdp import FiniteMDP, garnet, optimum
from momentum_rl.mdp.families import Maze
from momentum_rl.planning import solve
from tests.oracles import refusal

SIZE = 9


def maze(s, a):
    """The maze without walls of `families`, one (s, a) at a time."""
    moves = jnp.array([[-1, 0], [0, 1], [1, 0], [0, -1]])

    def to(a):
        i, j = s // SIZE + moves[a % 4, 0], s % SIZE + moves[a % 4, 1]
        inside = (i >= 0) & (i < SIZE) & (j >= 0) & (j < SIZE)
        return jnp.where(inside, i * SIZE + j, s)

    end = s == SIZE * SIZE - 1
    there = jnp.stack([to(a), to(a + 3), to(a + 1)])
    return jnp.where(end, s, there), jnp.array([0.8, 0.1, 0.1]), jnp.where(end, 0.0, -1.0)


def table(mdp):
    """A NumPy function of the rows of an MDP."""
    return lambda s, a: (mdp.successors[s, a], mdp.probabilities[s, a], mdp.rewards[s, a])


def test_a_function_that_is_stored_is_the_mdp_it_describes(monkeypatch):
    # Several chunks, the last one short.
    monkeypatch.setattr(momentum_rl.mdp.tables, "_CHUNK", 100)
    mdp = FiniteMDP.from_function(SIZE**2, 4, maze, 0.95)
    expected = Maze(size=SIZE, walls=0, discount=0.95).mdp()
    np.testing.assert_array_equal(mdp.dense(), expected.dense())
    np.testing.assert_array_equal(mdp.rewards, expected.rewards)
    other = garnet(37, 3, 4, seed=2)
    again = FiniteMDP.from_function(37, 3, table(other), 0.9, vectorised=True)
    np.testing.assert_array_equal(again.probabilities, other.probabilities)


def test_a_function_says_which_actions_are_not_there():
    mdp = garnet(30, 3, 2, seed=1)
    rewards = np.where(np.arange(3) == 1, -np.inf, mdp.rewards)
    masked = FiniteMDP(mdp.successors, mdp.probabilities, rewards, 0.9)
    solution = solve(FiniteMDP.from_function(30, 3, table(masked), 0.9, vectorised=True))
    assert not (solution.policy == 1).any()
    assert np.abs(solution.v - optimum(masked).q.max(1)).max() <= solution.bound


def spoiled(what):
    def rows(s, a):
        bad = (s == 5) & (a == 1) | (s == 7)
        to = np.stack([s, np.where(bad, 99 if what == "to" else 0, 0)], 1)
        p = np.where(bad[:, None], {"sum": 0.4, "sign": -0.5}.get(what, 0.5), 0.5)
        p = np.repeat(p, 2, 1)
        if what == "sign":
            p[:, 1] = 1 - p[:, 0]
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
    assert refusal(FiniteMDP.from_function, 20, 2, rows, 0.9, vectorised=True) == line


def test_a_function_that_fails_or_gives_other_shapes_is_refused():
    def fails(s, a):
        raise RuntimeError("no such place")

    make = FiniteMDP.from_function
    assert refusal(make, 3, 2, fails, 0.9, vectorised=True).startswith(
        "successors: the function fails"
    )
    assert refusal(make, 3, 2, lambda s, a: (s, s, s), 0.9).startswith("successors: shapes")
    assert refusal(make, 3, 0, maze, 0.9) == "actions: 0, expected at least 1"
    assert refusal(make, 3, 2, maze, 1.0).startswith("discount: 1.0")
    assert refusal(make, 2**31, 2, maze, 0.9) == "states: 2147483648, expected at most 2147483647"
    empty = lambda s, a: (np.zeros((len(s), 0), int), np.zeros((len(s), 0)), s * 0.0)  # noqa: E731
    assert refusal(make, 3, 2, empty, 0.9, vectorised=True).startswith("successors: shapes (3, 0)")
    none = lambda s, a: (s[:, None], np.ones((len(s), 1)), np.full(len(s), -np.inf))  # noqa: E731
    line = refusal(make, 4, 2, none, 0.9, vectorised=True)
    assert line.startswith("rewards: state 0: −inf for every action")


def test_a_successor_beyond_int32_does_not_come_back_as_a_state():
    """2**32 + 1 is 1 to whoever keeps 32 bits of it."""
    far = lambda s, a: (jnp.array([2**32 * (s == 5) + 1]), jnp.ones(1), 0.0)  # noqa: E731
    line = "successors: state 5, action 0: 4294967297, expected a state in 0..8"
    assert refusal(FiniteMDP.from_function, 9, 2, far, 0.9) == line


def test_a_function_has_as_many_successors_everywhere(monkeypatch):
    monkeypatch.setattr(momentum_rl.mdp.tables, "_CHUNK", 20)

    def grows(s, a):
        many = 1 + int(s[0] >= 10)
        return np.repeat(s[:, None], many, 1), np.full((len(s), many), 1 / many), s * 0.0

    line = refusal(FiniteMDP.from_function, 30, 2, grows, 0.9, vectorised=True)
    assert line == (
        "successors: 2 of them from state 10 on, 1 in the first states, expected as many everywhere"
    )
