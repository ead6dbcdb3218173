"""The public names, and what their functions say of arguments of a wrong type."""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import gymnasium as gym
import jax.numpy as jnp
import numpy as np
import pytest

import momentum_rl
from momentum_rl.core.schedules import Constant, Schedule
from momentum_rl.core.targets import Munchausen
from momentum_rl.envs.make import make_environment
from momentum_rl.errors import door, fits, in_words
from momentum_rl.mdp.families import Maze
from momentum_rl.mdp.model import FiniteMDP
from momentum_rl.mdp.solve.exact import resolvent, weighted_norm
from momentum_rl.mdp.solve.horizons import finite_horizon
from momentum_rl.planning.engine import scheme
from momentum_rl.runs.config import Config
from momentum_rl.spaces import Environment
from tests.oracles import refusal

MDP = momentum_rl.garnet(5, 2, 2)
NAN = float("nan")


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (lambda: momentum_rl.garnet("30"), "states: '30', expected an integer"),
        (lambda: momentum_rl.garnet(discount="0.9"), "discount: '0.9', expected a number"),
        (lambda: momentum_rl.garnet(True), "states: True, expected an integer"),
        (lambda: momentum_rl.solve(None), "mdp: None, expected FiniteMDP"),
        (
            lambda: momentum_rl.solve(MDP, iterations=NAN),
            "iterations: nan, expected an integer or None",
        ),
        (
            lambda: momentum_rl.solve(MDP, tolerance="1"),
            "tolerance: '1', expected a number or None",
        ),
        (
            lambda: momentum_rl.solve(MDP, method="x"),
            "method: 'x', expected one of auto, vi, mpi, pi, ipi",
        ),
        (
            lambda: momentum_rl.compare_schemes(momentum_rl.garnet(count=2), "avi"),
            "schemes: 'avi', expected a list",
        ),
        (lambda: momentum_rl.compare_schemes(5), "mdps: 5, expected FiniteMDP"),
        (lambda: momentum_rl.optimum([MDP]), f"mdp: [{MDP}], expected FiniteMDP"),
        (lambda: momentum_rl.policy_value(MDP, None), "solution: None, expected Solution"),
        (lambda: momentum_rl.solve(MDP).at(None), "state: None, expected an integer or a text"),
        (lambda: momentum_rl.load_mdp(5), "path: 5, expected a text or a path"),
        (lambda: momentum_rl.momentum("avi"), "algorithm: 'avi', expected Algorithm"),
        (lambda: momentum_rl.Algorithm("x", 5), "targets: 5, expected Mapping"),
        (lambda: scheme(5), "which: 5, expected a text or Algorithm or Options"),
        (lambda: Munchausen(tau="1"), "tau: '1', expected a number"),
        (lambda: Constant("1"), "beta: '1', expected a number"),
        (lambda: Maze(size="5").mdp(), "size: '5', expected an integer"),
        (lambda: weighted_norm("x"), "x: dtype <U1, expected numbers"),
        (lambda: weighted_norm(np.ones((2, 2)), mu=[1.0]), "mu: shape (1,), expected (2, 2)"),
        (lambda: resolvent(MDP, 5, 5), "policies: shape () of int64, expected"),
        (lambda: finite_horizon(MDP, 3, final="x"), "final: dtype <U1, expected numbers"),
        (lambda: FiniteMDP.from_sparse(None, 1, 0.5), "kernels: None, expected a list"),
        (lambda: FiniteMDP.from_sparse([5], 1, 0.5), "kernels: 5, expected a matrix of numbers"),
        (
            lambda: FiniteMDP.from_sparse(np.array(5), 1, 0.5),
            "kernels: array(5), expected a matrix",
        ),
        (lambda: Config("dqn", "CartPole-v1", hidden=64), "hidden: 64, expected a list"),
        (lambda: Config("dqn", 5), "env: 5, expected a text"),
        (lambda: Config("dqn", "CartPole-v1", preset=[]), "preset: [], expected one of"),
        (lambda: momentum_rl.train("CartPole-v1"), "config: 'CartPole-v1', expected Config"),
        (
            lambda: momentum_rl.train(Config("dqn", "x"), trust="mine"),
            "trust: 'mine', expected a list",
        ),
        (lambda: momentum_rl.load("x", trust="mine"), "trust: 'mine', expected a list"),
        (lambda: momentum_rl.sweep(5, "out"), "matrix: 5, expected a text or a path or Sweep"),
        (lambda: momentum_rl.register(5, momentum_rl.momentum), "name: 5, expected a text"),
    ],
)
def test_an_argument_of_a_wrong_type_is_one_line(call, line):
    assert refusal(call).startswith(line)


def test_an_environment_of_gymnasiums_own_is_not_taken_for_one_of_ours():
    config, given = Config("dqn", "CartPole-v1", steps=20), gym.make("CartPole-v1")
    line = refusal(momentum_rl.train, config, environment=given)
    assert line.startswith("environment: <")
    assert line.endswith("expected Environment or JaxEnvironment or None")
    assert fits(make_environment("CartPole-v1"), Environment)


def test_numbers_of_numpy_and_jax_are_numbers():
    expected = momentum_rl.garnet(6, 2, 2, discount=0.5, seed=3)
    for one in (np.int64, np.array, jnp.asarray, np.uint8):
        made = momentum_rl.garnet(one(6), 2, 2, discount=np.float64(0.5), seed=one(3))
        np.testing.assert_array_equal(made.rewards, expected.rewards)
    assert finite_horizon(expected, np.array(3)).v.shape == (4, 6)


@pytest.mark.parametrize(
    ("hint", "right", "wrong"),
    [
        (int, [0, -(2**63)], [True, 1.0, "1", None, 2**63, NAN]),
        (float, [0, 0.5, NAN], [True, "1", None, 10**400, 1j]),
        (bool, [True], [0, 1, None, "yes"]),
        (int | None, [None, 3], [2.0]),
        (str | Path, ["a", Path("a")], [b"a", 5]),
        (Literal["a", "b"], ["a"], ["c", 1, ["a"], None]),
        (tuple[int, ...], [(1,), [1, 2], ()], [1, "ab", {1}, (1.5,)]),
        (Sequence[str], [["a"], ("a",), np.array(["a"])], ["ab", {"a"}, [1], None]),
        (Collection[str], [{"a"}, ["a"]], ["ab", 1]),
        (Mapping[str, int], [{"a": 1}, {}], [{"a": "b"}, [1]]),
        (Callable[[int], int], [abs, int], [5]),
        (type[int], [bool, int], [5, None]),
        (Schedule, [Constant(0.5), abs], [0.5]),
        (np.ndarray, [np.ones(2), [1.0]], []),
        (Any, [object()], []),
    ],
)
def test_a_value_fits_a_hint_or_does_not(hint, right, wrong):
    assert all(fits(value, hint) for value in right)
    assert not any(fits(value, hint) for value in wrong)


def test_types_in_words():
    assert in_words(int | Literal["all", "none"] | None) == "an integer or one of all, none or None"


def test_a_door_leaves_the_function_as_it_is_and_its_signature_to_python():
    @door
    def half(x: float) -> float:
        """A docstring."""
        return x / 2

    assert (half(3), half.__name__, half.__doc__) == (1.5, "half", "A docstring.")
    with pytest.raises(TypeError, match="unexpected keyword argument 'y'"):
        half(1.0, y=2)
