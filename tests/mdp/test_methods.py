"""Every method ends with the same proof, at an answer somebody else computed."""

import functools

import numpy as np
import pytest
import quantecon

from benchmarks.families import Inventory
from momentum_rl.mdp.families import Maze, garnet
from momentum_rl.mdp.model import FiniteMDP
from momentum_rl.mdp.solve import linear, methods
from momentum_rl.mdp.solve.certificates import Aim
from momentum_rl.mdp.solve.exact import optimum
from momentum_rl.planning.solver import solve
from tests.oracles import optimal_q, random_mdp, refusal
from tests.slowly_mixing import corridor, grid, nearly_decomposable, optimal, policy_matrix

NAMES = ("vi", "mpi", "pi", "ipi", "auto")


@pytest.mark.parametrize("method", NAMES)
@pytest.mark.parametrize("small", [True, False])
def test_every_method_is_within_its_bound_compiled_or_not(method, small, monkeypatch):
    monkeypatch.setattr(methods, "_SMALL", 1 << 17 if small else 0)
    monkeypatch.setattr(methods, "HOWARD", 0)
    monkeypatch.setattr(methods, "DIRECT", 0)
    for mdp in (random_mdp(0, 12, 3, 2, 0.95), random_mdp(1, 12, 3, 2, 0.95)):
        answer = optimum(mdp, tolerance=1e-8, method=method)
        assert answer.converged
        assert np.abs(answer.q - optimal_q(mdp)).max() <= answer.bound <= 1e-8
        assert answer.method == (method if method != "auto" else answer.method)


@pytest.mark.parametrize("method", NAMES)
def test_every_method_knows_states_with_different_actions(method):
    full = random_mdp(2, 40, 4, 3, 0.9)
    mask = np.random.default_rng(0).random((40, 4)) < 0.5
    mask[:, 2] |= ~mask.any(1)
    rewards = np.where(mask, full.rewards, -np.inf)
    masked = FiniteMDP(full.successors, full.probabilities, rewards, 0.9)
    s, a = np.nonzero(mask)
    pairs = FiniteMDP.from_pairs(s, a, full.dense()[s, a], full.rewards[s, a], 0.9)
    expected = optimum(masked)
    for mdp in (masked, pairs):
        answer = optimum(mdp, tolerance=1e-9, method=method)
        assert answer.converged
        np.testing.assert_array_equal(answer.policy, expected.policy)
        np.testing.assert_allclose(answer.q.max(1), expected.q.max(1), rtol=0, atol=2e-9)


@functools.cache
def maze():
    mdp = grid(60, 0.9999, walls=0.3)
    return mdp, optimal(mdp, optimum(mdp).policy)


@pytest.mark.parametrize("method", ["auto", "ipi", "pi"])
def test_a_maze_close_to_one_takes_few_evaluations_and_is_right(method):
    mdp, truth = maze()
    found = methods.optimal(mdp, Aim(1e-5, True), method)
    assert found.method == ("ipi" if method == "auto" else method)
    assert np.abs(found.state.q - truth).max() <= found.state.bound <= 1e-5
    assert found.evaluations <= (12 if method != "pi" else 100)
    assert found.sweeps <= 200


def test_a_corridor_is_walked_backwards_at_once():
    """Closed form −(1 − γⁿ)/(1 − γ): from the goal backwards, or as a band."""
    mdp, discount = corridor(20_000, 0.9999), 0.9999
    solution = solve(mdp)
    steps = np.arange(20_000)[::-1]
    v = -(1 - discount**steps) / (1 - discount)
    assert solution.converged
    assert solution.scheme == "ipi"
    assert np.abs(solution.v - v).max() <= solution.bound
    assert solution.evaluations <= 5


def test_auto_stays_with_sweeps_where_the_problem_mixes_and_says_so():
    solution = solve(garnet(3_000, 4, 4, seed=1, discount=0.999))
    assert solution.converged
    assert solution.scheme == "mpi"
    assert solution.evaluations == 0
    assert solution.why.startswith("the bound falls to 0.0")


def test_auto_says_where_the_bound_does_not_fall():
    """Far from the goal of a maze, the first sweeps see nothing but its cost."""
    solution = solve(Maze(size=30, discount=0.999).mdp())
    assert solution.scheme == "ipi"
    assert solution.why == "the bound does not fall in 6 improvements"


def test_blocks_that_are_rarely_left_are_solved_by_evaluations():
    mdp = nearly_decomposable(3_000, 0.9999)
    found = methods.optimal(mdp, Aim(1e-5, True))
    assert found.evaluations > 0
    truth = optimal(mdp, np.asarray(found.state.policy))
    assert np.abs(found.state.q - truth).max() <= found.state.bound <= 1e-5


def test_an_evaluation_is_that_of_a_sparse_system_whatever_the_order():
    mdp = grid(25, 0.999, walls=0.2)
    rng = np.random.default_rng(0)
    policy = rng.integers(0, 4, mdp.states)
    kernel = policy_matrix(mdp, policy).toarray()
    truth = np.linalg.solve(np.eye(mdp.states) - 0.999 * kernel, mdp.chosen(mdp.rewards, policy))
    for guess in (np.zeros(mdp.states), truth, rng.normal(size=mdp.states)):
        found = linear.evaluate(mdp, policy, guess, 1e-11)
        residual = mdp.chosen(mdp.rewards, policy) + 0.999 * kernel @ found.v - found.v
        assert np.abs(residual).max() == pytest.approx(found.residual, abs=1e-11)
        assert np.abs(found.v - truth).max() <= 1e3 * (found.residual + 1e-12)
        assert found.residual <= 1e-9


@pytest.mark.parametrize("size", [6, 300])
def test_states_that_lead_to_their_neighbours_are_evaluated_as_by_a_dense_system(size):
    """A stock changes by at most 4 down and 4 up."""
    mdp = Inventory(size=size, discount=0.999).mdp()
    random = np.random.default_rng(0).random(mdp.rewards.shape)
    policy = np.where(np.isfinite(mdp.rewards), random, -np.inf).argmax(1)
    found = linear.evaluate(mdp, policy, np.zeros(size + 1), 1e-9)
    system = np.eye(size + 1) - 0.999 * mdp.chosen(mdp.dense(), policy)
    truth = np.linalg.solve(system, mdp.chosen(mdp.rewards, policy))
    np.testing.assert_allclose(found.v, truth, rtol=0, atol=1e-9 * np.abs(truth).max())
    assert found.residual <= 1e-9


def test_an_inventory_close_to_one_takes_few_evaluations_and_is_quantecons():
    """Sweeps from the goal outwards have no goal here: an order leads far from where it ends."""
    prices = {"price": 0.4, "unit": 0.2, "setup": 0.3, "holding": 1e-4}
    mdp = Inventory(size=999, lot=3, orders=3, discount=0.9999, **prices).mdp()
    solution = solve(mdp)
    assert solution.converged
    assert solution.scheme == "ipi"
    assert solution.evaluations <= 4
    s, a = np.nonzero(np.isfinite(mdp.rewards))
    other = quantecon.markov.DiscreteDP(mdp.rewards[s, a], mdp.dense()[s, a], 0.9999, s, a)
    truth = other.solve(method="policy_iteration").v
    assert np.abs(solution.v - truth).max() <= 2 * solution.bound


def test_distances_are_those_of_a_breadth_first_search_by_hand():
    mdp = grid(7, 0.9, walls=0.25, seed=3)
    likely = np.take_along_axis(
        mdp.successors,
        np.where(mdp.successors == np.arange(49)[:, None, None], -1, mdp.probabilities).argmax(-1)[
            ..., None
        ],
        -1,
    )[..., 0]
    distance = {48: 0}
    for steps in range(100):
        for s in range(49):
            if s not in distance and any(distance.get(t) == steps for t in likely[s]):
                distance[s] = steps + 1
    expected = [distance.get(s, max(distance.values()) + 1) for s in range(49)]
    np.testing.assert_array_equal(linear.distances(mdp, np.array([48])), expected)


def test_a_method_that_is_none_and_a_method_beside_a_scheme_are_refused():
    mdp = garnet(5, 2, 2)
    assert refusal(optimum, mdp, method="fast") == (
        "method: 'fast', expected one of auto, vi, mpi, pi, ipi"
    )
    assert refusal(solve, mdp, "movi", method="pi").startswith("method: 'pi', expected none beside")


def test_a_solution_says_itself_in_a_line_and_answers_by_name():
    arrays = random_mdp(0, 3, 2, 2)
    mdp = FiniteMDP(
        arrays.successors,
        arrays.probabilities,
        [[1, 2], [3, -np.inf], [0, 0]],
        0.5,
        state_names=["hall", "roof", "yard"],
        action_names=["stay", "go"],
    )
    solution = solve(mdp)
    assert repr(solution).startswith("Solution(3 states by pi, ")
    assert "\n" not in repr(solution)
    np.testing.assert_array_equal(solution.v, solution.q.max(1))
    assert solution.at("roof") == {"stay": solution.q[1, 0]}
    assert solution.action("roof") == "stay"
    assert solution.at(0) == {"stay": solution.q[0, 0], "go": solution.q[0, 1]}
    assert refusal(solution.at, "cellar") == "state: 'cellar', expected the name of one state"
    assert refusal(solution.at, 3) == "state: 3, expected a number in 0..2"
