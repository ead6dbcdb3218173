"""Theorem 1 for any β_k and with errors of the average, and the errors that schemes are given."""

import jax.numpy as jnp
import numpy as np
import pytest

from momentum_rl.core.schedules import Capped, Constant, Mean, RateUpdates
from momentum_rl.mdp.families import garnet
from momentum_rl.mdp.model import FiniteMDP
from momentum_rl.mdp.solve.exact import optimum
from momentum_rl.planning.comparison import compare_schemes
from momentum_rl.planning.disturbances import Errors
from momentum_rl.planning.engine import scheme
from momentum_rl.planning.theory import residual, theorem_1, trace
from tests.oracles import pair_kernel, policy_q, random_mdp, refusal

SCHEDULES = [Mean(), Constant(0.8), Constant(0.0), RateUpdates(5), Capped(Mean(), 0.7)]
KINDS = ["gaussian:0.05", "bias:0.05", "heavy-tailed:0.02", "ar1:0.05:0.9"]
K = 12


def batch(seed, members=10):
    """MDPs with rewards per (s, a), a discount of their own each."""
    rng = np.random.default_rng(seed)
    each = [
        random_mdp(seed + i, 4, 3, 2, g) for i, g in enumerate(rng.uniform(0.05, 0.99, members))
    ]
    fields = ("successors", "probabilities", "rewards", "discount")
    return FiniteMDP(*(np.stack([getattr(mdp, name) for mdp in each]) for name in fields))


def averages(run):
    """h_0, …, h_{K−1} by the recursion."""
    eta = np.zeros_like(run.q) if run.average_errors is None else run.average_errors
    h = [run.q[0] + eta[0]]
    for k in range(1, len(run.errors)):
        beta = float(run.scheme.beta(k))
        h.append(beta * h[-1] + (1 - beta) * run.q[k] + eta[k])
    return np.stack(h)


OWN, GIVEN = [None, *KINDS], [*KINDS, None]
ONCE = list(zip(SCHEDULES, OWN, GIVEN))
EACH = [(beta, own, given) for beta in SCHEDULES for own in OWN for given in GIVEN]


@pytest.mark.parametrize(
    ("beta", "own", "given"), [*ONCE, *(pytest.param(*one, marks=pytest.mark.slow) for one in EACH)]
)
def test_the_residual_lies_between_its_bounds_and_the_loss_below_the_theorem(beta, own, given):
    """On 1,000 MDPs in all; T_{π_{k+1}} h_k by explicit matrices, q_π by dense inverses."""
    seed = 1_000 * SCHEDULES.index(beta)
    mdps = batch(seed, 200)
    run = trace(
        mdps,
        scheme("movi", beta),
        K,
        seed=seed,
        samples=0 if own == KINDS[0] else 1,
        errors=given,
        average_errors=own,
    )
    sides, bound, h = residual(mdps, run), theorem_1(mdps, run), averages(run)
    for m, mdp in enumerate(mdps):
        best = optimum(mdp).q
        for k in range(K):
            policy = run.policies[k, m]
            moved = float(mdp.discount) * pair_kernel(mdp, policy) @ h[k, m].reshape(-1)
            change = mdp.rewards + moved.reshape(4, 3) - h[k, m]
            slack = 1e-11 * (1 + np.abs(h[k, m]).max())
            assert (sides.lower[k, m] <= change + slack).all()
            assert (change <= sides.upper[k, m] + slack).all()
            loss = best - policy_q(mdp, policy)
            assert (loss <= bound[k, m] + 1e-8 * (1 + np.abs(bound[k, m]).max())).all()
        sup = sides.supremum(mdps)[:, m]
        assert (bound[:, m].max((-2, -1)) <= sup * (1 + 1e-12) + 1e-9).all()


def test_the_residual_is_attained_in_the_first_iteration_and_where_no_policy_changes():
    mdps = batch(3)
    run = trace(mdps, scheme("movi", Constant(0.7)), 4, average_errors="gaussian:0.1")
    sides = residual(mdps, run)
    np.testing.assert_allclose(sides.upper[0], sides.lower[0], atol=1e-12)
    one_action = garnet(4, 1, 2, seed=1, count=3)
    run = trace(one_action, scheme("movi"), 9, errors="ar1:1:0.5", average_errors="gaussian:0.3")
    sides = residual(one_action, run)
    np.testing.assert_allclose(sides.upper, sides.lower, rtol=0, atol=1e-12)


def test_with_beta_zero_it_is_the_bound_of_avi_whose_policy_is_read_from_q_with_errors():
    """U_k − h_k = T_{π_{k+1}} h_k − h_k: with h_k = q_k + η_k nothing is estimated from above."""
    mdps = batch(11)
    run = trace(mdps, scheme("movi", Constant(0.0)), K, seed=2, average_errors="gaussian:0.2")
    sides, h = residual(mdps, run), run.q[:K] + run.average_errors[:K]
    for m, mdp in enumerate(mdps):
        for k in range(K):
            kernel = float(mdp.discount) * pair_kernel(mdp, run.policies[k, m])
            flat = h[k, m].reshape(-1)
            change = mdp.rewards.reshape(-1) + kernel @ flat - flat
            np.testing.assert_allclose(sides.upper[k, m].reshape(-1), change, rtol=0, atol=1e-12)


def test_the_named_terms_are_those_of_a_constant_beta():
    """drift = (1 − β)(q_{k+1} − ĥ_k) + β^{k+1}(q_1 − q_0), ĥ the exact average; noise = −Σ w ε."""
    beta, mdps = 0.6, batch(5, 2)
    run = trace(mdps, scheme("movi", Constant(beta)), K, seed=1, average_errors="gaussian:0.1")
    above = residual(mdps, run).above
    exact, noise, own = run.q[0], -run.errors[0], 0.0
    for k in range(K):
        if k:
            exact = beta * exact + (1 - beta) * run.q[k]
            noise = beta * noise - (1 - beta) * run.errors[k]
        drift = (1 - beta) * (run.q[k + 1] - exact) + beta ** (k + 1) * (run.q[1] - run.q[0])
        np.testing.assert_allclose(above["drift"][k], np.abs(drift).max((-2, -1)), atol=1e-12)
        np.testing.assert_allclose(above["noise"][k], np.abs(noise).max((-2, -1)), atol=1e-12)
        eta = run.average_errors[k]
        moved = np.stack(
            [
                float(mdp.discount) * pair_kernel(mdp, run.policies[k, m]) @ eta[m].reshape(-1)
                for m, mdp in enumerate(mdps)
            ]
        )
        own = beta * own * (k > 0) + moved.reshape(eta.shape) - eta
        np.testing.assert_allclose(above["average"][k], np.abs(own).max((-2, -1)), atol=1e-12)


# Errors that are given ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["avi", "movi", "sql", "dpp", "md-vi:lambda=0.1:tau=0.05"])
def test_given_errors_are_those_of_every_scheme(name):
    """Without samples nothing else is in them; for SQL they are those of ψ_k = k q_k."""
    mdps = batch(2, 3)
    errors = np.random.default_rng(0).normal(size=(5, 3, 4, 3))
    run = trace(mdps, scheme(name), 5, samples=0, errors=errors)
    np.testing.assert_allclose(run.errors, errors, rtol=0, atol=1e-11)


def test_given_errors_of_the_average_enter_h_from_h_0_on():
    mdps = batch(2, 3)
    eta = np.random.default_rng(1).normal(size=(6, 3, 4, 3))
    run = trace(mdps, scheme("movi"), 5, samples=0, average_errors=eta)
    np.testing.assert_array_equal(run.average_errors, eta)
    h = run.q[0] + eta[0]
    for k in range(1, 6):
        np.testing.assert_array_equal(run.policies[k - 1], h.argmax(-1))
        h = k / (k + 1) * h + run.q[k] / (k + 1) + eta[k]
    np.testing.assert_array_equal(run.policies[5], h.argmax(-1))


def test_a_function_of_the_tables_gives_errors():
    mdps = batch(4, 2)

    def shrinking(k, tables):
        return -tables["q"] / (k + 1.0)

    run = trace(mdps, scheme("avi"), 4, samples=0, errors=shrinking)
    expected = [-run.q[k - 1] / (k + 1) for k in range(1, 5)]
    np.testing.assert_allclose(run.errors, expected, rtol=0, atol=1e-12)


def test_drawn_errors_have_their_size_correlation_and_tails():
    mdps = garnet(50, 4, 1, seed=0, count=10)
    drawn = {
        kind: trace(mdps, scheme("avi"), 12, samples=0, errors=kind).errors
        for kind in ("gaussian:0.2", "bias:0.2", "ar1:0.2:0.9", "heavy-tailed:0.2")
    }
    for kind, c in (("gaussian:0.2", 0.0), ("bias:0.2", 1.0), ("ar1:0.2:0.9", 0.9)):
        e = drawn[kind]
        np.testing.assert_allclose(e[[0, -1]].std((1, 2, 3)), 0.2, rtol=0.06)
        np.testing.assert_allclose((e[:-1] * e[1:]).mean() / e.var(), c, atol=0.03)
    sizes = np.abs(drawn["heavy-tailed:0.2"])
    # Student's t with 1.5 degrees of freedom: the median of |t| and the share above 10,
    # from 20 million draws of NumPy's.
    assert np.median(sizes) == pytest.approx(0.2 * 0.872, rel=0.05)
    assert (sizes > 2).mean() == pytest.approx(0.0237, rel=0.1)


def test_common_errors_make_the_schemes_of_a_comparison_the_traces_losses(monkeypatch):
    mdps = batch(6, 3)
    given = {"errors": "gaussian:0.1", "average_errors": "ar1:0.1:0.5"}
    both = compare_schemes(mdps, ["avi", "movi"], iterations=9, seed=3, chunk=4, **given)
    best = [optimum(mdp).q for mdp in mdps]
    for i, name in enumerate(("avi", "movi")):
        own = given if name == "movi" else {"errors": "gaussian:0.1"}
        run = trace(mdps, scheme(name), 9, seed=3, **own)
        for m, mdp in enumerate(mdps):
            sup = [np.abs(best[m] - policy_q(mdp, p)).max() for p in run.policies[:-1, m]]
            np.testing.assert_allclose(both.sup[i, :, m], sup, rtol=0, atol=1e-9)
    plain = compare_schemes(mdps, ["movi"], iterations=9, seed=3)
    assert not np.array_equal(plain.l1[0], both.l1[1])


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ("uniform:1", "errors: 'uniform:1', expected gaussian:SIZE, bias:SIZE, heavy-tailed:SIZE"),
        ("gaussian", "errors: 'gaussian', expected gaussian:SIZE"),
        ("gaussian:-1", "errors: 'gaussian:-1', expected gaussian:SIZE"),
        ("ar1:0.1:2", "errors: 'ar1:0.1:2', expected gaussian:SIZE"),
        ("gaussian:inf", "errors: 'gaussian:inf', expected gaussian:SIZE"),
        (np.zeros((2, 3)), "errors: shape (2, 3), expected (3, 2, 4, 3)"),
        ([[1.0], [1.0, 2.0]], "errors: "),
        (np.full((3, 2, 4, 3), 1j), "errors: dtype complex128, expected numbers"),
        (lambda k, tables: 1.0, "errors: a function's (), expected an array (2, 4, 3)"),
        (np.full((3, 2, 4, 3), np.nan), "errors: not all finite, expected finite numbers"),
    ],
)
def test_impossible_errors_are_refused(given, line):
    assert refusal(trace, batch(1, 2), scheme("movi"), 3, errors=given).startswith(line)


def test_a_function_of_an_average_is_asked_of_the_schemes_that_have_one():
    given = {"average_errors": lambda k, tables: 0.1 * tables["h"], "iterations": 3}
    both = compare_schemes(batch(1, 2), ["avi", "movi"], **given)
    alone = compare_schemes(batch(1, 2), ["movi"], **given)
    np.testing.assert_array_equal(both.l1[1], alone.l1[0])


def test_a_run_of_another_scheme_has_no_residual():
    mdps = batch(1, 2)
    line = refusal(residual, mdps, trace(mdps, scheme("sql"), 3))
    assert line.startswith("run: Theorem 1 is not proven for sql")


def test_a_schedule_is_given_once():
    line = refusal(scheme, "movi:beta_max=0.5", Constant(0.9))
    assert line.endswith("but the scheme movi:beta_max=0.5 has one of its own")


def test_errors_of_an_average_need_one():
    line = refusal(trace, batch(1, 2), scheme("avi"), 3, average_errors="bias:1")
    assert line == "average_errors: avi, expected a scheme with an average, such as movi"
    line = refusal(compare_schemes, batch(1, 2), ["avi", "sql"], average_errors="bias:1")
    assert line.startswith("average_errors: avi, sql, expected")


def test_errors_are_jax_functions_of_their_key():
    """The same seed gives the same errors, another seed others."""
    mdps = batch(1, 2)
    first, again, other = (
        trace(mdps, scheme("movi"), 3, seed=seed, errors=Errors(0.1)).errors for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert jnp.abs(first - other).max() > 0.01
