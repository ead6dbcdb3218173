"""Where the span of the residual stands still for hundreds of sweeps: every promise is kept."""

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from momentum_rl.errors import ToleranceMissed
from momentum_rl.mdp.families import garnet
from momentum_rl.mdp.model import FiniteMDP
from momentum_rl.mdp.solve import certificates, exact, linear, methods, regularised
from momentum_rl.mdp.solve.exact import optimum, policy_values, resolvent
from momentum_rl.mdp.solve.solution import policy_value
from momentum_rl.planning.solver import solve
from tests.oracles import refusal
from tests.slowly_mixing import (
    corridor,
    grid,
    nearly_decomposable,
    optimal,
    resolved,
    two_cycle,
    two_slots,
)

DISCOUNTS = (0.999, 0.9999)
PROBLEMS = {  # two shapes, so that each function is compiled twice
    "open grid": lambda discount: grid(36, discount),
    "grid with walls": lambda discount: grid(36, discount, walls=0.25),
    "corridor": lambda discount: corridor(1200, discount),
    "two-cycle": lambda discount: two_cycle(1200, discount),
    "nearly decomposable": lambda discount: nearly_decomposable(1200, discount),
}
EACH = [(name, discount) for name in PROBLEMS for discount in DISCOUNTS]
each = pytest.mark.parametrize(("name", "discount"), EACH)


@functools.cache
def optimal_of(name, discount):
    """q*; the policy is only where the oracle starts from, which saves it hundreds of steps."""
    mdp = PROBLEMS[name](discount)
    return optimal(mdp, optimum(mdp).policy)


def kept_or_said(mdp, policy, x, tolerance):
    """The resolvent is within its tolerance of the truth, or within the bound that was said."""
    try:
        z, bound = resolvent(mdp, policy[None], x[None], tolerance=tolerance), tolerance
    except ToleranceMissed as missed:
        z, bound = missed.answer, missed.bound
        assert bound > tolerance
    assert np.abs(z[0] - resolved(mdp, policy, x)).max() <= bound
    return bound


@each
@pytest.mark.parametrize("tolerance", [1e-3, 1e-6, 1e-12])
def test_the_optimum_is_within_its_bound_and_a_missed_tolerance_is_said(name, discount, tolerance):
    mdp = PROBLEMS[name](discount)
    answer = optimum(mdp, tolerance=tolerance)
    truth = optimal_of(name, discount)
    assert np.abs(answer.q - truth).max() <= answer.bound
    assert answer.converged == (answer.bound <= tolerance)
    assert answer.converged or tolerance < 1e-5
    # Also what misses its tolerance is as near as float64 can prove: 1e-14 ‖q‖ / (1 − γ).
    assert answer.bound <= max(tolerance, 3e-14 * np.abs(truth).max() / (1 - discount))


@each
def test_by_default_the_optimum_is_as_near_as_float64_can_prove(name, discount):
    mdp = PROBLEMS[name](discount)
    answer = optimum(mdp)
    assert answer.converged
    assert np.abs(answer.q - optimal_of(name, discount)).max() <= answer.bound
    assert answer.bound <= 3e-14 * np.abs(answer.q).max() / (1 - discount)


@each
@pytest.mark.parametrize("tolerance", [1e-3, 1e-6, 1e-12])
def test_resolvents_are_within_their_tolerance_or_say_their_bound(name, discount, tolerance):
    mdp = PROBLEMS[name](discount)
    rng = np.random.default_rng(1)
    for policy in (rng.integers(0, mdp.actions, mdp.states), np.ones(mdp.states, int)):
        x = rng.normal(size=mdp.rewards.shape)
        assert kept_or_said(mdp, policy, x, tolerance) <= max(tolerance, 1e-4)
        assert kept_or_said(mdp, policy, mdp.rewards, tolerance) <= max(tolerance, 1e-4)


@each
def test_the_value_of_a_policy_is_that_of_a_sparse_system(name, discount):
    mdp = PROBLEMS[name](discount)
    policy = np.random.default_rng(2).integers(0, mdp.actions, mdp.states)
    truth = resolved(mdp, policy, mdp.rewards)
    allowed = 3e-14 * np.abs(truth).max() / (1 - discount)
    np.testing.assert_allclose(
        policy_values(mdp, policy), truth.astype(float), rtol=0, atol=max(1e-10, allowed)
    )


@each
@pytest.mark.parametrize("scheme", ["avi", "movi", "sql", "dpp"])
def test_a_scheme_is_within_its_bound_and_knows_whether_it_converged(name, discount, scheme):
    mdp = PROBLEMS[name](discount)
    for iterations, tolerance in ((200, 1e-6), (2_000, 10.0)):  # whole chunks: one program
        solution = solve(mdp, scheme, iterations=iterations, tolerance=tolerance)
        assert solution.converged == (solution.bound <= tolerance)
        assert solution.iterations <= iterations
        truth = optimal_of(name, discount)
        assert np.abs(solution.q - truth).max() <= solution.bound
        if not solution.converged:
            assert solution.iterations == iterations
    worth = policy_value(mdp, solution)
    loss = np.abs(truth - resolved(mdp, solution.policy, mdp.rewards)).max()
    assert loss <= worth.loss_bound


def test_a_corridor_is_worth_its_closed_form():
    length, discount = 5_000, 0.9999
    answer = optimum(corridor(length, discount), tolerance=1e-6)
    steps = np.arange(length)[::-1]
    v = -(1 - discount**steps) / (1 - discount)
    assert answer.converged
    assert np.abs(answer.q.max(1) - v).max() <= answer.bound <= 1e-6
    assert (answer.policy[:-1] == 1).all()


def test_the_first_slippery_grid_that_went_wrong_is_right():
    """60 × 60 at γ = .999: all rewards are at most 0, and v(start) was +120,658."""
    answer = optimum(grid(60, 0.999), tolerance=1e-6)
    assert answer.converged
    assert answer.q[0].max() == pytest.approx(-134.656598, abs=1e-5)
    assert answer.q.max() <= answer.bound


def no_further(mdp, policy, v, *_, **__):
    """An evaluation that brings nothing."""
    return linear.Evaluation(np.asarray(v), np.inf)


def test_without_sparse_systems_sweeps_go_on_until_the_tolerance(monkeypatch):
    monkeypatch.setattr(linear, "_FILL", 0)
    mdp = grid(36, 0.999, walls=0.25)  # an enclosed cell keeps the span: it falls by γ a sweep
    answer = optimum(mdp, tolerance=1e-5, method="mpi")
    assert answer.converged
    assert np.abs(answer.q - optimal(mdp, answer.policy)).max() <= answer.bound
    monkeypatch.setattr(methods, "evaluate", no_further)
    q = policy_values(mdp, answer.policy, tolerance=1e-5)
    assert np.abs(q - resolved(mdp, answer.policy, mdp.rewards)).max() <= 1e-5


def test_without_patience_the_miss_is_said_and_the_best_is_returned(monkeypatch):
    monkeypatch.setattr(methods, "PATIENCE", 20)
    monkeypatch.setattr(methods, "evaluate", no_further)
    monkeypatch.setattr(linear, "_FILL", 0)
    mdp = grid(36, 0.999)
    few = optimum(mdp, tolerance=1e-6)
    assert not few.converged
    assert not optimum(mdp).converged
    assert np.abs(few.q - optimal(mdp, few.policy)).max() <= few.bound
    policy = np.ones(mdp.states, int)
    for call in (
        lambda: policy_values(mdp, policy, tolerance=1e-6),
        lambda: policy_values(mdp, policy),
        lambda: resolvent(mdp, policy[None], mdp.rewards[None], tolerance=1e-6),
        lambda: regularised.certain_optimum(mdp),
    ):
        with pytest.raises(ToleranceMissed) as missed:
            call()
        assert missed.value.bound > 1e-6
        assert missed.value.answer is not None
        assert "\n" not in str(missed.value)


def test_the_answer_is_the_best_found_and_not_the_last(monkeypatch):
    """On an open grid the bound of modified policy iteration rises before it falls."""
    mdp, bounds = grid(36, 0.999), []
    for patience in (1, 4, 16):
        monkeypatch.setattr(methods, "_LOOKS", 1)
        monkeypatch.setattr(methods, "PATIENCE", patience)
        bounds.append(float(optimum(mdp, tolerance=1e-6, method="mpi").bound))
    assert bounds == sorted(bounds, reverse=True)
    run = methods._Run(mdp, certificates.Aim(1e-6, True))
    last = [run.to(np.zeros(mdp.states), n, 8).bound for n in (1, 2, 4, 8, 16)]
    assert run.best_found("mpi").state.bound == min(last) < max(last)


def test_a_tolerance_below_rounding_ends_at_once_as_near_as_it_can(monkeypatch):
    mdp = garnet(300, 4, 4, seed=0, discount=0.99)
    large = FiniteMDP(mdp.successors, mdp.probabilities, 1e9 * mdp.rewards, 0.99)
    answer = optimum(large, tolerance=1e-6)
    assert not answer.converged
    assert answer.bound < 1
    assert np.abs(answer.q - optimal(large, answer.policy)).max() <= answer.bound
    for direct in (1_000, 0):
        monkeypatch.setattr(exact, "DIRECT", direct)
        with pytest.raises(ToleranceMissed, match=r"tolerance: 1e-06, reached .* float64 can"):
            policy_values(large, answer.policy, tolerance=1e-6)


@pytest.mark.parametrize("tolerance", [0.0, -1.0, np.nan, np.inf])
def test_what_is_not_a_tolerance_is_refused(tolerance):
    mdp, policy = garnet(5, 2, 2), np.zeros(5, int)
    line = f"tolerance: {tolerance}, expected a positive number"
    assert refusal(optimum, mdp, tolerance=tolerance) == line
    assert refusal(policy_values, mdp, policy, tolerance=tolerance) == line


def test_rows_that_miss_one_are_in_the_bound_also_when_the_span_is_zero():
    """All rewards are −1, so the span is 0 from the start, and only the rows' sums decide.

    With p = 1 − 2⁻⁵² in every row v* is −1/(1 − γ (1 − 2⁻⁵²)), off −1/(1 − γ) by γ 2⁻⁵²/(1 − γ)².
    """
    discount, states = 1 - 2.0**-14, 1_200
    rows = np.full((states, 2, 1), 1 - 2.0**-52)
    mdp = FiniteMDP(np.zeros((states, 2, 1), int), rows, np.full((states, 2), -1.0), discount)
    assert (mdp.probabilities == rows).all()
    answer = optimum(mdp, tolerance=1e-3)
    off = discount * 2.0**-52 / (1 - discount) ** 2
    truth = -1 / (1 - discount) + off
    assert np.abs(answer.q - truth).max() <= answer.bound
    assert answer.bound >= off


def test_systems_that_would_fill_the_memory_are_told_before_they_are_factored():
    policy = np.zeros(10_000, int)
    assert linear.solver(garnet(60_000, 1, 4), np.zeros(60_000, int)) is None
    lines = grid(100, 0.999)
    assert linear.fill(linear.system(lines, policy)) < 100 * 100 * 250
    # A state that all lead to now and then (a reset) does not hide that the rest is a corridor.
    to = np.stack([np.minimum(np.arange(10_000) + 1, 9_999)] * 2, 1)
    reset = FiniteMDP(*two_slots(to, 0 * to, 1e-3), np.ones((10_000, 2)), 0.999)
    assert linear.fill(linear.system(reset, policy)) < 10 * 10_000
    solve_ = linear.solver(reset, policy)
    np.testing.assert_allclose(solve_(np.ones(10_000)), 1000, rtol=1e-12)


@st.composite
def structured(draw):
    """Cycles, walks, blocks, trees of one shape [240, 2, 2], with rewards here and there."""
    states = 240
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    here = np.arange(states)
    length = draw(st.sampled_from([2, 3, 40, 240]))
    ways = {
        "on": np.minimum(here + 1, states - 1),
        "back": np.maximum(here - 1, 0),
        "round": here // length * length + (here + 1) % length,
        "stay": here,
        "root": here // 2,
        "block": here // length * length + rng.integers(0, length, states),
        "anywhere": rng.integers(0, states, states),
    }
    likely, other = (
        np.stack([ways[draw(st.sampled_from(sorted(ways)))] for _ in range(2)], 1) for _ in range(2)
    )
    leak = draw(st.sampled_from([0.0, 1e-6, 1e-2, 0.5]))
    rewards = rng.normal(size=(states, 2)) * (rng.random((states, 2)) < draw(st.floats(0.01, 1)))
    rewards *= draw(st.sampled_from([1.0, 1e-4, 1e6]))
    discount = draw(st.sampled_from([0.5, 0.99, 0.999, 0.9999]))
    return FiniteMDP(*two_slots(likely, other, leak), rewards, discount)


@settings(max_examples=40)
@given(mdp=structured(), tolerance=st.sampled_from([1e-9, 1e-6, 1e-2]))
def test_on_structured_problems_every_promise_is_kept_or_said_to_be_missed(mdp, tolerance):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, "DIRECT", 0)
        answer, near = optimum(mdp, tolerance=tolerance), optimum(mdp)
        truth = optimal(mdp, near.policy)
        for found in (answer, near):
            assert np.abs(found.q - truth).max() <= found.bound
        assert near.converged
        assert answer.converged == (answer.bound <= tolerance)
        kept_or_said(mdp, answer.policy, mdp.rewards, tolerance)


@pytest.mark.slow
@pytest.mark.parametrize("walls", [0.0, 0.2])
@pytest.mark.parametrize("discount", DISCOUNTS)
@pytest.mark.parametrize("size", [200, 300])
def test_a_large_grid_is_right_to_its_bound(size, discount, walls):
    mdp = grid(size, discount, walls=walls, seed=1)
    answer = optimum(mdp, tolerance=1e-6)
    truth = optimal(mdp, answer.policy)
    assert answer.converged
    assert np.abs(answer.q - truth).max() <= answer.bound <= 1e-6
    assert kept_or_said(mdp, answer.policy, mdp.rewards, 1e-6) == 1e-6
    solution = solve(mdp, "avi", iterations=3_000, tolerance=1e-6)
    assert np.abs(solution.q - truth).max() <= solution.bound
    assert solution.converged == (solution.bound <= 1e-6)
    assert solution.converged or walls > 0
