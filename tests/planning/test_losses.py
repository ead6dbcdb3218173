from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import momentum_rl.mdp.solve.exact
import momentum_rl.planning.theory
from momentum_rl.mdp.families import garnet
from momentum_rl.mdp.solve.exact import optimum
from momentum_rl.planning.theory import batch_losses, distinct_rows, policy_losses
from tests.oracles import optimal_q, policy_q, random_mdp


@pytest.fixture(params=["direct", "matrix-free"])
def path(request, monkeypatch):
    if request.param == "matrix-free":
        monkeypatch.setattr(momentum_rl.mdp.solve.exact, "DIRECT", 0)
        monkeypatch.setattr(momentum_rl.planning.theory, "DIRECT", 0)
    return request.param


def brute_force(mdp, policies):
    differences = [optimal_q(mdp) - policy_q(mdp, policy) for policy in policies]
    return (
        [np.abs(d).mean() for d in differences],
        [np.abs(d).max() for d in differences],
    )


def test_losses_are_those_of_dense_inverses(path):
    mdp = random_mdp(1, 7, 3, 3)
    policies = np.random.default_rng(0).integers(0, 3, (8, 7)).astype(np.uint8)
    policies = policies[[0, 1, 2, 1, 3, 4, 5, 6, 7, 0]]
    losses = policy_losses(mdp, optimum(mdp).q, policies)
    l1, sup = brute_force(mdp, policies)
    np.testing.assert_allclose(losses.l1, l1, rtol=0, atol=1e-9)
    np.testing.assert_allclose(losses.sup, sup, rtol=0, atol=1e-9)


def test_an_optimal_policy_loses_nothing(path):
    mdp = random_mdp(1, 7, 3, 3)
    losses = policy_losses(mdp, optimum(mdp).q, optimum(mdp).policy[None])
    np.testing.assert_allclose([losses.l1, losses.sup], 0, atol=1e-9)


def test_a_tiny_loss_is_not_lost_in_rounding():
    """One state; action 1 earns 1e-12 less than action 0, for ever."""
    mdp = momentum_rl.FiniteMDP(
        np.zeros((1, 2, 1), int), np.ones((1, 2, 1)), np.array([[1.0, 1.0 - 2.0**-40]]), 0.99
    )
    q = optimum(mdp).q
    losses = policy_losses(mdp, q, np.array([[1]]))
    # v* − v_π = 2⁻⁴⁰ / (1 − γ), and both q's are one discounted step behind
    assert losses.sup[0] == pytest.approx(0.99 * 2.0**-40 / 0.01, rel=1e-2)


def test_a_policys_losses_are_the_same_bits_in_any_company(path, monkeypatch):
    mdp = garnet(30, 4, 4, seed=1) if path == "direct" else random_mdp(1, 7, 3, 3)
    policies = np.random.default_rng(0).integers(0, mdp.actions, (40, mdp.states))
    q = optimum(mdp).q
    together = policy_losses(mdp, q, policies)

    def assert_same(losses, some):
        np.testing.assert_array_equal(losses.l1, together.l1[some])
        np.testing.assert_array_equal(losses.sup, together.sup[some])

    for some in (slice(0, 1), slice(5, 6), slice(2, 4), slice(3, 40), slice(None, None, -1)):
        assert_same(policy_losses(mdp, q, policies[some]), some)
    for systems in (1, 2, 7):
        monkeypatch.setattr(momentum_rl.planning.theory, "_SYSTEMS", systems * mdp.states**2)
        assert_same(policy_losses(mdp, q, policies), slice(None))


def test_each_distinct_policy_is_evaluated_once(monkeypatch):
    solved = []
    original = np.linalg.solve
    monkeypatch.setattr(np.linalg, "solve", lambda a, b: solved.append(len(a)) or original(a, b))
    mdp = random_mdp(1, 3, 2, 3)
    q = optimal_q(mdp)
    policies = np.array([[0, 1, 0], [1, 1, 0], [0, 1, 0], [0, 1, 0], [1, 1, 0]])
    losses = policy_losses(mdp, q, policies)
    assert sum(solved) == 2
    assert len(set(losses.l1)) == 2
    np.testing.assert_allclose(losses.l1, brute_force(mdp, policies)[0], rtol=0, atol=1e-11)


def test_losses_of_a_batch_are_those_of_its_members(path):
    mdps = garnet(5, 3, 2, seed=1, count=3)
    policies = np.random.default_rng(0).integers(0, 3, (2, 4, 3, 5))  # [schemes, K, M, S]
    with ThreadPoolExecutor(2) as pool:
        losses = batch_losses(mdps, optimum(mdps).q, policies, pool)
    assert losses.l1.shape == losses.sup.shape == (2, 4, 3)
    for m, mdp in enumerate(mdps):
        l1, sup = brute_force(mdp, policies[:, :, m].reshape(-1, 5))
        np.testing.assert_allclose(losses.l1[..., m].reshape(-1), l1, rtol=0, atol=1e-9)
        np.testing.assert_allclose(losses.sup[..., m].reshape(-1), sup, rtol=0, atol=1e-9)


# Distinct rows -----------------------------------------------------------------------------------


def assert_distinct(rows, first, place):
    assert len(first) == len({row.tobytes() for row in rows})
    assert len({rows[i].tobytes() for i in first}) == len(first)
    np.testing.assert_array_equal(rows[first][place], rows)


@given(
    arrays(np.uint8, st.tuples(st.integers(1, 30), st.integers(1, 4)), elements=st.integers(0, 2))
)
def test_distinct_rows_are_found_and_every_row_knows_its_own(rows):
    assert_distinct(rows, *distinct_rows(rows))


def test_rows_that_share_a_hash_are_still_told_apart(monkeypatch):
    class Ones:
        def integers(self, low, high, size, dtype):
            return np.ones(size, dtype)

    monkeypatch.setattr(np.random, "default_rng", lambda seed: Ones())
    rows = np.array([[0, 1], [1, 0], [0, 1], [2, 2], [1, 0]], np.uint8)  # 0 + 1 = 1 + 0
    assert_distinct(rows, *distinct_rows(rows))
