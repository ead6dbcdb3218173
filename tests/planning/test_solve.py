from importlib import import_module

import jax.numpy as jnp
import numpy as np
import pytest

from momentum_rl.core.schedules import Constant
from momentum_rl.core.targets import Algorithm, Target
from momentum_rl.mdp.families import garnet
from momentum_rl.mdp.model import FiniteMDP
from momentum_rl.mdp.solve.solution import policy_value, rounding_floor
from momentum_rl.planning.comparison import compare_schemes, run
from momentum_rl.planning.engine import scheme
from momentum_rl.planning.solver import solve
from tests.oracles import optimal_q, policy_q, random_mdp, refusal

NAMES = ("avi", "movi", "sql", "dpp")


@pytest.fixture(scope="module")
def mdp():
    return random_mdp(4, 8, 3, 3)


@pytest.fixture(scope="module")
def truth(mdp):
    return optimal_q(mdp)


@pytest.mark.parametrize("name", NAMES)
def test_an_exact_scheme_solves_to_its_tolerance(mdp, truth, name):
    tolerance = 1e-2 if name == "sql" else 1e-4  # SQL's error falls as 1/k
    solution = solve(mdp, name, tolerance=tolerance)
    assert solution.converged
    assert solution.bound <= solution.tolerance == tolerance
    assert solution.scheme == name
    assert solution.iterations < 10_000
    assert np.abs(solution.q - truth).max() <= solution.bound
    np.testing.assert_array_equal(solution.policy, truth.argmax(1))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("sampled", [False, True], ids=["exact", "sampled"])
@pytest.mark.parametrize("iterations", [1, 5, 150])
def test_the_bound_is_a_true_bound_however_early_a_scheme_stops(
    mdp, truth, name, sampled, iterations
):
    solution = solve(mdp, name, sampled=sampled, iterations=iterations, tolerance=1e-15)
    # 1e-15 is out of reach: only that ends a run before its iterations.
    assert solution.iterations == iterations or solution.bound <= 4 * solution.floor
    assert not solution.converged
    error = np.abs(solution.q - truth).max()
    assert error <= solution.bound
    assert solution.bound < 100


def test_avi_needs_a_number_of_sweeps_set_by_the_span_and_not_by_the_discount():
    mdp = garnet(50, 4, 4, seed=1, discount=0.99)
    assert solve(mdp, "avi").iterations < 100  # the norm of the residual alone takes 1,750


@pytest.mark.parametrize("name", NAMES)
def test_one_exact_iteration_certifies_zero(mdp, name):
    """From v = 0: q = r + the middle of γ/(1−γ) · max_a r, and half its span as the bound."""
    solution = solve(mdp, name, iterations=1)
    gains = 9 * mdp.rewards.max(1)
    np.testing.assert_allclose(
        solution.q, mdp.rewards + (gains.min() + gains.max()) / 2, rtol=0, atol=1e-12
    )
    assert solution.bound == pytest.approx(np.ptp(gains) / 2, abs=1e-12)
    np.testing.assert_array_equal(solution.policy, mdp.rewards.argmax(1))


@pytest.mark.parametrize("name", NAMES)
def test_a_sampled_scheme_runs_all_its_iterations_unless_it_has_a_tolerance(mdp, truth, name):
    solution = solve(mdp, name, sampled=True, iterations=250, seed=3)
    assert solution.iterations == 250
    assert solution.tolerance is None
    assert not solution.converged
    loose = solve(mdp, name, sampled=True, iterations=1000, tolerance=20.0, seed=3)
    assert loose.converged
    assert loose.iterations < 1000
    assert np.abs(loose.q - truth).max() <= loose.bound <= 20


def test_sampled_momentum_approaches_the_optimum(mdp, truth):
    movi_, avi = (
        solve(mdp, name, sampled=True, iterations=4000, seed=1) for name in ("movi", "avi")
    )
    assert np.abs(movi_.q - truth).max() <= movi_.bound < 0.5
    assert avi.bound > movi_.bound
    loss = np.abs(truth - policy_q(mdp, movi_.policy)).max()
    assert loss < 0.05


def test_more_samples_give_a_better_bound(mdp):
    bounds = [
        solve(mdp, "avi", sampled=True, samples=m, iterations=60, seed=1).bound for m in (1, 400)
    ]
    assert bounds[0] > 2 * bounds[1]


def test_a_seed_gives_the_same_solution_twice_and_another_seed_another(mdp):
    first, again, other = (
        solve(mdp, "movi", sampled=True, iterations=30, seed=seed) for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first.q, again.q)
    assert (first.q != other.q).any()


def test_the_size_of_chunks_does_not_change_a_solution(mdp, monkeypatch):
    whole = [solve(mdp, "movi", sampled=s, iterations=90, seed=2) for s in (False, True)]
    monkeypatch.setattr(import_module("momentum_rl.planning.solver"), "_CHUNK", 7)
    for before, sampled in zip(whole, (False, True)):
        after = solve(mdp, "movi", sampled=sampled, iterations=90, seed=2)
        np.testing.assert_array_equal(after.q, before.q)
        np.testing.assert_array_equal(after.policy, before.policy)
        assert after.bound == before.bound
        assert after.iterations == before.iterations


def test_solve_sees_the_samples_that_a_run_of_the_first_mdp_sees():
    mdps = garnet(6, 3, 3, seed=2, count=3)
    (chunk,) = run(mdps, [scheme("movi")], 41, seed=8, chunk=41)
    solution = solve(mdps[0], "movi", sampled=True, iterations=40, seed=8)
    np.testing.assert_array_equal(solution.policy, np.asarray(chunk.policies)[0, 40, 0])


def test_a_constant_beta_also_solves(mdp, truth):
    solution = solve(mdp, "movi", beta=Constant(0.5), tolerance=1e-8)
    assert solution.converged
    assert np.abs(solution.q - truth).max() <= 1e-8


def half_way():
    """A user's own scheme: half-way from q to AVI's target."""
    return Algorithm(
        "half-way",
        {
            "q": Target(
                lambda there: jnp.max(there["q"][0]),
                lambda here, a, r, discount, v, beta: (here["q"][0][a] + r + discount * v) / 2,
            )
        },
    )


def test_an_algorithm_of_ones_own_is_solved_and_compared(mdp, truth):
    mine = half_way()
    solution = solve(mdp, mine, tolerance=1e-8)
    assert solution.converged
    assert solution.scheme == "half-way"
    assert np.abs(solution.q - truth).max() <= solution.bound <= 1e-8
    assert solve(mdp, mine, sampled=True, iterations=20).iterations == 20
    result = compare_schemes(garnet(5, 2, 2, count=2), ["avi", mine], iterations=60)
    assert result.schemes == ("avi", "half-way")
    assert (result.l1[0] != result.l1[1]).any()


def test_the_value_of_a_solutions_policy_and_a_bound_on_its_loss(mdp, truth):
    for iterations in (1, 3, 10_000):
        solution = solve(mdp, "movi", iterations=iterations, tolerance=1e-4)
        value = policy_value(mdp, solution)
        q = policy_q(mdp, solution.policy)
        np.testing.assert_allclose(value.q, q, rtol=0, atol=1e-4)
        assert value.mean == pytest.approx(q[np.arange(8), solution.policy].mean(), abs=1e-4)
        assert np.abs(truth - q).max() <= value.loss_bound
    assert value.loss_bound < 1e-3


def test_solutions_are_float64_and_the_default_precision_stays(mdp):
    for sampled in (False, True):
        solution = solve(mdp, "movi", sampled=sampled, iterations=5)
        assert solution.q.dtype == np.float64
        assert solution.policy.dtype == np.int32
        assert isinstance(solution.bound, float)
        assert jnp.ones(3).dtype == jnp.float32


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"scheme": "what"}, "scheme: 'what', expected one of avi, movi, sql, dpp"),
        ({"iterations": 0}, "iterations: 0, expected at least 1"),
        ({"samples": 0}, "samples: 0, expected at least 1"),
        ({"tolerance": 0.0}, "tolerance: 0.0, expected a positive number"),
        ({"tolerance": -1.0}, "tolerance: -1.0, expected a positive number"),
        ({"tolerance": float("nan")}, "tolerance: nan, expected a positive number"),
        ({"tolerance": float("inf")}, "tolerance: inf, expected a positive number"),
        ({"seed": -1}, "seed: -1, expected an integer in 0..2**63 - 1"),
        ({"seed": 2**70, "sampled": True, "iterations": 3}, f"seed: {2**70}, expected "),
        ({"mdp": garnet(3, 2, 2, count=2)}, "mdp: a batch, expected one MDP"),
    ],
)
def test_an_impossible_solve_is_refused(mdp, arguments, complaint):
    assert refusal(solve, **({"mdp": mdp} | arguments)).startswith(complaint)


@pytest.mark.parametrize("name", NAMES)
def test_a_tolerance_below_the_floor_of_rounding_ends_a_solve_where_it_is_reached(name):
    mdp = random_mdp(4, 8, 3, 3)
    large = FiniteMDP(mdp.successors, mdp.probabilities, mdp.rewards * 1e9, 0.9)
    solution = solve(large, name, tolerance=1e-9, iterations=3_000)
    assert not solution.converged
    assert 1e-9 < rounding_floor(large) <= solution.floor < solution.bound
    assert np.abs(solution.q - optimal_q(large)).max() <= solution.bound
    if name == "avi":
        assert solution.iterations < 300
        assert solution.bound <= 4 * solution.floor


def test_value_iteration_ends_where_rounding_stops_it_above_the_floor():
    """Just above the floor, which no iterate attains, there is nothing to wait for."""
    mdp = random_mdp(4, 8, 3, 3)
    floor = solve(mdp, tolerance=1e-15).floor
    solution = solve(mdp, tolerance=float(np.nextafter(floor, 1)))
    assert not solution.converged
    assert solution.iterations < 2_000


def test_the_bar_of_a_solve_ends_at_its_end(mdp, monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    solution = solve(mdp, "avi", progress=True)
    assert f"{solution.iterations}/{solution.iterations}\x1b" in capsys.readouterr().err
