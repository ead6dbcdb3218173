from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import quantecon.markov
from hypothesis import given, settings
from hypothesis import strategies as st

import momentum_rl.mdp.operators
import momentum_rl.mdp.solve.compiled
import momentum_rl.mdp.solve.exact
import momentum_rl.mdp.solve.methods
from momentum_rl.errors import UserError
from momentum_rl.mdp.families import garnet
from momentum_rl.mdp.model import FiniteMDP
from momentum_rl.mdp.solve.exact import optimum, policy_values, resolvent, weighted_norm
from tests.oracles import (
    dense_kernel,
    mdp_arrays,
    optimal_q,
    policy_q,
    random_mdp,
    rational_optimal_q,
    refusal,
)


@pytest.fixture(params=["direct", "matrix-free"])
def path(request, monkeypatch):
    """Both ways to an answer, whatever the size of the problem."""
    if request.param == "matrix-free":
        monkeypatch.setattr(momentum_rl.mdp.solve.exact, "DIRECT", 0)
        monkeypatch.setattr(momentum_rl.mdp.solve.methods, "DIRECT", 0)
    return request.param


def chain(length, discount):
    """Stay for nothing or go right; the last state pays 1 for ever."""
    here = np.arange(length)
    successors = np.stack([here, np.minimum(here + 1, length - 1)], 1)[..., None]
    rewards = np.zeros((length, 2))
    rewards[-1] = 1
    return FiniteMDP(successors, np.ones((length, 2, 1)), rewards, discount)


# The optimum -------------------------------------------------------------------------------------

SHAPES = [(2 + 3 * i % 41, 1 + i % 6, 1 + i % 5, (0.3, 0.9, 0.99)[i % 3]) for i in range(50)]


@pytest.mark.parametrize(
    ("seed", "shape"), list(enumerate(SHAPES)), ids=["x".join(map(str, s)) for s in SHAPES]
)
def test_the_optimum_is_quantecons(seed, shape):
    mdp = random_mdp(seed, *shape)
    kernel = dense_kernel(mdp)
    ddp = quantecon.markov.DiscreteDP(mdp.rewards, kernel, float(mdp.discount))
    v = ddp.solve(method="policy_iteration").v
    answer = optimum(mdp)
    expected = mdp.rewards + mdp.discount * kernel @ v
    np.testing.assert_allclose(answer.q, expected, rtol=0, atol=1e-10)
    assert answer.bound <= 1e-10


def test_the_optimum_of_a_batch_is_that_of_its_members(path):
    mdps = garnet(6, 3, 2, seed=1, count=4)
    answer = optimum(mdps)
    assert answer.q.shape == (4, 6, 3)
    assert answer.policy.shape == (4, 6)
    assert answer.bound.shape == (4,)
    for m, mdp in enumerate(mdps):
        np.testing.assert_allclose(answer.q[m], optimal_q(mdp), rtol=0, atol=2e-10)
        np.testing.assert_array_equal(answer.policy[m], optimal_q(mdp).argmax(1))


@pytest.mark.parametrize(("length", "discount"), [(1, 0.5), (20, 0.9), (60, 0.99)])
def test_a_chain_is_worth_the_discounted_end(path, length, discount):
    answer = optimum(chain(length, discount))
    v = discount ** np.arange(length)[::-1] / (1 - discount)
    np.testing.assert_allclose(answer.q[:, 1], v, rtol=0, atol=1.1e-10)
    np.testing.assert_allclose(answer.q[:-1, 0], discount * v[:-1], rtol=0, atol=1.1e-10)
    assert (answer.policy[:-1] == 1).all()
    assert answer.bound <= 1e-10


def test_a_chain_too_long_for_linear_systems_is_worth_the_discounted_end():
    length, discount = momentum_rl.mdp.solve.exact.DIRECT + 200, 0.99
    answer = optimum(chain(length, discount))
    v = discount ** np.arange(length)[::-1] / (1 - discount)
    np.testing.assert_allclose(answer.q[:, 1], v, rtol=0, atol=1.1e-10)
    assert answer.bound <= 1e-10


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("discount", "tolerance"), [(0.9, 1e-10), (0.99, 1e-9), (0.999, 1e-7)])
def test_the_matrix_free_answer_reaches_the_tolerance_it_was_asked_for(
    monkeypatch, seed, discount, tolerance
):
    mdp = random_mdp(seed, 12, 3, 2, discount)
    exact = optimum(mdp).q
    monkeypatch.setattr(momentum_rl.mdp.solve.methods, "DIRECT", 0)
    loose, tight = optimum(mdp, tolerance=1e-2), optimum(mdp, tolerance=tolerance)
    for answer, goal in ((loose, 1e-2), (tight, tolerance)):
        assert answer.bound <= goal
        assert np.abs(answer.q - exact).max() <= answer.bound + tolerance
    assert loose.bound >= tight.bound


@pytest.mark.parametrize("direct", [1000, 0], ids=["direct", "matrix-free"])
@settings(max_examples=40)
@given(
    arrays=mdp_arrays(
        shapes=[(1, 1, 1), (3, 2, 2), (4, 3, 4)],  # few: each is compiled
        discounts=st.sampled_from([0.0, 0.5, 0.9, 0.99]),
    ),
    tolerance=st.sampled_from([1e-12, 1e-6, 1.0]),
)
def test_the_certificate_bounds_the_error_in_exact_arithmetic(direct, arrays, tolerance):
    mdp = FiniteMDP(**arrays)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(momentum_rl.mdp.solve.exact, "DIRECT", direct)
        answer = optimum(mdp, tolerance=tolerance)
    truth = rational_optimal_q(mdp)
    error = max(
        abs(Fraction(float(answer.q[s, a])) - truth[s][a])
        for s, a in np.ndindex(*mdp.rewards.shape)
    )
    assert error <= Fraction(float(answer.bound))


def test_the_certificate_of_any_values_bounds_their_error():
    mdp = random_mdp(3, 6, 2, 3, 0.95)
    truth = optimal_q(mdp)
    rng = np.random.default_rng(0)
    with jax.enable_x64(True):
        device = momentum_rl.mdp.operators.on_device(mdp)
        for scale in (0.0, 0.1, 10.0, 1000.0):
            v = jnp.asarray(truth.max(1) + scale * rng.normal(size=6))
            backed_up = mdp.rewards + 0.95 * mdp.dense() @ np.asarray(v)
            found = momentum_rl.mdp.solve.compiled.optimal_bracket(device, v, backed_up)
            error = np.abs(np.asarray(backed_up + found.shift) - truth).max()
            assert error <= found.bound
            assert scale == 0 or error > found.bound / 100  # and it is not an empty promise


def test_a_constant_shift_of_the_values_costs_the_certificate_nothing():
    mdp = random_mdp(3, 6, 2, 3, 0.95)
    with jax.enable_x64(True):
        v = jnp.asarray(optimal_q(mdp).max(1) + 1000.0)
        backed_up = mdp.rewards + 0.95 * mdp.dense() @ np.asarray(v)
        device = momentum_rl.mdp.operators.on_device(mdp)
        found = momentum_rl.mdp.solve.compiled.optimal_bracket(device, v, backed_up)
    assert found.bound < 1e-8
    corrected = backed_up + np.asarray(found.shift)
    np.testing.assert_allclose(corrected, optimal_q(mdp), rtol=0, atol=1e-8)


def test_without_a_future_the_optimum_is_the_reward(path):
    mdp = random_mdp(1, 5, 3, 2, 0.0)
    answer = optimum(mdp)
    np.testing.assert_allclose(answer.q, mdp.rewards, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(answer.policy, mdp.rewards.argmax(1))


# Policies ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("states", "actions", "branching"), [(1, 1, 1), (7, 3, 4), (15, 2, 2)])
def test_the_value_of_policies_is_a_dense_inverse(path, states, actions, branching):
    mdp = random_mdp(2, states, actions, branching)
    policies = np.random.default_rng(0).integers(0, actions, (9, states))
    q = policy_values(mdp, policies)
    assert q.shape == (9, states, actions)
    for policy, found in zip(policies, q):
        np.testing.assert_allclose(found, policy_q(mdp, policy), rtol=0, atol=2e-10)
    np.testing.assert_allclose(policy_values(mdp, policies[3]), q[3], rtol=0, atol=2e-10)


def test_a_policys_values_are_the_same_bits_in_any_company(monkeypatch):
    mdp = random_mdp(2, 30, 4, 4)
    policies = np.random.default_rng(0).integers(0, 4, (9, 30))
    together = policy_values(mdp, policies)
    np.testing.assert_array_equal(policy_values(mdp, policies[2]), together[2])
    np.testing.assert_array_equal(policy_values(mdp, policies[3:]), together[3:])
    monkeypatch.setattr(momentum_rl.mdp.solve.exact, "_SYSTEMS", 2 * 30**2)
    np.testing.assert_array_equal(policy_values(mdp, policies), together)


def test_a_policy_that_is_asked_for_twice_is_evaluated_once(monkeypatch):
    solved = []
    original = np.linalg.solve
    monkeypatch.setattr(np.linalg, "solve", lambda a, b: solved.append(len(a)) or original(a, b))
    mdp = random_mdp(2, 3, 2, 2)
    q = policy_values(mdp, [[1, 0, 1], [0, 0, 1], [1, 0, 1], [1, 0, 1]])
    assert sum(solved) == 2
    np.testing.assert_array_equal(q[0], q[2])
    np.testing.assert_allclose(q[1], policy_q(mdp, [0, 0, 1]), rtol=0, atol=1e-12)


def test_the_matrix_free_value_of_a_policy_is_within_its_tolerance(monkeypatch):
    mdp, policy = random_mdp(5, 20, 3, 3, 0.99), np.arange(20) % 3
    for module in (momentum_rl.mdp.solve.exact, momentum_rl.mdp.solve.methods):
        monkeypatch.setattr(module, "DIRECT", 0)
    truth = policy_q(mdp, policy)
    loose = np.abs(policy_values(mdp, policy, tolerance=1e-3) - truth).max()
    assert loose <= 1e-3
    assert np.abs(policy_values(mdp, policy, tolerance=1e-8) - truth).max() <= 1e-8


@pytest.mark.parametrize(
    ("policies", "complaint"),
    [
        ([0, 1], "policies: shape (2,)"),
        ([0.0, 1.0, 0.0], "policies: shape (3,) of float64"),
        ([0, 2, 0], "policies: state 1: 2, expected an action in 0..1"),
        ([[0, 1, 0], [0, 0, -1]], "policies: state 2: -1"),
        (np.zeros((2, 2, 3), int), "policies: shape (2, 2, 3)"),
        (1, "policies: shape ()"),
    ],
)
def test_what_is_not_a_policy_is_refused(policies, complaint):
    assert refusal(policy_values, random_mdp(0, 3, 2, 2), policies).startswith(complaint)


def test_no_policies_have_no_values():
    assert policy_values(random_mdp(0, 3, 2, 2), np.zeros((0, 3), int)).shape == (0, 3, 2)


def test_a_batch_of_mdps_is_refused_where_one_is_meant():
    mdps = garnet(3, 2, 2, count=2)
    assert refusal(policy_values, mdps, np.zeros(3, int)).startswith("mdp: a batch")


# Norms -----------------------------------------------------------------------------


def test_norms_are_those_worked_out_by_hand():
    x = np.array([[3.0, 0.0], [0.0, -4.0]])
    mu = np.array([[0.5, 0.25], [0.25, 0.0]])
    assert weighted_norm(x) == 7 / 4
    assert weighted_norm(x, 2) == 2.5
    assert weighted_norm(x, np.inf) == 4
    assert weighted_norm(x, 1, mu) == 1.5
    assert weighted_norm(x, 2, mu) == pytest.approx(np.sqrt(4.5), abs=1e-15)
    assert weighted_norm(x, np.inf, mu) == 4


def test_norms_are_taken_over_the_last_two_axes():
    x = np.array([[[3.0, 0.0], [0.0, -4.0]], [[1.0, 1.0], [1.0, 1.0]]])
    np.testing.assert_array_equal(weighted_norm(x), [1.75, 1])
    np.testing.assert_array_equal(weighted_norm(x, np.inf), [4, 1])


@pytest.mark.parametrize("p", [0.5, 0, -1, np.nan])
def test_what_is_not_a_norm_is_refused(p):
    assert refusal(weighted_norm, np.ones((1, 1)), p).startswith(f"p: {p}, expected ")


def test_exact_answers_are_float64_and_leave_the_default_precision_alone(path):
    mdp = random_mdp(0, 4, 2, 2)
    answer = optimum(mdp)
    q = policy_values(mdp, answer.policy)
    assert {answer.q.dtype, q.dtype} == {np.dtype("float64")}
    assert jnp.ones(3).dtype == jnp.float32


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda mdp: resolvent(mdp, np.zeros((2, 5), int), mdp.rewards), "x: shape"),
        (lambda mdp: resolvent(mdp, np.zeros(5, int), mdp.rewards[None]), "policies: shape"),
        (lambda mdp: weighted_norm(np.zeros(5)), r"x: shape \(5,\), expected \[..., S, A\]"),
    ],
)
def test_arrays_of_another_rank_are_refused_by_name(call, says):
    with pytest.raises(UserError, match=says):
        call(momentum_rl.garnet(5, 2, 2))


def test_an_optimum_says_what_it_is_in_one_line():
    found = momentum_rl.optimum(momentum_rl.garnet(30, 4, 2, seed=0))
    assert repr(found) == f"Optimum(q* [30, 4], within {found.bound:.2g})"
    missed = found._replace(converged=np.array(False))
    assert repr(missed).endswith(", tolerance NOT reached)")
