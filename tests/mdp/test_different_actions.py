"""States with different actions: every way to say so, every function."""

import gymnasium
import numpy as np
import pytest
import quantecon
import scipy.sparse as sparse

from momentum_rl.mdp.files import load_mdp, save_mdp
from momentum_rl.mdp.model import FiniteMDP
from momentum_rl.mdp.solve.exact import optimum, policy_values, resolvent
from momentum_rl.mdp.solve.solution import policy_value
from momentum_rl.planning.comparison import compare_schemes
from momentum_rl.planning.solver import solve
from tests.oracles import random_mdp, refusal

COUNTS = (3, 1, 4, 2, 4, 1, 2)


def uneven(seed=0, counts=COUNTS, discount=0.9, gaps=False):
    """Random rows at some pairs; with gaps, a state's actions are not 0, 1, …"""
    rng = np.random.default_rng(seed)
    states, actions = len(counts), 6 if gaps else max(counts)
    there = np.zeros((states, actions), bool)
    for s, n in enumerate(counts):
        there[s, rng.choice(actions, n, replace=False) if gaps else np.arange(n)] = True
    return FiniteMDP(
        rng.integers(0, states, (states, actions, 3)),
        rng.dirichlet(np.ones(3), (states, actions)),
        np.where(there, rng.normal(size=(states, actions)), -np.inf),
        discount,
    )


def by_quantecon(mdp):
    """v*, σ* by QuantEcon's policy iteration on the pairs."""
    s, a = np.nonzero(np.isfinite(mdp.rewards))
    problem = quantecon.markov.DiscreteDP(
        mdp.rewards[s, a], mdp.dense()[s, a], float(mdp.discount), s, a
    )
    result = problem.solve("policy_iteration")
    return result.v, result.sigma


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_the_optimum_is_that_of_quantecon(seed, gaps):
    mdp = uneven(seed, gaps=gaps)
    v, sigma = by_quantecon(mdp)
    answer = optimum(mdp)
    assert answer.converged
    np.testing.assert_allclose(answer.q.max(1), v, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(answer.policy, sigma)
    np.testing.assert_array_equal(np.isfinite(answer.q), np.isfinite(mdp.rewards))


def test_a_larger_problem_is_solved_by_sweeps_as_quantecon_does():
    counts = 1 + np.random.default_rng(1).integers(0, 7, 1_200)
    mdp = uneven(5, counts, 0.95, gaps=False)
    v, _ = by_quantecon(mdp)
    answer = optimum(mdp, tolerance=1e-8)
    assert answer.converged
    assert np.abs(answer.q.max(1) - v).max() <= answer.bound + 1e-10


@pytest.mark.parametrize("scheme", ["avi", "movi", "sql", "dpp"])
@pytest.mark.parametrize("gaps", [False, True])
def test_every_scheme_is_within_its_bound_and_chooses_actions_that_are_there(scheme, gaps):
    mdp = uneven(2, gaps=gaps)
    v, sigma = by_quantecon(mdp)
    tolerance = 1e-6 if scheme == "avi" else 1e-2
    solution = solve(mdp, scheme, tolerance=tolerance)
    assert solution.converged
    assert np.abs(solution.q.max(1) - v).max() <= solution.bound
    np.testing.assert_array_equal(solution.policy, sigma)
    worth = policy_value(mdp, solution)
    assert worth.mean == pytest.approx(v.mean(), abs=1e-6)


@pytest.mark.parametrize("scheme", ["avi", "movi", "sql", "dpp"])
def test_a_sampled_scheme_never_chooses_an_action_that_is_not_there(scheme):
    mdp = uneven(3, gaps=True)
    solution = solve(mdp, scheme, sampled=True, samples=20, iterations=300)
    policy_values(mdp, solution.policy)  # which refuses such a policy
    assert np.isfinite(solution.bound)
    if scheme in ("movi", "sql", "dpp"):
        assert np.abs(solution.q.max(1) - by_quantecon(mdp)[0]).max() <= 0.5


def test_the_schemes_are_compared_over_the_actions_that_are_there():
    """A mask of all actions but a duplicate changes no policy's loss."""
    full = random_mdp(0, 6, 2, 3)
    doubled = FiniteMDP(
        np.repeat(full.successors, 2, 1),
        np.repeat(full.probabilities, 2, 1),
        np.where(np.tile([True, False], (6, 2)), np.repeat(full.rewards, 2, 1), -np.inf),
        0.9,
    )
    names = ("avi", "movi", "sql")
    plain = compare_schemes(full.as_batch(), names, iterations=20, samples=0)
    masked = compare_schemes(doubled.as_batch(), names, iterations=20, samples=0)
    np.testing.assert_allclose(masked.l1, plain.l1, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(masked.sup, plain.sup, rtol=1e-9, atol=1e-12)


def dense_resolvent(mdp, policy, x):
    kernel = mdp.dense()
    own = mdp.chosen(kernel, policy)
    w = np.linalg.solve(np.eye(mdp.states) - 0.9 * own, mdp.chosen(x, policy))
    return x + 0.9 * kernel @ w


def test_values_of_policies_are_those_of_dense_systems():
    mdp = uneven(4, gaps=True)
    rng = np.random.default_rng(0)
    policies = np.stack(
        [[rng.choice(np.flatnonzero(np.isfinite(row))) for row in mdp.rewards] for _ in range(3)]
    )
    q = policy_values(mdp, policies)
    x = rng.normal(size=(3, *mdp.rewards.shape))
    z = resolvent(mdp, policies, x)
    there = np.isfinite(mdp.rewards)
    for i, policy in enumerate(policies):
        expected = dense_resolvent(mdp, policy, mdp.rewards)
        np.testing.assert_allclose(q[i][there], expected[there], atol=1e-10)
        np.testing.assert_allclose(z[i], dense_resolvent(mdp, policy, x[i]), atol=1e-10)


def test_large_policies_are_evaluated_by_sweeps_over_the_rows_they_follow(monkeypatch):
    import momentum_rl.mdp.solve.exact

    monkeypatch.setattr(momentum_rl.mdp.solve.exact, "DIRECT", 0)
    test_values_of_policies_are_those_of_dense_systems()


# Ways to say it ----------------------------------------------------------------------------------


def test_minus_infinity_and_pairs_say_the_same():
    full = random_mdp(1, 5, 3, 2)
    mask = np.random.default_rng(0).random((5, 3)) < 0.6
    mask[:, 1] |= ~mask.any(1)
    probabilities = np.where(mask[..., None], full.probabilities, 0)  # zero rows where nothing is
    rewards = np.where(mask, full.rewards, -np.inf)
    by_infinity = FiniteMDP(full.successors, probabilities, rewards, 0.9)
    s, a = np.nonzero(mask)
    order = np.random.default_rng(1).permutation(len(s))
    by_pairs = FiniteMDP.from_pairs(
        s[order], a[order], sparse.csr_array(full.dense()[s, a][order]), rewards[s, a][order], 0.9
    )
    kernels = [sparse.csr_array(full.dense()[:, i] * mask[:, [i]]) for i in range(3)]
    by_matrices = FiniteMDP.from_sparse(kernels, rewards, 0.9)
    by_kernel = FiniteMDP.from_dense(full.dense() * mask[..., None], rewards, 0.9)
    mdps = (by_infinity, by_matrices, by_kernel, by_pairs)
    answers = [optimum(mdp) for mdp in mdps]
    for mdp, answer in zip(mdps, answers):
        assert mdp.pairs == mask.sum()
        np.testing.assert_array_equal(np.isfinite(mdp.rewards), mask)
        np.testing.assert_array_equal(answer.policy, answers[0].policy)
        np.testing.assert_allclose(answer.q[mask], answers[0].q[mask], rtol=0, atol=1e-9)
        assert np.isneginf(answer.q[~mask]).all()


def test_a_table_whose_states_have_different_actions_is_accepted():
    """Taxi where picking up and dropping are only there where they are allowed."""
    environment = gymnasium.make("Taxi").unwrapped
    table = {
        s: {a: rows for a, rows in row.items() if a < 4 or rows[0][2] != -10}
        for s, row in environment.P.items()
    }
    mdp = FiniteMDP.from_gymnasium(table, 0.99)
    whole = FiniteMDP.from_gymnasium(environment, 0.99)
    assert mdp.pairs < whole.pairs
    v = optimum(whole).q.max(1)
    np.testing.assert_allclose(optimum(mdp).q.max(1), v, rtol=0, atol=1e-8)


def test_costs_of_a_file_are_rewards_with_the_sign_turned(tmp_path):
    """What costs +inf cannot be done."""
    mdp = random_mdp(3, 6, 2, 3)
    arrays = {name: getattr(mdp, name) for name in ("successors", "probabilities", "discount")}
    np.savez(tmp_path / "costs.npz", rewards=-mdp.rewards, **arrays)
    costly = load_mdp(tmp_path / "costs.npz", minimise=True)
    np.testing.assert_array_equal(costly.rewards, mdp.rewards)
    forbidden = np.where(np.arange(2) == 1, np.inf, -mdp.rewards)
    np.savez(tmp_path / "forbidden.npz", rewards=forbidden, **arrays)
    only = load_mdp(tmp_path / "forbidden.npz", minimise=True)
    assert (optimum(only).policy == 0).all()


def test_rewards_by_state_by_successor_and_by_slot_are_their_expectations():
    mdp = random_mdp(4, 5, 2, 3)
    rng = np.random.default_rng(0)
    by_state, by_successor = rng.normal(size=5), rng.normal(size=(5, 2, 5))
    s, p = mdp.successors, mdp.probabilities
    np.testing.assert_array_equal(
        FiniteMDP(s, p, by_state, 0.9).rewards, np.stack([by_state, by_state], 1)
    )
    expected = (mdp.dense() * by_successor).sum(-1)
    np.testing.assert_allclose(FiniteMDP(s, p, by_successor, 0.9).rewards, expected, atol=1e-14)
    np.testing.assert_allclose(
        FiniteMDP.from_dense(mdp.dense(), by_successor, 0.9).rewards, expected, atol=1e-14
    )
    by_slot = np.take_along_axis(by_successor, s.astype(int), -1)
    np.testing.assert_allclose(FiniteMDP(s, p, by_slot, 0.9).rewards, expected, atol=1e-14)
    kernels = [sparse.csr_array(mdp.dense()[:, a]) for a in range(2)]
    matrices = [sparse.csr_array(by_successor[:, a]) for a in range(2)]
    np.testing.assert_allclose(
        FiniteMDP.from_sparse(kernels, matrices, 0.9).rewards, expected, atol=1e-14
    )


def test_missing_actions_and_names_come_back_from_a_file(tmp_path):
    mdp = uneven(6, gaps=True)
    names = [f"room {s}" for s in range(mdp.states)]
    acts = [f"door {a}" for a in range(mdp.actions)]
    arrays = (mdp.successors, mdp.probabilities, mdp.rewards, 0.9)
    named = FiniteMDP(*arrays, state_names=names, action_names=acts)
    save_mdp(named, tmp_path / "m.npz")
    again = load_mdp(tmp_path / "m.npz")
    for field in ("successors", "probabilities", "rewards", "discount"):
        np.testing.assert_array_equal(getattr(again, field), getattr(named, field))
    assert list(again.state_names) == names
    assert list(again.action_names) == acts


# What is refused ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "line"),
    [
        ({"state_names": ["a"]}, "state_names: shape (1,) of <U1, expected 2 texts"),
        ({"action_names": [1, 2]}, "action_names: shape (2,) of int64, expected 2 texts"),
    ],
)
def test_names_that_are_too_few_or_no_texts_are_refused(names, line):
    arrays = (np.zeros((2, 2, 1), int), np.ones((2, 2, 1)), np.zeros((2, 2)), 0.5)
    assert refusal(FiniteMDP, *arrays, **names) == line


def test_a_state_without_actions_is_refused_by_its_number():
    mdp = random_mdp(0, 3, 2, 2)
    rewards = np.where([[True, True], [False, False], [True, False]], mdp.rewards, -np.inf)
    line = refusal(FiniteMDP, mdp.successors, mdp.probabilities, rewards, 0.9)
    assert line == "rewards: state 1: −inf for every action, expected one it can take"


@pytest.mark.parametrize(
    ("states", "actions", "rows", "rewards", "start"),
    [
        ([0, 1], [0], 2, [0, 0], "pairs: 2 states, 1 actions"),
        ([0, -1], [0, 0], 2, [0, 0], "states: -1, expected numbers ≥ 0"),
        ([0.5, 1], [0, 0], 2, [0, 0], "states: shape (2,) of float64"),
        ([0, 5], [0, 0], 2, [0, 0], "kernel: shape (2, 2), expected (2, S) with S above 5"),
        ([0, 0], [0, 1], 2, [0, 0], "rewards: state 1: −inf for every action"),
        ([0, 0, 1], [1, 1, 0], 3, [0, 0, 0], "pairs: state 0, action 1 more than once"),
    ],
)
def test_malformed_state_action_pairs_are_refused(states, actions, rows, rewards, start):
    kernel = np.zeros((rows, 2))
    kernel[:, 0] = 1
    assert refusal(FiniteMDP.from_pairs, states, actions, kernel, rewards, 0.9).startswith(start)


@pytest.mark.parametrize("dtype", ["uint8", "int32", "uint64"])
def test_pairs_are_numbered_by_integers_of_any_type(dtype):
    s, a = np.array([0, 1, 0], dtype), np.array([1, 0, 0], dtype)
    mdp = FiniteMDP.from_pairs(s, a, np.eye(2)[[0, 1, 1]], [1.0, 2.0, 3.0], 0.5)
    np.testing.assert_array_equal(mdp.rewards, [[3, 1], [2, -np.inf]])


def test_a_policy_with_an_action_that_a_state_does_not_have_is_refused():
    mdp = uneven(0)
    policy = np.zeros(mdp.states, int)
    policy[1] = 1  # which has one action only
    line = refusal(policy_values, mdp, policy)
    assert line == "policies: state 1: 1, expected an action that it has"


def test_what_is_proven_over_all_actions_is_refused_where_some_are_missing():
    from momentum_rl.planning.engine import scheme
    from momentum_rl.planning.theory import trace
    from paper.tables.assumption import assumption_check

    mdps = uneven(0).as_batch()
    line = "mdps: states without some of the actions, expected all of them"
    assert refusal(trace, mdps, scheme("movi"), 3) == line
    assert refusal(assumption_check, mdps, iteration=3) == line
