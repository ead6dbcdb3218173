"""The MDP with an entropy in its reward: closed forms, dense NumPy, brackets."""

import numpy as np
import pytest

import momentum_rl.mdp.solve.regularised
import momentum_rl.planning.theory
from momentum_rl.mdp.families import garnet
from momentum_rl.mdp.model import FiniteMDP
from momentum_rl.mdp.solve.exact import optimum, policy_values
from momentum_rl.mdp.solve.regularised import (
    entropy_bias,
    following,
    regularised_optimum,
    stochastic_policy_value,
)
from momentum_rl.planning.theory import policy_losses, stochastic_losses
from tests.oracles import dense_kernel, random_mdp, refusal


def soft_optimum(mdp, tau):
    """q^τ_* by value iteration on the dense kernel."""
    q, kernel = np.zeros(mdp.rewards.shape), dense_kernel(mdp)
    for _ in range(20_000):
        top = q.max(1)
        v = top + tau * np.log(np.exp((q - top[:, None]) / tau).sum(1))
        new = mdp.rewards + float(mdp.discount) * kernel @ v
        if np.abs(new - q).max() < 1e-15 * (1 + np.abs(q).max()):
            return new
        q = new
    raise AssertionError("did not settle")


def dense_value(mdp, pi, tau):
    """v^τ_π by a dense inverse."""
    own = (pi * mdp.rewards).sum(1) - tau * (pi * np.log(pi)).sum(1)
    moves = np.einsum("sa,san->sn", pi, dense_kernel(mdp))
    return np.linalg.inv(np.eye(mdp.states) - float(mdp.discount) * moves) @ own


def random_policy(mdp, seed=0):
    pi = np.random.default_rng(seed).exponential(size=mdp.rewards.shape)
    return pi / pi.sum(1, keepdims=True)


def test_with_one_state_the_optimum_is_a_logarithm():
    rewards = np.array([[1.0, 0.5, -2.0]])
    mdp = FiniteMDP(np.zeros((1, 3, 1), int), np.ones((1, 3, 1)), rewards, 0.8)
    found = regularised_optimum(mdp, 0.5)
    v = 0.5 * np.log(np.exp(rewards / 0.5).sum()) / 0.2
    np.testing.assert_allclose(found.q, rewards + 0.8 * v, atol=1e-10)
    np.testing.assert_allclose(found.policy, np.exp((rewards + 0.8 * v - v) / 0.5), atol=1e-10)


@pytest.mark.parametrize("large", [False, True], ids=["systems", "sweeps"])
@pytest.mark.parametrize("tau", [1e-4, 0.1, 5.0])
def test_the_optimum_is_that_of_soft_value_iteration_within_its_bound(tau, large, monkeypatch):
    if large:
        monkeypatch.setattr(momentum_rl.mdp.solve.regularised, "DIRECT", 1)
    for seed, gamma in ((0, 0.9), (1, 0.3), (2, 0.97)):
        mdp = random_mdp(seed, 7, 3, 3, gamma)
        found = regularised_optimum(mdp, tau)
        assert found.converged
        assert np.abs(found.q - soft_optimum(mdp, tau)).max() <= found.bound + 1e-13
        coarse = regularised_optimum(mdp, tau, tolerance=1e-3)
        assert np.abs(coarse.q - found.q).max() <= coarse.bound <= 1e-3


def test_the_entropy_moves_the_optimum_by_no_more_than_its_bias():
    mdps = garnet(10, 4, 3, count=5, seed=3)
    plain = optimum(mdps).q
    for tau in (1e-3, 0.1, 10.0):
        up = regularised_optimum(mdps, tau).q - plain
        bias = np.asarray(entropy_bias(mdps, tau))
        assert up.min() >= -1e-9
        assert (up.max((1, 2)) <= 0.9 * bias + 1e-9).all()
    assert up.max() > 0.5 * bias.min()  # a large τ comes near it


def test_tau_zero_is_the_optimum_itself_and_a_negative_one_is_refused():
    mdp = random_mdp(0, 5, 2, 2)
    np.testing.assert_array_equal(regularised_optimum(mdp, 0.0).q, optimum(mdp).q)
    assert refusal(regularised_optimum, mdp, -1.0) == "tau: -1.0, expected a number of at least 0"


@pytest.mark.parametrize("tau", [0.0, 0.3])
def test_a_stochastic_policy_is_worth_what_a_dense_inverse_says(tau):
    mdp = random_mdp(4, 6, 3, 3, 0.9)
    pi = random_policy(mdp)
    v, q, bound = stochastic_policy_value(mdp, pi, tau, 1e-10)
    expected = dense_value(mdp, pi, tau)
    np.testing.assert_allclose(v, expected, rtol=0, atol=1e-11)
    np.testing.assert_allclose(q, mdp.rewards + 0.9 * dense_kernel(mdp) @ expected, atol=1e-11)
    assert 0 < bound < 1e-9
    assert following(mdp, pi, tau).actions == 1


def test_a_deterministic_policy_may_be_written_as_probabilities():
    mdp = random_mdp(5, 6, 3, 3)
    actions = np.array([0, 1, 2, 0, 1, 2])
    pi = np.eye(3)[actions]
    _, q, _ = stochastic_policy_value(mdp, pi, 0.7, 1e-10)  # it has no entropy
    np.testing.assert_allclose(q, policy_values(mdp, actions), rtol=0, atol=1e-10)
    best = optimum(mdp).q
    one = policy_losses(mdp, best, actions[None])
    other = stochastic_losses(mdp, best, pi[None], 0.0)
    np.testing.assert_allclose([one.l1, one.sup], [other.l1, other.sup], rtol=0, atol=1e-12)


@pytest.mark.parametrize("large", [False, True], ids=["systems", "sweeps"])
@pytest.mark.parametrize("tau", [0.0, 0.2])
def test_the_loss_of_a_stochastic_policy_is_the_difference_of_two_values(tau, large, monkeypatch):
    if large:
        monkeypatch.setattr(momentum_rl.planning.theory, "DIRECT", 1)
    mdp = random_mdp(6, 6, 3, 3)
    best = regularised_optimum(mdp, tau).q
    policies = np.stack([random_policy(mdp, seed) for seed in range(3)])
    found = stochastic_losses(mdp, best, policies, tau)
    for i, pi in enumerate(policies):
        value = mdp.rewards + 0.9 * dense_kernel(mdp) @ dense_value(mdp, pi, tau)
        assert found.l1[i] == pytest.approx(np.abs(best - value).mean(), abs=1e-9)
        assert found.sup[i] == pytest.approx(np.abs(best - value).max(), abs=1e-9)


def test_the_optimal_soft_policy_loses_nothing():
    mdp = random_mdp(7, 6, 3, 3)
    best = regularised_optimum(mdp, 0.3)
    assert stochastic_losses(mdp, best.q, best.policy[None], 0.3).sup[0] < 1e-9


def test_actions_that_a_state_does_not_have_count_for_nothing():
    """The third action of state 0 is missing: the same as one that costs far too much."""
    mdp = random_mdp(8, 4, 3, 2)
    rewards = mdp.rewards.copy()
    rewards[0, 2] = -np.inf
    partial = FiniteMDP(mdp.successors, mdp.probabilities, rewards, 0.9)
    found = regularised_optimum(partial, 0.2)
    low = mdp.rewards.copy()
    low[0, 2] = -1e4  # e^(−50,000) of the policy
    dear = regularised_optimum(FiniteMDP(mdp.successors, mdp.probabilities, low, 0.9), 0.2)
    there = ~np.isneginf(rewards)
    np.testing.assert_allclose(found.q[there], dear.q[there], rtol=0, atol=1e-8)
    assert found.q[0, 2] == -np.inf
    assert found.policy[0, 2] == 0
    v, q, _ = stochastic_policy_value(partial, found.policy, 0.2, 1e-10)
    np.testing.assert_allclose(q[there], found.q[there], rtol=0, atol=1e-8)
    assert np.isfinite(v).all()
    assert stochastic_losses(partial, found.q, found.policy[None], 0.2).sup[0] < 1e-8
