"""Errors of a run and their sums, against explicit matrices over pairs (s, a)."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import momentum_rl.planning.theory as errors_module
from momentum_rl.core.schedules import Constant
from momentum_rl.mdp.families import garnet
from momentum_rl.mdp.model import FiniteMDP
from momentum_rl.mdp.operators import on_device
from momentum_rl.planning.comparison import run
from momentum_rl.planning.engine import member_keys, sample, scheme, thresholds
from momentum_rl.planning.theory import (
    Trace,
    cumulative,
    residual,
    trace,
    weighted_error_norms,
)
from tests.oracles import pair_kernel, random_mdp, refusal

NAMES = ("avi", "movi", "sql", "dpp")


def stacked(mdps):
    fields = ("successors", "probabilities", "rewards", "discount")
    return FiniteMDP(*(np.stack([getattr(mdp, name) for mdp in mdps]) for name in fields))


def mixed_batch(seed=0):
    """MDPs with rewards per (s, a), repeated successors, and a discount of their own each."""
    discounts = (0.0, 0.05, 0.5, 0.8, 0.9, 0.99)
    return stacked([random_mdp(seed + i, 4, 3, 3, gamma) for i, gamma in enumerate(discounts)])


@pytest.fixture(scope="module")
def mdps():
    return mixed_batch()


@pytest.fixture(scope="module")
def runs(mdps):
    return {name: trace(mdps, scheme(name), 12, seed=3) for name in NAMES}


class Dense:
    """One member of a run with its explicit matrices; iterations are counted from 1."""

    def __init__(self, mdps, run, m):
        self.mdp, self.gamma = mdps[m], float(mdps.discount[m])
        self.kernels = [None, *(pair_kernel(self.mdp, policy) for policy in run.policies[:, m])]
        self.q = run.q[:, m].reshape(len(run.q), -1)
        self.errors = [None, *run.errors[:, m].reshape(len(run.errors), -1)]
        self.rewards = self.mdp.rewards.reshape(-1)
        self.identity = np.eye(self.rewards.size)

    def product(self, j, i):
        """P_{j:i} = P_{π_j} P_{π_{j−1}} … P_{π_i}."""
        result = self.identity
        for t in range(i, j + 1):
            result = self.kernels[t] @ result
        return result

    def source(self, i):
        """(I − γ P_{π_i}) ε_i."""
        return (self.identity - self.gamma * self.kernels[i]) @ self.errors[i]

    def weighted(self, k, j):
        """E'_{k,j} = −Σ_{i=1}^{k−j} P_{i+j:i+1} (I − γ P_{π_i}) ε_i."""
        terms = [self.product(i + j, i + 1) @ self.source(i) for i in range(1, k - j + 1)]
        return -np.sum(terms, 0) if terms else np.zeros(self.rewards.size)

    def discounted(self, k):
        """Σ_{j<k} γ^j E'_{k,j}."""
        zero = np.zeros(self.rewards.size)
        return sum((self.gamma**j * self.weighted(k, j) for j in range(k)), zero)

    def initial(self, k):
        """Σ_{j≤k} γ^j P_{j:1} (T_{π_1} q_0 − q_0)."""
        residual = self.rewards + self.gamma * self.kernels[1] @ self.q[0] - self.q[0]
        return sum(self.gamma**j * self.product(j, 1) @ residual for j in range(k + 1))


def made_up(seed, members=2, states=3, actions=2, iterations=6):
    """A run that no scheme made: any policies, any errors, and a q_0 that is not zero."""
    rng = np.random.default_rng(seed)
    shape = (members, states, actions)
    discounts = rng.choice([0.0, 0.05, 0.3, 0.9, 0.99], members)
    mdps = stacked(
        [random_mdp(seed + i, states, actions, 2, gamma) for i, gamma in enumerate(discounts)]
    )
    run = Trace(
        scheme("movi"),
        rng.integers(0, actions, (iterations + 1, members, states)),
        rng.normal(size=(iterations + 1, *shape)),
        rng.normal(size=(iterations, *shape)),
    )
    return mdps, run


def member(run, m):
    return run._replace(
        policies=run.policies[:, m : m + 1],
        q=run.q[:, m : m + 1],
        errors=run.errors[:, m : m + 1],
    )


# ε_k ---------------------------------------------------------------------------------------------


def exact_update(name, dense, k):
    """What iteration k would give without an error, in q for AVI and MoVI and else in ψ."""
    r, gamma, now = dense.rewards, dense.gamma, dense.kernels[k]
    if name in ("avi", "movi"):
        return r + gamma * now @ dense.q[k - 1]
    if name == "sql":  # eq:psi-sql with ψ_k = k q_k
        psi = (k - 1) * dense.q[k - 1]
        before = gamma * dense.kernels[k - 1] @ ((k - 2) * dense.q[k - 2]) if k > 1 else 0
        return psi + r + gamma * now @ psi - before
    psi = dense.q[k - 1]  # eq:psi-dpp
    own = psi.reshape(dense.mdp.rewards.shape).max(1, keepdims=True)
    return psi + r + gamma * now @ psi - np.broadcast_to(own, dense.mdp.rewards.shape).reshape(-1)


@pytest.mark.parametrize("name", NAMES)
def test_the_error_is_what_the_papers_recursion_leaves_unexplained(mdps, runs, name):
    largest = 0.0
    for m in range(len(mdps)):
        dense = Dense(mdps, runs[name], m)
        for k in range(1, len(runs[name].errors) + 1):
            reached = k * dense.q[k] if name == "sql" else dense.q[k]
            error = reached - exact_update(name, dense, k)
            np.testing.assert_allclose(dense.errors[k], error, rtol=0, atol=1e-10)
            largest = max(largest, np.abs(error).max())
    assert largest > 0.1  # there is something to explain


@pytest.mark.parametrize("name", NAMES)
def test_the_policy_of_an_iteration_is_greedy_for_what_the_one_before_left(runs, name):
    q = runs[name].q
    for k in range(1, len(q) + 1):
        # MoVI acts on the mean of q_0 … q_{k−1}; π_{K+1} comes after the last iteration.
        acts = q[:k].mean(0) if name == "movi" else q[k - 1]
        chosen = np.take_along_axis(acts, runs[name].policies[k - 1][..., None], -1)[..., 0]
        np.testing.assert_allclose(chosen, acts.max(-1), rtol=0, atol=1e-12)
    assert len(runs[name].policies) == len(q)


@pytest.mark.parametrize("beta", [0.0, 0.5, 0.9])
def test_with_a_constant_beta_the_policy_is_greedy_for_the_moving_average(mdps, beta):
    result = trace(mdps, scheme("movi", Constant(beta)), 12, seed=3)
    for k in range(1, len(result.q) + 1):
        weights = (1 - beta) * beta ** np.arange(k - 1, -1, -1.0)
        weights[0] = beta ** (k - 1)  # q_0 enters whole
        assert weights.sum() == pytest.approx(1)
        acts = np.tensordot(weights, result.q[:k], 1)
        chosen = np.take_along_axis(acts, result.policies[k - 1][..., None], -1)[..., 0]
        np.testing.assert_allclose(chosen, acts.max(-1), rtol=0, atol=1e-12)


def test_a_trace_replayed_from_its_samples_by_loops_is_the_same(mdps):
    """Two samples each; s' is read from the same draws, the rest is a loop over (s, a)."""
    result = trace(mdps, scheme("movi"), 5, seed=8, samples=2)
    with jax.enable_x64(True):
        device = on_device(mdps)
        limits = thresholds(mdps).reshape(*device.rewards.shape, -1)
        keys = member_keys(8, len(mdps))
        drawn = [np.asarray(sample(device, limits, keys, k, 2)) for k in range(1, 6)]
    shape = (2, len(mdps), mdps.states, mdps.actions)
    for m in range(len(mdps)):
        q = h = np.zeros(shape[2:])
        for k in range(1, 6):
            successors = drawn[k - 1].reshape(shape)[:, m] - m * mdps.states
            policy, new = h.argmax(1), np.empty_like(q)
            for s, a in np.ndindex(*q.shape):
                reads = [q[n, policy[n]] for n in successors[:, s, a]]
                new[s, a] = mdps[m].rewards[s, a] + mdps.discount[m] * np.mean(reads)
            q, h = new, (k * h + new) / (k + 1)
            np.testing.assert_array_equal(result.policies[k - 1, m], policy)
            np.testing.assert_allclose(result.q[k, m], q, rtol=0, atol=1e-12)


def test_a_trace_sees_the_samples_of_a_comparison_with_its_seed(mdps, runs):
    (chunk,) = run(mdps, [scheme(name) for name in NAMES], 12, seed=3)
    for name, policies in zip(NAMES, np.asarray(chunk.policies)):
        np.testing.assert_array_equal(runs[name].policies[:-1], policies)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_random_no_error(name):
    mdps = stacked([random_mdp(seed, 4, 2, 1) for seed in range(3)])
    result = trace(mdps, scheme(name), 10)
    np.testing.assert_allclose(result.errors, 0, atol=1e-12)
    assert np.abs(result.q).max() > 0.1


@pytest.mark.parametrize("name", NAMES)
def test_the_first_error_from_zero_is_zero_and_errors_are_centred(name):
    """In iteration 1 every successor is worth nothing; later, 4,000 copies average out."""
    one = random_mdp(5, 3, 2, 3)
    copies = stacked([one] * 4000)
    errors = trace(copies, scheme(name), 3, seed=1).errors
    np.testing.assert_allclose(errors[0], 0, atol=1e-15)
    deviation = errors[1:].std(1) / np.sqrt(4000)
    assert (np.abs(errors[1:].mean(1)) <= 5 * deviation + 1e-12).all()
    assert errors[2].std(1).max() > 0.1


def test_more_samples_make_smaller_errors():
    mdps = garnet(10, 2, 4, seed=2, count=40)
    spread = [trace(mdps, scheme("avi"), 2, samples=m).errors[1].std() for m in (1, 16)]
    assert spread[0] / spread[1] == pytest.approx(4, rel=0.15)


def test_the_cumulative_error_is_minus_the_sum_so_far():
    errors = np.array([1.0, -4.0, 0.5]).reshape(3, 1, 1, 1)
    assert cumulative(errors).ravel().tolist() == [-1.0, 3.0, 2.5]


# Weighted errors ---------------------------------------------------------------------------------


@settings(max_examples=40)
@given(seed=st.integers(0, 2**20))
def test_any_policies_and_errors_give_the_sums_of_the_explicit_matrices(seed):
    """n (L_k − h_k) = Σ_{j<k} γ^j E'_{k,j} + Σ_{j≤k} γ^j P_{j:1}(T_{π_1} q_0 − q_0)."""
    mdps, result = made_up(seed)
    lower = residual(mdps, result).lower
    norms = weighted_error_norms(mdps, result, precision=1e-300)
    for m in range(len(mdps)):
        dense = Dense(mdps, result, m)
        for n in range(1, 7):
            k = n - 1
            found = n * lower[n - 1, m].reshape(-1)
            expected = dense.discounted(k) + dense.initial(k)
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)
            each = [np.abs(dense.weighted(k, j)) for j in range(k)]
            powers = dense.gamma ** np.arange(k)
            sup, l1 = (powers @ [f(x) for x in each] if k else 0 for f in (np.max, np.mean))
            assert norms.sup[n - 1, m] == pytest.approx(sup, abs=1e-10)
            assert norms.lp[n - 1, m] == pytest.approx(l1, abs=1e-10)


def test_the_norm_of_weighted_errors_is_that_of_any_distribution(mdps, runs):
    rng = np.random.default_rng(0)
    nu = rng.dirichlet(np.ones(12)).reshape(4, 3)
    found = weighted_error_norms(mdps, runs["movi"], nu=nu, precision=1e-300).lp
    for m in range(len(mdps)):
        dense = Dense(mdps, runs["movi"], m)
        expected = [
            sum(dense.gamma**j * nu.reshape(-1) @ np.abs(dense.weighted(k, j)) for j in range(k))
            for k in range(12)
        ]
        np.testing.assert_allclose(found[:, m], expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("p", [1.5, 2, 3])
def test_the_lp_norm_of_weighted_errors_is_that_of_its_definition(mdps, runs, p):
    nu = np.random.default_rng(1).dirichlet(np.ones(12)).reshape(4, 3)
    norms = weighted_error_norms(mdps, runs["movi"], p=p, nu=nu, precision=1e-300)
    assert norms.p == p
    for m in range(len(mdps)):
        dense = Dense(mdps, runs["movi"], m)
        for k in range(12):
            expected = sum(
                dense.gamma**j * (nu.reshape(-1) @ np.abs(dense.weighted(k, j)) ** p) ** (1 / p)
                for j in range(k)
            )
            assert norms.lp[k, m] == pytest.approx(expected, abs=1e-10)


def test_a_p_below_one_is_no_norm(mdps, runs):
    for p in (0.5, np.inf, np.nan):
        line = refusal(weighted_error_norms, mdps, runs["movi"], p=p)
        assert line.startswith(f"p: {p}, expected a number of at least 1")


@pytest.mark.parametrize("precision", [0.5, 0.2])
def test_with_few_ages_the_sum_is_above_the_exact_one_by_at_most_the_stated_share(precision):
    gammas = (0.5, 0.8, 0.9, 0.9)
    mdps = stacked([random_mdp(i, 4, 2, 3, gamma) for i, gamma in enumerate(gammas)])
    result = trace(mdps, scheme("movi"), 24, seed=2)
    rough = weighted_error_norms(mdps, result, precision=precision)
    ages = int(np.ceil(np.log(precision) / np.log(max(gammas))))
    assert ages < 24  # so that a tail is left out
    above = 0.0
    for m, gamma in enumerate(gammas):
        dense = Dense(mdps, result, m)
        sizes = [np.abs(dense.source(i)).max() for i in range(1, 24)]
        share = gamma**ages / (1 - gamma) * np.concatenate([[0], np.cumsum(sizes)])
        each = [[np.abs(dense.weighted(k, j)) for j in range(k)] for k in range(24)]
        for kind, norm in (("lp", np.mean), ("sup", np.max)):
            exact = [sum(gamma**j * norm(x) for j, x in enumerate(row)) for row in each]
            excess = getattr(rough, kind)[:, m] - exact
            assert (excess >= -1e-9).all()
            assert (excess <= share + 1e-9).all()
            above = max(above, excess.max())
    assert above > 0


def test_where_no_age_is_left_out_nothing_is_added():
    """At k ≤ J every E'_{k,j} is kept, whatever γ is: the sums are the exact ones."""
    mdps = stacked([random_mdp(i, 4, 3, 3, 0.99) for i in range(2)])
    result = trace(mdps, scheme("movi"), 12, seed=3)
    found = weighted_error_norms(mdps, result)
    for m in range(2):
        dense = Dense(mdps, result, m)
        exact = [
            sum(0.99**j * np.abs(dense.weighted(k, j)).max() for j in range(k)) for k in range(12)
        ]
        np.testing.assert_allclose(found.sup[:, m], exact, rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("discount", "iterations", "ages"), [(0.9, 300, 175), (0.9, 8000, 175), (0.05, 400, 7)]
)
def test_a_longer_run_does_not_need_more_ages(monkeypatch, discount, iterations, ages):
    """The smallest J with γ^J ≤ 1e-8, also where γ^K is too small for a float."""
    seen = []

    def spy(*arguments, p, ages, members):
        seen.append(ages)
        return np.zeros((iterations, members)), np.zeros((iterations, members))

    monkeypatch.setattr(errors_module, "_weighted_error_norms", spy)
    mdps = garnet(2, 2, 1, discount=discount, count=1)
    zero = np.zeros((iterations, 1, 2, 2))
    policies = np.zeros((iterations + 1, 1, 2), int)
    weighted_error_norms(mdps, Trace(scheme("movi"), policies, zero, zero))
    assert seen == [ages]


# Batches -----------------------------------------------------------------------------------------


def test_a_batch_gives_what_its_members_give_alone(mdps, runs):
    result = runs["movi"]
    sides = residual(mdps, result)
    norms = weighted_error_norms(mdps, result, precision=1e-300)
    for m in range(len(mdps)):
        alone, mine = mdps[m : m + 1], member(result, m)
        np.testing.assert_allclose(residual(alone, mine).lower[:, 0], sides.lower[:, m], atol=1e-12)
        np.testing.assert_allclose(residual(alone, mine).upper[:, 0], sides.upper[:, m], atol=1e-12)
        single = weighted_error_norms(alone, mine, precision=1e-300)
        np.testing.assert_allclose(single.sup[:, 0], norms.sup[:, m], atol=1e-12)
        np.testing.assert_allclose(single.lp[:, 0], norms.lp[:, m], atol=1e-12)


@pytest.mark.parametrize("cores", [1, 64])
def test_the_number_of_cores_does_not_change_the_norms(mdps, runs, monkeypatch, cores):
    expected = weighted_error_norms(mdps, runs["movi"])
    monkeypatch.setattr(errors_module.os, "cpu_count", lambda: cores)
    found = weighted_error_norms(mdps, runs["movi"])
    np.testing.assert_allclose(found.sup, expected.sup, rtol=1e-13)
    np.testing.assert_allclose(found.lp, expected.lp, rtol=1e-13)


def test_the_default_precision_of_jax_is_left_alone(mdps, runs):
    weighted_error_norms(mdps, runs["movi"])
    residual(mdps, runs["movi"])
    assert jax.numpy.asarray(1.0).dtype == jax.numpy.float32
    assert runs["movi"].errors.dtype == np.float64


def test_an_impossible_trace_is_refused(mdps):
    assert refusal(trace, mdps[0], scheme("movi"), 3).startswith("mdps: a single MDP")
    assert refusal(trace, mdps, scheme("movi"), 0) == "iterations: 0, expected at least 1"
