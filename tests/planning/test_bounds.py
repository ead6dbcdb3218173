"""The paper's bounds: against explicit matrices, on many random runs, and where they are tight."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import momentum_rl.planning.theory as bounds_module
from momentum_rl.core.schedules import Constant
from momentum_rl.mdp.families import garnet
from momentum_rl.mdp.model import FiniteMDP
from momentum_rl.mdp.solve.exact import optimum, weighted_norm
from momentum_rl.planning.engine import scheme
from momentum_rl.planning.theory import (
    Trace,
    WeightedNorms,
    approximate_value_iteration,
    concentrability,
    concentrability_bound,
    corollary_1,
    largest_value,
    proposition_1,
    speedy_and_policy_programming,
    supremum,
    theorem_1,
    trace,
    weighted_error_norms,
)
from paper.tables.ledger import losses_and_bounds
from tests.oracles import dense_kernel, optimal_q, pair_kernel, policy_q, random_mdp, refusal

NAMES = ("avi", "movi", "sql", "dpp")
ITERATIONS = 30
SHAPES = {  # states, actions, branching: MDPs
    (1, 3, 1): 100,
    (2, 2, 2): 400,
    (5, 3, 3): 400,
    (20, 4, 4): 120,
}


def stacked(mdps):
    fields = ("successors", "probabilities", "rewards", "discount")
    return FiniteMDP(*(np.stack([getattr(mdp, name) for mdp in mdps]) for name in fields))


def many(shape, count):
    """Half Garnets, half with rewards per (s, a); a discount of their own each, 0.05 to 0.99."""
    rng = np.random.default_rng(shape)
    discounts = np.concatenate([[0.05, 0.99], rng.uniform(0.05, 0.99, count - 2)])
    rng.shuffle(discounts)
    members = []
    for i, gamma in enumerate(discounts):
        if i % 2:
            members.append(random_mdp(1000 + i, *shape, gamma))
        else:
            members.append(garnet(*shape, discount=gamma, seed=i))
    return stacked(members)


def losses(mdp, best, policies):
    """q* − q_π for each of the policies [N, S], [N, S, A]; dense, for the difference itself."""
    kernel, gamma, every = dense_kernel(mdp), float(mdp.discount), np.arange(mdp.states)
    gaps = (best.max(1, keepdims=True) - best)[every, policies]
    systems = np.eye(mdp.states) - gamma * kernel[every, policies]
    difference = np.linalg.solve(systems, gaps[..., None])[..., 0]
    return gamma * np.einsum("san,pn->psa", kernel, difference)


class Runs:
    """The runs of the four schemes on one batch, and q* − q_π of π_1 … π_{K+1}."""

    def __init__(self, shape, count):
        self.mdps = many(shape, count)
        self.optimum = optimum(self.mdps)
        self.runs = {name: trace(self.mdps, scheme(name), ITERATIONS, seed=7) for name in NAMES}
        self.norms = weighted_error_norms(self.mdps, self.runs["movi"])
        self.theorem_1 = theorem_1(self.mdps, self.runs["movi"], self.optimum.policy)
        self.losses = {
            name: np.stack(
                [
                    losses(mdp, self.optimum.q[m], run.policies[:, m])
                    for m, mdp in enumerate(self.mdps)
                ],
                1,
            )
            for name, run in self.runs.items()
        }

    def sup(self, name, rows):
        return np.abs(self.losses[name][rows]).max((-2, -1))


USED, AFTER = slice(0, ITERATIONS), slice(1, ITERATIONS + 1)


@pytest.fixture(scope="module")
def everything():
    return {shape: Runs(shape, count) for shape, count in SHAPES.items()}


def holds(loss, bound):
    return (loss <= bound + 1e-9 * (1 + np.abs(bound))).all()


# On more than a thousand random runs -------------------------------------------------------------


def test_theorem_1_holds_component_by_component_on_a_thousand_random_runs(everything):
    checked, negative = 0, 0
    for runs in everything.values():
        bound = runs.theorem_1
        assert holds(runs.losses["movi"][USED], bound)
        checked += bound.shape[0] * bound.shape[1]
        negative += (bound < 0.1 * weighted_norm(bound, np.inf)[..., None, None]).sum()
    assert checked >= 30_000  # (MDP, seed, γ, k) from 1,020 (MDP, γ)
    assert negative > 1000  # a bound that says more about some components than about others


def test_theorem_1_is_an_equality_in_the_first_iteration_and_on_garnets_in_the_second(everything):
    """From q_0 = 0: T_π h_0 = r for all π, and T_π h_1 is the same for all π if r(s, a) = r(s)."""
    not_equal = 0
    for runs in everything.values():
        bound = runs.theorem_1
        loss = runs.losses["movi"]
        scale = 1 + np.abs(bound).max()
        np.testing.assert_allclose(bound[0], loss[0], rtol=0, atol=1e-11 * scale)
        np.testing.assert_allclose(bound[1, ::2], loss[1, ::2], rtol=0, atol=1e-11 * scale)
        assert np.abs(loss[1, ::2]).max() > 0.1 or runs.mdps.states == 1
        not_equal += (np.abs(bound[1, 1::2] - loss[1, 1::2]).max((-2, -1)) > 1e-6).sum()
    assert not_equal > 100  # with rewards per (s, a) it is a true inequality


def test_corollary_1_holds_for_the_exact_coefficient_and_for_its_upper_bound(everything):
    for runs in everything.values():
        rng = np.random.default_rng(0)
        size = (runs.mdps.states, runs.mdps.actions)
        some = slice(0, 60)
        mdps, run = runs.mdps[some], runs.runs["movi"]
        run = run._replace(
            policies=run.policies[:, some], q=run.q[:, some], errors=run.errors[:, some]
        )
        for mu, nu in (
            (np.full(size, 1 / np.prod(size)),) * 2,
            tuple(rng.dirichlet(np.ones(np.prod(size)), 2).reshape(2, *size)),
        ):
            norms = weighted_error_norms(mdps, run, nu=nu)
            exact = [concentrability(mdp, mu, nu) for mdp in mdps]
            above = [concentrability_bound(mdp, mu, nu) for mdp in mdps]
            loss = weighted_norm(runs.losses["movi"][USED, some], 1, mu)
            assert holds(loss, corollary_1(mdps, run, norms, exact, nu))
            assert holds(loss, corollary_1(mdps, run, norms, above, nu))
            assert (np.asarray(exact) <= np.asarray(above) + 1e-12).all()


@pytest.mark.parametrize("p", [1.5, 2, 4])
def test_the_lp_form_of_corollary_1_holds_and_lies_between_its_ends(everything, p):
    runs = everything[5, 3, 3]
    rng, size, some = np.random.default_rng(1), (5, 3), slice(0, 60)
    mdps, run = runs.mdps[some], runs.runs["movi"]
    run = run._replace(policies=run.policies[:, some], q=run.q[:, some], errors=run.errors[:, some])
    mu, nu = rng.dirichlet(np.ones(15), 2).reshape(2, *size)
    norms = weighted_error_norms(mdps, run, p=p, nu=nu)
    exact = np.array([concentrability(mdp, mu, nu) for mdp in mdps])
    assert (exact >= 1).all()
    bound = corollary_1(mdps, run, norms, exact, nu)
    assert holds(weighted_norm(runs.losses["movi"][USED, some], p, mu), bound)
    # ‖·‖_{1,ν} ≤ ‖·‖_{p,ν} ≤ ‖·‖∞, term by term.
    first = weighted_error_norms(mdps, run, nu=nu)
    assert holds(corollary_1(mdps, run, first, 1.0, nu), bound / exact ** (1 / p))
    assert holds(bound / exact ** (1 / p), supremum(mdps, run, norms))


def test_with_a_large_p_corollary_1_is_the_sup_norm_bound(everything):
    """C^{1/p} and the weights' 1/p-th powers tend to 1: 4^{1/40} = 1.035."""
    runs = everything[2, 2, 2]
    mdps, run = runs.mdps, runs.runs["movi"]
    norms = weighted_error_norms(mdps, run, p=40)
    found = corollary_1(mdps, run, norms, np.full(len(mdps), 4.0))
    np.testing.assert_allclose(found, supremum(mdps, run, norms), rtol=0.04)


PROVEN = {
    "Theorem 1": (("movi",), lambda m, r, **o: theorem_1(m, r, **o)),
    "Corollary 1": (
        ("movi",),
        lambda m, r, **o: corollary_1(m, r, weighted_error_norms(m, r), 1.0, **o),
    ),
    "the sup-norm bound": (
        ("movi",),
        lambda m, r, **o: supremum(m, r, weighted_error_norms(m, r), **o),
    ),
    "the bound of AVI": (("avi",), approximate_value_iteration),
    "the bound of SQL and DPP": (("sql", "dpp"), speedy_and_policy_programming),
}


@pytest.mark.parametrize("statement", PROVEN)
def test_a_bound_refuses_a_run_that_it_is_not_proven_for(statement):
    schemes, bound = PROVEN[statement]
    mdps = garnet(3, 2, 2, seed=0, count=2)
    for name in NAMES:
        run = trace(mdps, scheme(name), 3)
        if name in schemes:
            np.testing.assert_array_equal(bound(mdps, run), bound(mdps, run, unproven=True))
            continue
        line = refusal(bound, mdps, run)
        assert line.startswith(f"run: {statement} is not proven for {name}")
        assert line.endswith("unproven=True computes it all the same")
        assert np.isfinite(bound(mdps, run, unproven=True)).all()


def test_a_statement_about_the_mean_refuses_a_constant_beta_and_errors_of_the_average():
    mdps = garnet(3, 2, 2, seed=0, count=2)
    norms = WeightedNorms(*np.zeros((2, 3, 2)))
    run = trace(mdps, scheme("movi", Constant(0.5)), 3)
    assert refusal(supremum, mdps, run, norms) == (
        "run: the sup-norm bound is not proven for movi with β_k = Constant(beta=0.5), expected "
        "movi with β_k = k/(k+1) and an exact average; unproven=True computes it all the same"
    )
    run = trace(mdps, scheme("movi"), 3, average_errors="bias:1")
    assert "with errors of its average, expected" in refusal(supremum, mdps, run, norms)
    assert theorem_1(mdps, run).shape == (3, 2, 3, 2)


def test_the_sup_norm_bound_holds_and_follows_from_theorem_1(everything):
    for runs in everything.values():
        bound = supremum(runs.mdps, runs.runs["movi"], runs.norms)
        assert holds(runs.sup("movi", USED), bound)
        assert holds(runs.theorem_1.max((-2, -1)), bound)


def test_the_bound_of_avi_holds(everything):
    for runs in everything.values():
        bound = approximate_value_iteration(runs.mdps, runs.runs["avi"])
        assert holds(runs.sup("avi", USED), bound)


@pytest.mark.parametrize("name", ["sql", "dpp"])
def test_the_bound_of_sql_and_dpp_holds_for_the_policy_after_the_iterations(everything, name):
    for runs in everything.values():
        bound = speedy_and_policy_programming(runs.mdps, runs.runs[name])
        assert holds(runs.sup(name, AFTER), bound)


def test_proposition_1_holds_on_more_than_its_share_where_it_says_something():
    """At γ = 1/3 the bound is below 2 γ q_max, the largest possible loss, from n = 4,200 on."""
    mdps = stacked([random_mdp(i, 2, 2, 2, 1 / 3) for i in range(20)])
    bound = proposition_1(mdps, 10_000, 0.1)
    assert (bound[-1] < 2 / 3 * largest_value(mdps)).all()
    assert (bound[:3000] > 2 / 3 * largest_value(mdps)).all()
    best, run = optimum(mdps), trace(mdps, scheme("movi"), 10_000)
    for m, mdp in enumerate(mdps):
        policies, place = np.unique(run.policies[:-1, m], axis=0, return_inverse=True)
        loss = losses(mdp, best.q[m], policies).max((1, 2))[place.reshape(-1)]
        assert (loss <= bound[:, m]).all()


# Against explicit matrices -----------------------------------------------------------------------


def test_theorem_1_is_the_vector_of_its_proof_in_explicit_matrices():
    """With q_0 ≠ 0, and the double sum as the proof has it before E'_{k,j} is defined."""
    rng = np.random.default_rng(1)
    mdps = stacked([random_mdp(i, 3, 2, 2, gamma) for i, gamma in enumerate((0.1, 0.6, 0.95))])
    policies, errors = rng.integers(0, 2, (7, 3, 3)), rng.normal(size=(6, 3, 3, 2))
    tables = [rng.normal(size=(3, 3, 2))]
    for now, error in zip(policies, errors):  # q_k = T_{π_k} q_{k−1} + ε_k, whatever the policies
        moved = [pair_kernel(mdp, now[m]) @ tables[-1][m].reshape(-1) for m, mdp in enumerate(mdps)]
        discounted = mdps.discount[:, None] * np.stack(moved)
        tables.append(mdps.rewards + discounted.reshape(3, 3, 2) + error)
    run = Trace(scheme("movi"), policies, np.stack(tables), errors)
    found = theorem_1(mdps, run)
    for m, mdp in enumerate(mdps):
        gamma, identity = float(mdp.discount), np.eye(6)
        kernels = [None, *(pair_kernel(mdp, policy) for policy in run.policies[:, m])]
        errors = [None, *run.errors[:, m].reshape(6, -1)]
        q, r = run.q[:, m].reshape(7, -1), mdp.rewards.reshape(-1)
        best = np.linalg.inv(identity - gamma * pair_kernel(mdp, optimal_q(mdp).argmax(1)))

        def chain(j, i, kernels=kernels, identity=identity):
            return np.linalg.multi_dot([identity, identity, *kernels[i : j + 1][::-1]])

        for n in range(1, 7):
            k = n - 1
            lower = r + gamma * kernels[1] @ q[0] - q[0]
            for j in range(1, k + 1):
                lower = lower + gamma**j * chain(j, 1) @ (r + gamma * kernels[1] @ q[0] - q[0])
                for i in range(1, j + 1):
                    source = (identity - gamma * kernels[i]) @ errors[i]
                    lower = lower - gamma ** (j - i) * chain(j, i + 1) @ source
            upper = -np.sum(errors[1 : n + 1], 0) + q[n] - q[0]
            own = np.linalg.inv(identity - gamma * kernels[n])
            expected = (best @ upper - own @ lower) / n
            np.testing.assert_allclose(found[n - 1, m].reshape(-1), expected, rtol=0, atol=1e-10)


@settings(max_examples=30)
@given(seed=st.integers(0, 2**20))
def test_the_bounds_are_their_printed_formulas(seed):
    """Scalars in plain loops over the statement's own indices."""
    rng = np.random.default_rng(seed)
    gammas = rng.uniform(0.05, 0.99, 2)
    mdps = stacked([random_mdp(seed + i, 3, 2, 2, gamma) for i, gamma in enumerate(gammas)])
    errors, nu = rng.normal(size=(5, 2, 3, 2)), rng.dirichlet(np.ones(6)).reshape(3, 2)
    run = Trace(scheme("movi"), np.zeros((6, 2, 3), int), np.zeros((6, 2, 3, 2)), errors)
    p = float(rng.choice([1, 1.5, 2, 4]))
    norms = WeightedNorms(*rng.uniform(size=(2, 5, 2)), p)
    found = {
        "corollary": corollary_1(mdps, run, norms, [1.5, 2.5], nu),
        "supremum": supremum(mdps, run, norms),
        "avi": approximate_value_iteration(mdps, run, unproven=True),
        "sql": speedy_and_policy_programming(mdps, run, unproven=True),
        "proposition": proposition_1(mdps, 5, 0.02),
    }
    for m, gamma in enumerate(gammas):
        r_max = max(abs(x) for x in mdps.rewards[m].ravel())
        q_max = r_max / (1 - gamma)
        total = [-sum(errors[:n, m]) for n in range(6)]  # E_n
        for n in range(1, 6):
            weighted = sum(w * abs(x) ** p for w, x in zip(nu.ravel(), total[n].ravel()))
            coefficient = (1.5, 2.5)[m] ** (1 / p)
            largest = max([0.0, *(abs(errors[j - 1, m]).max() for j in range(1, n))])
            discounted = sum(gamma ** (n - j) * abs(total[j]).max() for j in range(1, n + 1))
            expected = {
                "corollary": coefficient * (weighted ** (1 / p) + norms.lp[n - 1, m] + 2 * q_max),
                "supremum": abs(total[n]).max() + norms.sup[n - 1, m] + 2 * q_max,
                "avi": 2 * gamma**n * q_max + 2 * gamma * largest / (1 - gamma) ** 2,
                "sql": 2 * gamma * (discounted + 8 * gamma * q_max / (1 - gamma)),
                "proposition": 1 / n + 3 / (1 - gamma) * (2 * np.log(4 * 3 * 2 / 0.02) / n) ** 0.5,
            }
            for name in ("corollary", "supremum", "sql"):
                expected[name] /= n * (1 - gamma)
            expected["proposition"] *= 2 * r_max / (1 - gamma) ** 2
            for name, value in expected.items():
                assert found[name][n - 1, m] == pytest.approx(value, rel=1e-10), name


def test_a_batch_gives_the_bounds_of_its_members():
    mdps = many((5, 3, 2), 4)
    run = trace(mdps, scheme("movi"), ITERATIONS, seed=7)
    norms, whole = weighted_error_norms(mdps, run), theorem_1(mdps, run)
    for m in range(4):
        some = slice(m, m + 1)
        alone = Trace(run.scheme, run.policies[:, some], run.q[:, some], run.errors[:, some])
        mine = WeightedNorms(norms.lp[:, some], norms.sup[:, some])
        np.testing.assert_allclose(theorem_1(mdps[some], alone)[:, 0], whole[:, m], atol=1e-9)
        for bound in (approximate_value_iteration, speedy_and_policy_programming):
            np.testing.assert_allclose(
                bound(mdps[some], alone, unproven=True)[:, 0],
                bound(mdps, run, unproven=True)[:, m],
                rtol=1e-12,
            )
        np.testing.assert_allclose(
            supremum(mdps[some], alone, mine)[:, 0], supremum(mdps, run, norms)[:, m], rtol=1e-12
        )


# The concentrability coefficient -----------------------------------------------------------------


def by_brute_force(mdp, mu, nu):
    """max over all deterministic policies of max_{s,a} d_{π,μ}(s, a) / ν(s, a)."""
    gamma, largest = float(mdp.discount), 0.0
    for policy in product(range(mdp.actions), repeat=mdp.states):
        kernel = pair_kernel(mdp, np.array(policy))
        visits = (1 - gamma) * mu.reshape(-1) @ np.linalg.inv(np.eye(len(kernel)) - gamma * kernel)
        largest = max(largest, (visits / nu.reshape(-1)).max())
    return largest


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**20),
    states=st.integers(1, 4),
    actions=st.integers(1, 3),
    branching=st.integers(1, 4),
    discount=st.sampled_from([0.0, 0.05, 0.5, 0.9, 0.99]),
)
def test_the_coefficient_is_the_largest_over_all_deterministic_policies(
    seed, states, actions, branching, discount
):
    """Successor lists have repeated entries here."""
    mdp = random_mdp(seed, states, actions, branching, discount)
    rng = np.random.default_rng(seed)
    mu, nu = rng.dirichlet(np.ones(states * actions), 2).reshape(2, states, actions)
    expected = by_brute_force(mdp, mu, nu)
    assert concentrability(mdp, mu, nu) == pytest.approx(expected, rel=1e-9)
    assert concentrability_bound(mdp, mu, nu) >= expected * (1 - 1e-12)


def test_the_coefficient_of_one_policy_is_its_occupancy_over_nu():
    mdp = random_mdp(3, 4, 1, 2)
    mu = np.full((4, 1), 0.25)
    nu = np.array([[0.1], [0.2], [0.3], [0.4]])
    discount = float(mdp.discount)
    kernel = mdp.dense()[:, 0]
    occupancy = (1 - discount) * mu.T @ np.linalg.inv(np.eye(4) - discount * kernel)
    expected = (occupancy.T / nu).max()
    assert concentrability(mdp, mu, nu) == pytest.approx(expected, rel=1e-12)


def test_a_successor_listed_twice_counts_with_the_sum_of_its_probabilities():
    """From both states to state 1, in two halves: d(1) ≤ (1 − γ)/2 + γ, and ν is uniform."""
    twice = FiniteMDP(np.ones((2, 1, 2), int), np.full((2, 1, 2), 0.5), np.zeros((2, 1)), 0.8)
    uniform = np.full((2, 1), 0.5)
    assert concentrability_bound(twice, uniform, uniform) == pytest.approx(1.8)
    assert concentrability(twice, uniform, uniform) == pytest.approx(1.8)


def test_a_large_mdp_gets_the_stated_upper_bound(monkeypatch):
    mdp = garnet(12, 3, 2, seed=4)
    uniform = np.full((12, 3), 1 / 36)
    exact, above = (f(mdp, uniform, uniform) for f in (concentrability, concentrability_bound))
    monkeypatch.setattr(bounds_module, "DIRECT", 11)
    assert concentrability(mdp, uniform, uniform) == above > exact


# Where the bounds are tight, and where one is false ----------------------------------------------


def crossroads(gamma):
    """One state, two actions that stay: the first pays −1, the second +1."""
    return FiniteMDP(np.zeros((1, 1, 2, 1), int), np.ones((1, 1, 2, 1)), [[[-1.0, 1.0]]], [gamma])


@pytest.mark.parametrize("name", ["sql", "dpp"])
@pytest.mark.parametrize("gamma", [0.01, 0.05, 0.1])
def test_the_bound_of_sql_and_dpp_is_false_for_the_policy_used_in_the_iteration(name, gamma):
    """At n = 1 the first policy, an arbitrary one, loses 2 γ q_max > 16 γ² q_max / (1 − γ)²."""
    mdps = crossroads(gamma)
    run = trace(mdps, scheme(name), 5)
    bound = speedy_and_policy_programming(mdps, run)[:, 0]
    loss = losses(mdps[0], optimal_q(mdps[0]), run.policies[:, 0]).max((1, 2))
    assert run.policies[0, 0, 0] == 0  # the first of equal actions
    assert not run.errors.any()
    assert loss[0] == pytest.approx(2 * gamma / (1 - gamma))
    assert bound[0] == pytest.approx(16 * gamma**2 / (1 - gamma) ** 3)
    assert loss[0] > bound[0]
    assert (loss[1:] <= bound).all()  # for the policy after the iterations it holds


def test_the_same_reading_is_harmless_for_a_larger_discount():
    """From γ = 5 − 2√6 = 0.1010 on, 16 γ² q_max / (1 − γ)² is at least 2 γ q_max."""
    mdps = crossroads(0.11)
    run = trace(mdps, scheme("sql"), 1)
    loss = losses(mdps[0], optimal_q(mdps[0]), run.policies[:, 0]).max()
    assert loss < speedy_and_policy_programming(mdps, run)[0, 0]


def detour(gamma, steps):
    """Stay for −1 (action 0), or go through ``steps`` states of −1 to one that pays +1 for ever.

    #   0 ──→ 1 ──→ … ──→ steps        leaving state s < steps pays −1
    #   ↺ −1                  ↺ +1
    """
    successors = np.zeros((1, steps + 1, 2, 1), int)
    successors[0, :, :, 0] = np.minimum(np.arange(steps + 1) + 1, steps)[:, None]
    successors[0, 0, 0, 0] = 0
    rewards = np.full((1, steps + 1, 2), -1.0)
    rewards[0, steps] = 1
    return FiniteMDP(successors, np.ones(successors.shape), rewards, [gamma])


@pytest.mark.parametrize("gamma", [0.05, 0.5, 0.9, 0.99])
def test_the_bound_of_avi_is_reached_at_every_iteration(gamma):
    """After k − 1 iterations nothing distinguishes staying from a detour of k − 1 states."""
    for k in range(2, 8):
        mdps = detour(gamma, k - 1)
        run = trace(mdps, scheme("avi"), k)
        loss = losses(mdps[0], optimal_q(mdps[0]), run.policies[:, 0]).max((1, 2))
        bound = approximate_value_iteration(mdps, run)[:, 0]
        assert loss[k - 1] == pytest.approx(bound[k - 1], rel=1e-9)
        assert bound[k - 1] == pytest.approx(2 * gamma**k / (1 - gamma), rel=1e-9)
        assert loss[k] == 0


# Constant β --------------------------------------------------------------------------------------


def test_a_constant_beta_leaves_an_error_that_the_mean_does_not():
    mdps = garnet(count=8, seed=5)
    best = optimum(mdps).q

    def late(which, beta=None):
        run = trace(mdps, scheme(which, beta), 600, seed=1)
        return np.mean(
            [losses(mdps[m], best[m], run.policies[-60:, m]).mean() for m in range(len(mdps))]
        )

    mean, heavy, light, avi = (
        late("movi"),
        late("movi", Constant(0.9)),
        late("movi", Constant(0.5)),
        late("avi"),
    )
    assert mean < 0.15 * heavy
    assert heavy < 0.7 * light
    assert light < 0.9 * avi


def test_a_moving_average_of_errors_keeps_a_share_of_their_variance_and_the_mean_does_not():
    """Errors are uncorrelated: Σ w_i ε_i has Σ w_i² of their variance, (1−β)/(1+β) or 1/K."""
    errors = trace(stacked([random_mdp(5, 3, 2, 3, 0.5)] * 3000), scheme("avi"), 60).errors[20:]
    variance, k = errors.var(1).mean(0), np.arange(len(errors))
    for beta in (0.5, 0.9):
        weights = (1 - beta) * beta ** k[::-1].astype(float)
        left = np.tensordot(weights, errors, 1).var(0)
        np.testing.assert_allclose(left / variance, (1 - beta) / (1 + beta), rtol=0.12)
    np.testing.assert_allclose(errors.mean(0).var(0) / variance, 1 / len(errors), rtol=0.12)


# The ledger --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ledger():
    mdps = garnet(5, 3, 2, seed=3, count=4, discount=0.8)
    return mdps, losses_and_bounds(mdps, 20, seed=6, delta=0.2, constant_betas=(0.5,))


def test_the_ledger_has_a_column_for_each_loss_and_each_bound(ledger):
    _, columns = ledger
    bounds = ["theorem_1_sup", "supremum", "proposition_1"]
    expected = ["iteration", "loss_limit", "loss_sup"]
    expected += [f"{name}{suffix}" for name in bounds for suffix in ("", "_holds")]
    expected += ["loss_l1", "corollary_1", "corollary_1_holds", "constant_beta_loss_0.5"]
    expected += ["constant_beta_bound_0.5", "constant_beta_bound_0.5_holds"]
    for name in ("avi", "sql", "dpp"):
        expected += [f"{name}_loss_sup", f"{name}_bound", f"{name}_bound_holds"]
    assert list(columns) == expected
    assert columns["iteration"].tolist() == list(range(1, 21))
    assert all(len(column) == 20 for column in columns.values())
    assert all((columns[name] == 1).all() for name in columns if name.endswith("_holds"))


def test_the_ledgers_losses_are_those_of_dense_inverses(ledger):
    mdps, columns = ledger
    rows = {"loss_sup": ("movi", 0), "avi_loss_sup": ("avi", 0), "sql_loss_sup": ("sql", 1)}
    for column, (name, first) in rows.items():
        run = trace(mdps, scheme(name), 20, seed=6)
        for n in (1, 2, 20):
            each = [
                np.abs(optimal_q(mdp) - policy_q(mdp, run.policies[n - 1 + first, m])).max()
                for m, mdp in enumerate(mdps)
            ]
            assert columns[column][n - 1] == pytest.approx(np.mean(each), abs=1e-9)


def test_the_ledgers_bounds_are_means_over_the_mdps(ledger):
    mdps, columns = ledger
    run = trace(mdps, scheme("movi"), 20, seed=6)
    uniform = np.full((5, 3), 1 / 15)
    norms = weighted_error_norms(mdps, run)
    coefficients = [by_brute_force(mdp, uniform, uniform) for mdp in mdps]
    expected = {
        "theorem_1_sup": theorem_1(mdps, run).max((-2, -1)),
        "supremum": supremum(mdps, run, norms),
        "corollary_1": corollary_1(mdps, run, norms, coefficients),
        "proposition_1": proposition_1(mdps, 20, 0.2),
        "avi_bound": approximate_value_iteration(mdps, trace(mdps, scheme("avi"), 20, seed=6)),
        "dpp_bound": speedy_and_policy_programming(mdps, trace(mdps, scheme("dpp"), 20, seed=6)),
    }
    for name, values in expected.items():
        np.testing.assert_allclose(columns[name], values.mean(1), rtol=1e-9, err_msg=name)


def test_the_ledger_counts_the_mdps_on_which_a_bound_fails(monkeypatch):
    """A bound that is right on average and wrong on one MDP of four is seen."""
    mdps = garnet(5, 3, 2, seed=3, count=4, discount=0.8)
    wrong = np.full((20, 4), 1e6)
    wrong[:, 2] = -1.0
    monkeypatch.setattr("paper.tables.ledger.approximate_value_iteration", lambda *_: wrong)
    columns = losses_and_bounds(mdps, 20, seed=6)
    assert (columns["avi_bound"] > columns["avi_loss_sup"]).all()
    assert (columns["avi_bound_holds"] == 0.75).all()


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, 1.5, float("nan")])
def test_an_impossible_probability_is_refused(delta):
    assert refusal(losses_and_bounds, garnet(3, 2, 2, count=1), 3, delta=delta).startswith("delta:")


def test_an_impossible_constant_beta_is_refused_before_any_work():
    mdps = garnet(3, 2, 2, count=1)
    assert refusal(losses_and_bounds, mdps, 3, constant_betas=(1.0,)).startswith("beta: 1.0")
