"""``momentum(x)``: laws that hold whatever x is."""

import functools
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import momentum_rl
from momentum_rl.core.schedules import Constant, Mean
from momentum_rl.core.targets import (
    AVI,
    DPP,
    MOVI,
    SQL,
    Algorithm,
    Munchausen,
    Target,
    distributional,
    double,
    evaluation,
    momentum,
)
from momentum_rl.core.values import Categorical, Quantile
from momentum_rl.errors import UserError
from momentum_rl.mdp.operators import on_device
from momentum_rl.planning.engine import Scheme, exactly, from_samples, iterate, preference, start
from momentum_rl.planning.theory import trace

BY_NAME = Algorithm("by-name", {"q": Target(lambda v: jnp.max(v["q"][0]), evaluation)})
MEAN = Scheme(MOVI, Mean())
SOFT = Munchausen(0.5, 1.0, None).algorithm()
WITH_MOMENTUM = [AVI, double(AVI), Munchausen().algorithm(), SOFT]


def tables_of(scheme, mdp, iterations, successors=None):
    """The tables after each iteration, exact or on given successors [K, m, S, A]."""
    with jax.enable_x64(True):
        found = _tables(scheme, on_device(mdp), successors, iterations)
        return [
            {name: np.asarray(own[k]) for name, own in found.items()} for k in range(iterations)
        ]


@functools.partial(jax.jit, static_argnames=("scheme", "iterations"))
def _tables(scheme, device, successors, iterations):
    def step(tables, now):
        k, own = now
        read = exactly(device) if own is None else from_samples(own)
        tables = iterate(scheme, tables, read, device, k)
        return tables, {name: table[0] for name, table in tables.items()}

    first = start(scheme.algorithm, *device.rewards.shape)
    return jax.lax.scan(step, first, (jnp.arange(1, iterations + 1), successors))[1]


@functools.cache
def categorical(gamma):
    """AVI with momentum on atoms beyond which no return is: a scheme to compile once for each γ."""
    kind = Categorical(-1 / (1 - gamma), 1 / (1 - gamma), 31)
    return kind, Scheme(momentum(distributional(kind)), Mean())


@pytest.mark.parametrize("algorithm", WITH_MOMENTUM, ids=lambda a: a.name)
def test_in_tables_h_is_the_mean_of_the_qs(algorithm):
    mdp = momentum_rl.garnet(8, 3, 3, seed=1)
    found = tables_of(Scheme(momentum(algorithm), Mean()), mdp, 12)
    total = np.zeros((8, 3))  # q_0 = 0
    for k, tables in enumerate(found, start=1):
        total = total + tables["q"]
        np.testing.assert_allclose(tables["h"], total / (k + 1), atol=1e-12)


@pytest.mark.parametrize("algorithm", WITH_MOMENTUM, ids=lambda a: a.name)
def test_with_beta_zero_it_is_the_algorithm_itself_with_a_second_table(algorithm):
    mdp = momentum_rl.garnet(8, 3, 3, seed=2)
    plain = tables_of(Scheme(algorithm, Constant(0.0)), mdp, 10)
    for tables, alone in zip(tables_of(Scheme(momentum(algorithm), Constant(0.0)), mdp, 10), plain):
        np.testing.assert_allclose(tables["q"], alone["q"], atol=1e-13)
        np.testing.assert_allclose(tables["h"], alone["q"], atol=1e-13)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**16), gamma=st.sampled_from([0.1, 0.6, 0.95]))
def test_the_mean_of_categorical_momentum_is_movi_while_no_mass_is_clipped(seed, gamma):
    mdp = momentum_rl.garnet(6, 3, 2, discount=gamma, seed=seed)
    kind, scheme = categorical(gamma)
    for tables, expected in zip(tables_of(scheme, mdp, 8), tables_of(MEAN, mdp, 8)):
        for name in ("q", "h"):
            np.testing.assert_allclose(tables[name].sum(-1), 1, atol=1e-12)
            means = tables[name] @ kind.atoms
            np.testing.assert_allclose(means, expected[name], atol=1e-12 * kind.high)


def test_an_h_of_numbers_is_movis_h_whatever_the_values_of_q_are():
    mdp = momentum_rl.garnet(6, 3, 2, discount=0.8, seed=9)
    kind = Categorical(-5.0, 5.0, 31)
    algorithm = momentum(distributional(kind), h_value="number")
    for tables, expected in zip(
        tables_of(Scheme(algorithm, Mean()), mdp, 8), tables_of(MEAN, mdp, 8)
    ):
        np.testing.assert_allclose(tables["h"], expected["h"], atol=1e-11)
        np.testing.assert_allclose(tables["q"] @ kind.atoms, expected["q"], atol=1e-11)


def test_an_h_of_numbers_beside_quantiles_is_the_average_of_their_means():
    """With one successor each, quantiles are backed up without loss: MoVI, sample by sample."""
    chain = momentum_rl.garnet(5, 2, 1, seed=4)
    successors = jnp.asarray(np.repeat(chain.successors[None, None, ..., 0], 12, 0))
    algorithm = momentum(distributional(Quantile(4)), h_value="number")
    found = tables_of(Scheme(algorithm, Mean()), chain, 12, successors)
    for tables, expected in zip(found, tables_of(MEAN, chain, 12, successors), strict=True):
        assert tables["h"].shape == expected["h"].shape
        np.testing.assert_allclose(tables["h"], expected["h"], atol=1e-12)
        np.testing.assert_allclose(tables["q"].mean(-1), expected["q"], atol=1e-12)


def test_avi_runs_on_categorical_values_and_solves():
    """The contract of values: the same AVI, exact, on whole distributions of returns."""
    mdp = momentum_rl.garnet(10, 2, 3, discount=0.8, seed=3)
    kind = Categorical(-5.0, 5.0, 101)
    found = momentum_rl.solve(mdp, distributional(kind))
    best = momentum_rl.optimum(mdp, tolerance=1e-9)
    assert found.converged
    np.testing.assert_allclose(found.q, best.q, atol=2e-6)
    np.testing.assert_array_equal(found.policy, best.q.argmax(-1))


def test_quantiles_run_on_samples_and_have_no_exact_update():
    algorithm = distributional(Quantile(4))
    mdp = momentum_rl.garnet(5, 2, 2, seed=4)
    with pytest.raises(UserError, match="whose mean over successors is not defined"):
        momentum_rl.solve(mdp, algorithm)
    # With one successor each there is nothing to average: all quantiles are the return.
    chain = momentum_rl.garnet(5, 2, 1, seed=4)
    successors = np.repeat(chain.successors[None, None, ..., 0], 40, 0)
    last = tables_of(Scheme(algorithm, Mean()), chain, 40, jnp.asarray(successors))[-1]
    exact = tables_of(Scheme(AVI, Mean()), chain, 40)[-1]
    np.testing.assert_allclose(last["q"], np.repeat(exact["q"][..., None], 4, -1), atol=1e-12)


def test_momentum_c51_backs_up_qs_distribution_at_the_action_whose_mean_is_best_in_h():
    plain = distributional(Categorical(-2.0, 2.0, 5), "c51")
    here = {
        "q": np.array([[[0.3, 0.1, 0.2, 0.1, 0.3], [0.2, 0.2, 0.3, 0.2, 0.1]]]),
        "h": np.array([[[0.1, 0.4, 0.3, 0.1, 0.1], [0.4, 0.1, 0.1, 0.1, 0.3]]]),
    }
    q = [
        [0.1, 0.2, 0.4, 0.2, 0.1],  # mean 0
        [0.1, 0.1, 0.2, 0.3, 0.3],  # 0.6, the best in q
        [0.2, 0.3, 0.2, 0.2, 0.1],  # −0.3
    ]
    h = [
        [0.4, 0.2, 0.05, 0.05, 0.3],  # −0.35, though it has the most at 2
        [0.2, 0.2, 0.2, 0.2, 0.2],  # 0
        [0.1, 0.1, 0.2, 0.4, 0.2],  # 0.5, the best in h
    ]
    there = {"q": np.array([q]), "h": np.array([h])}
    # With r = 1.25 and γ = 0.5 the atoms −2, …, 2 go to 0.25, 0.75, 1.25, 1.75 and 2.25, which is
    # cut to 2; each of the others is shared ¾ to ¼ or ¼ to ¾ by the atoms beside it.
    onto_0 = 0.75 * 0.2 + 0.25 * 0.3
    onto_1 = 0.25 * 0.2 + 0.75 * 0.3 + 0.75 * 0.2 + 0.25 * 0.2
    onto_2 = 0.25 * 0.2 + 0.75 * 0.2 + 0.1
    y = np.array([0, 0, onto_0, onto_1, onto_2])
    np.testing.assert_allclose(y, [0, 0, 0.225, 0.475, 0.3], atol=1e-15)
    averaged = 0.25 * np.array([0.4, 0.1, 0.1, 0.1, 0.3]) + 0.75 * y  # h⁻(s, a) and y

    def target(algorithm, name, discount=0.5):
        s, s2 = ({own: rows[own] for own in algorithm.targets} for rows in (here, there))
        return algorithm.target(name, s, 1, 1.25, discount, s2, 0.25)

    made = momentum(plain)
    np.testing.assert_allclose(target(made, "q"), y, atol=1e-12)
    np.testing.assert_allclose(target(made, "h"), averaged, atol=1e-12)
    np.testing.assert_allclose(averaged, [0.1, 0.025, 0.19375, 0.38125, 0.3], atol=1e-15)
    # Without momentum it is q's own best action; at a termination 1.25 for sure.
    np.testing.assert_allclose(target(plain, "q"), [0, 0, 0.1, 0.325, 0.575], atol=1e-12)
    np.testing.assert_allclose(target(made, "q", 0.0), [0, 0, 0, 0.75, 0.25], atol=1e-12)


def test_momentum_qr_dqn_backs_up_qs_quantiles_at_the_action_whose_mean_is_best_in_h():
    plain = distributional(Quantile(3), "qr-dqn")
    here = {
        "q": np.array([[[7.0, 8.0, 9.0], [3.0, 4.0, 5.0]]]),
        "h": np.array([[[-7.0, 1.0, 2.0], [-2.0, 0.0, 6.0]]]),
    }
    # Means 0.5, 2 and −1 in q; 0.5, 0.2 and 1.5 in h, where others have the best median and tail.
    q = [[-1.0, 0.0, 2.5], [0.0, 1.0, 5.0], [-3.0, -1.0, 1.0]]
    h = [[-4.0, 0.0, 5.5], [-4.0, 2.0, 2.6], [0.5, 1.0, 3.0]]
    there = {"q": np.array([q]), "h": np.array([h])}
    y = 1.25 + 0.5 * np.array([-3.0, -1.0, 1.0])
    averaged = 0.25 * np.array([-2.0, 0.0, 6.0]) + 0.75 * y

    def target(algorithm, name):
        s, s2 = ({own: rows[own] for own in algorithm.targets} for rows in (here, there))
        return algorithm.target(name, s, 1, 1.25, 0.5, s2, 0.25)

    made = momentum(plain)
    np.testing.assert_allclose(target(made, "q"), y, atol=1e-12)
    np.testing.assert_allclose(y, [-0.25, 0.75, 1.75], atol=1e-15)
    np.testing.assert_allclose(target(made, "h"), averaged, atol=1e-12)
    np.testing.assert_allclose(averaged, [-0.6875, 0.5625, 2.8125], atol=1e-15)
    np.testing.assert_allclose(target(plain, "q"), [1.25, 1.75, 3.75], atol=1e-12)


def test_a_coin_gives_its_two_returns_their_probabilities_in_a_categorical_table():
    p, iterations = 0.3, 6
    # toss → heads (reward 1) with probability p, else tails (−1); both → the end.
    moves = np.array([[0, p, 1 - p, 0], [0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 1]])
    rewards = np.array([[0.0], [1.0], [-1.0], [0.0]])
    mdp = momentum_rl.FiniteMDP.from_dense(moves[:, None, :], rewards, 0.5)
    algorithm = momentum(distributional(Categorical(-1.0, 1.0, 5)))
    coin, nothing = np.array([0, 1 - p, 0, p, 0]), np.array([0, 0, 1.0, 0, 0])
    found = tables_of(Scheme(algorithm, Mean()), mdp, iterations)
    np.testing.assert_allclose(found[0]["q"][0, 0], nothing, atol=1e-12)
    for k, tables in enumerate(found[1:], start=2):
        np.testing.assert_allclose(tables["q"][0, 0], coin, atol=1e-12)
        np.testing.assert_allclose(tables["q"][1, 0], [0, 0, 0, 0, 1], atol=1e-12)
        # h is the mean of q_0, …, q_k, of which the first two know nothing of the coin.
        mean = (2 * nothing + (k - 1) * coin) / (k + 1)
        np.testing.assert_allclose(tables["h"][0, 0], mean, atol=1e-12)


def test_double_is_the_algorithm_itself_in_tables():
    mdp = momentum_rl.garnet(8, 3, 3, seed=5)
    found = tables_of(Scheme(double(AVI), Mean()), mdp, 10)
    for tables, plain in zip(found, tables_of(Scheme(AVI, Mean()), mdp, 10)):
        np.testing.assert_allclose(tables["q"], plain["q"], atol=1e-13)


def test_an_average_of_the_networks_own_values_comes_one_iteration_later_in_tables():
    mdp = momentum_rl.garnet(8, 3, 3, seed=6)
    network = momentum(AVI, h_target="network")
    q_before = np.zeros((8, 3))
    h = np.zeros((8, 3))
    for k, tables in enumerate(tables_of(Scheme(network, Mean()), mdp, 8), start=1):
        h = k / (k + 1) * h + q_before / (k + 1)
        np.testing.assert_allclose(tables["h"], h, atol=1e-12)
        q_before = tables["q"]


def test_momentum_reads_the_policy_from_h_and_adds_nothing_else():
    for algorithm in WITH_MOMENTUM:
        made = momentum(algorithm)
        assert made.targets["q"] is algorithm.targets["q"]
        assert (made.preference, made.uses_beta, tuple(made.targets)) == ("h", True, ("q", "h"))
        assert made.name == f"momentum-{algorithm.name}"
    tables = {"q": jnp.zeros((1, 1, 2)), "h": jnp.array([[[3.0, 4.0]]])}
    assert preference(MOVI, tables).tolist() == [[3.0, 4.0]]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: momentum(SQL), "momentum: sql does not accept it"),
        (lambda: momentum(DPP), "momentum: dpp does not accept it"),
        (lambda: momentum(MOVI), "momentum: movi already has an average h"),
        (lambda: momentum("dqn"), "algorithm: 'dqn', expected Algorithm"),
        (lambda: momentum(BY_NAME), "momentum: by-name does not accept it"),
        (lambda: double(SQL), "double: sql reads no policy from a preference"),
        (lambda: replace(AVI, targets={}), "targets: of nothing, expected one of q"),
        (lambda: replace(AVI, lags=0), "lags: 0, expected at least 1"),
        (lambda: momentum(AVI, h_target="both"), "h_target: 'both', expected one of sample"),
    ],
)
def test_where_it_does_not_apply_a_line_says_why(make, says):
    with pytest.raises(UserError, match=says):
        make()


def test_a_value_of_another_name_is_the_same_algorithm():
    """Which table holds the value is declared: nothing has to be called q."""
    targets = {"u": AVI.targets["q"]}
    named = replace(AVI, name="avi-in-u", targets=targets, preference="u", value_table="u")
    mdp = momentum_rl.garnet(8, 3, 3, seed=1)
    np.testing.assert_array_equal(momentum_rl.solve(mdp, named).q, momentum_rl.solve(mdp, AVI).q)
    for tables, others in zip(
        tables_of(Scheme(momentum(named), Mean()), mdp, 12), tables_of(MEAN, mdp, 12)
    ):
        np.testing.assert_array_equal(tables["u"], others["q"])
        np.testing.assert_array_equal(tables["h"], others["h"])
    batch = momentum_rl.garnet(8, 3, 3, seed=1, count=2)
    runs = [trace(batch, Scheme(algorithm, Mean()), 6) for algorithm in (named, AVI)]
    np.testing.assert_array_equal(runs[0].errors, runs[1].errors)
    with pytest.raises(UserError, match="targets: of u, expected one of q, the value"):
        Algorithm("nameless", named.targets, preference="u")
