"""Finite horizons and total rewards, against closed forms and an independent peer."""

import numpy as np
import pytest
import quantecon

from benchmarks.families import Inventory
from momentum_rl.cli import main
from momentum_rl.mdp.families import Maze, garnet
from momentum_rl.mdp.files import save_mdp
from momentum_rl.mdp.model import FiniteMDP
from momentum_rl.mdp.solve.exact import optimum
from momentum_rl.mdp.solve.horizons import finite_horizon, total_reward
from momentum_rl.planning.solver import solve
from tests.oracles import random_mdp, refusal
from tests.slowly_mixing import corridor


@pytest.mark.parametrize(
    "mdp", [random_mdp(0, 6, 3, 2, 0.9), Inventory(size=5, discount=0.9).mdp()]
)
def test_backward_induction_is_that_of_quantecon(mdp):
    problem = quantecon.markov.DiscreteDP(mdp.rewards, mdp.dense(), 0.9)
    final = np.arange(mdp.states, dtype=float)
    v, sigma = quantecon.markov.backward_induction(problem, 7, final)
    found = finite_horizon(mdp, 7, final=final)
    np.testing.assert_allclose(found.v, v, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(found.policy, sigma)


def test_a_horizon_needs_no_discount():
    """n steps down a corridor at 1 each: −min(steps to the end, horizon)."""
    found = finite_horizon(corridor(10, 0.5), 4, discount=1.0)
    np.testing.assert_array_equal(found.v[0], -np.minimum(np.arange(10)[::-1], 4))


def test_a_corridor_costs_its_length_without_discount():
    answer = total_reward(corridor(50, 0.9))
    np.testing.assert_allclose(answer.v, -np.arange(50.0)[::-1], rtol=0, atol=1e-9)
    np.testing.assert_allclose(answer.steps, np.arange(50.0)[::-1], rtol=0, atol=1e-9)
    assert answer.converged
    assert np.abs(answer.v + np.arange(50)[::-1]).max() <= answer.bound <= 1e-6


def test_a_maze_without_discount_is_the_limit_of_those_with_one():
    """v_γ → v as γ → 1; the error is about (1 − γ)/2 times the square of the steps."""
    maze = Maze(size=8, walls=0.2, seed=2)
    answer = total_reward(maze.mdp(), tolerance=1e-6)
    near = optimum(Maze(size=8, walls=0.2, seed=2, discount=1 - 1e-7).mdp(), tolerance=1e-3)
    finite = np.isfinite(answer.v)
    assert finite[0]
    np.testing.assert_allclose(near.q.max(1)[finite], answer.v[finite], rtol=0, atol=1e-3)
    assert (near.q.max(1)[~finite] < -1e5).all()  # enclosed: they never end
    assert np.isinf(answer.steps[~finite]).all()


@pytest.mark.parametrize("slip", [0.2, 0.5])
def test_our_own_maze_is_solved_without_discount(slip):
    """The first policy took steps that lead nearer the end, however unlikely: v was 3e16."""
    maze = Maze(size=100, slip=slip).mdp()
    found = total_reward(maze)
    ends = np.isfinite(found.v)
    assert found.converged
    assert (found.v[ends] <= 0).all()
    assert ends.sum() > 5_000
    # −v is the expected steps T of the best policy; discounted by 1 − ε it is T less ε T² or so.
    near = solve(Maze(size=100, slip=slip, discount=1 - 1e-6).mdp(), tolerance=0.05)
    assert near.converged
    assert np.abs(near.v[ends] - found.v[ends]).max() <= 0.05 + 1e-6 * found.v[ends].min() ** 2
    # The best of one step more is the same: a value of finite costs is the only one of which it is.
    ahead = np.where(maze.probabilities > 0, found.v[maze.successors], 0.0)
    again = (maze.rewards + (maze.probabilities * ahead).sum(-1)).max(-1)
    np.testing.assert_allclose(again[ends], found.v[ends], rtol=0, atol=1e-9)


def test_what_has_no_end_or_earns_on_the_way_is_refused():
    assert refusal(total_reward, garnet(5, 2, 2)).startswith("mdp: no absorbing state of reward 0")
    mdp = corridor(5, 0.9)
    rewards = np.where(mdp.rewards == -1, 1.0, 0.0)
    earning = FiniteMDP(mdp.successors, mdp.probabilities, rewards, 0.9)
    assert refusal(total_reward, earning).startswith("rewards: one of at least 0 outside")
    assert refusal(finite_horizon, mdp, 0) == "horizon: 0, expected at least 1"
    assert refusal(finite_horizon, mdp, 3, final=[1.0]).startswith("final: shape (1,)")


def test_the_command_line_solves_and_refuses(tmp_path, capsys):
    mdp, file, out = (
        Maze(size=5, walls=0, discount=0.9).mdp(),
        tmp_path / "m.npz",
        tmp_path / "s.npz",
    )
    save_mdp(mdp, file)
    assert main(["solve", str(file), "--horizon", "3", "--out", str(out)]) == 0
    assert "backward induction over 3 steps" in capsys.readouterr().out
    assert main(["solve", str(file), "--discount", "1"]) == 0
    said = capsys.readouterr().out
    assert "3 successors, discount 1)" in said
    assert "25 states end surely" in said
    # More than float64 can prove of some forty steps.
    assert main(["solve", str(file), "--discount", "1", "--tolerance", "1e-18"]) == 3
    said = capsys.readouterr()
    assert "certificate" in said.out
    assert said.err.startswith("movi: tolerance: 1e-18, reached ")
    assert main(["solve", str(file), "--discount", "1", "--scheme", "movi"]) == 2
    assert capsys.readouterr().err.count("movi: ") == 1
