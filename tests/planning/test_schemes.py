import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from momentum_rl.core.schedules import Constant, Mean, Smoothing
from momentum_rl.core.targets import MOVI, smoothed_value_iteration
from momentum_rl.mdp.families import garnet
from momentum_rl.mdp.model import FiniteMDP
from momentum_rl.mdp.operators import on_device
from momentum_rl.planning.comparison import run
from momentum_rl.planning.engine import (
    Scheme,
    exactly,
    from_samples,
    iterate,
    member_keys,
    sample,
    scheme,
    start,
    thresholds,
)
from momentum_rl.planning.solver import solve
from tests.oracles import dense_kernel, random_mdp, refusal

NAMES = ("avi", "movi", "sql", "dpp")


@functools.partial(jax.jit, static_argnames="chosen")
def _step(chosen, tables, device, draws, k):
    read = exactly(device) if draws is None else from_samples(draws)
    return iterate(chosen, tables, read, device, k)


def trajectory(mdp, which, iterations, *, seed=0, sampled=True, beta=None):
    """The tables of iterations 0..K, [K + 1, S, A] each, and the sampled successors, [K, S, A]."""
    chosen = scheme(which, beta)
    with jax.enable_x64(True):
        device = on_device(mdp)
        tables = start(chosen.algorithm, mdp.states, mdp.actions)
        keys, limits = member_keys(seed, 1), jnp.asarray(thresholds(mdp))
        history, samples = {name: [np.asarray(t[0])] for name, t in tables.items()}, []
        for k in range(1, iterations + 1):
            draws = sample(device, limits, keys, jnp.asarray(k), 1) if sampled else None
            tables = _step(chosen, tables, device, draws, jnp.asarray(k))
            for name, table in tables.items():
                history[name].append(np.asarray(table[0]))
            samples.append(None if draws is None else np.asarray(draws[0]))
    return {name: np.stack(tables) for name, tables in history.items()}, samples


# MoVI as Section 3 first writes it ----------------------------------------------------------------


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.9, 1.0, 1.2])
def test_the_smoothed_form_is_rho_times_h_plus_q_and_its_average_is_movis(rho):
    """h_k = ρ h_{k−1} + q_k by a loop; h_k / (1 + ρ + … + ρ^k) is MoVI's h."""
    mdp = random_mdp(2, 5, 3, 3)
    smoothed, samples = trajectory(mdp, smoothed_value_iteration(rho), 40, seed=4)
    averaged, _ = trajectory(mdp, "movi", 40, seed=4, beta=Smoothing(rho))
    q = h = np.zeros((5, 3))
    for k in range(1, 41):
        policy = h.argmax(1)
        new = np.empty_like(q)
        for s, a in np.ndindex(*q.shape):
            n = samples[k - 1][s, a]
            new[s, a] = mdp.rewards[s, a] + float(mdp.discount) * q[n, policy[n]]
        q, h = new, rho * h + new
        np.testing.assert_allclose(smoothed["q"][k], q, rtol=0, atol=1e-9)
        np.testing.assert_allclose(smoothed["h"][k], h, rtol=0, atol=1e-9 * (1 + abs(h).max()))
        weight = sum(rho**i for i in range(k + 1))
        np.testing.assert_allclose(averaged["h"][k], h / weight, rtol=0, atol=1e-9)
        np.testing.assert_allclose(averaged["q"][k], q, rtol=0, atol=1e-9)


def test_rho_zero_is_avi_rho_one_the_mean_and_from_zero_a_smaller_one_a_constant_beta():
    mdp = random_mdp(3, 6, 3, 3)

    def run_of(which, beta=None):
        return trajectory(mdp, which, 30, seed=1, beta=beta)[0]

    np.testing.assert_array_equal(
        run_of(smoothed_value_iteration(0.0))["q"][1:], run_of("avi")["q"][1:]
    )
    one, mean = run_of(smoothed_value_iteration(1.0)), run_of("movi")
    np.testing.assert_allclose(one["q"], mean["q"], rtol=0, atol=1e-10)
    part, constant = run_of(smoothed_value_iteration(0.7)), run_of("movi", Constant(0.7))
    np.testing.assert_allclose(part["q"], constant["q"], rtol=0, atol=1e-10)
    np.testing.assert_allclose(0.3 * part["h"], constant["h"], rtol=0, atol=1e-10)


def test_the_smoothed_form_solves_an_mdp_and_refuses_a_negative_rho():
    mdp = garnet(8, 3, 3, seed=1)
    found = solve(mdp, smoothed_value_iteration(0.5), tolerance=1e-6)
    assert found.converged
    assert found.scheme == "movi-smoothed"
    for make in (smoothed_value_iteration, Smoothing):
        for rho in (-0.1, np.inf):
            assert refusal(make, rho) == f"rho: {rho!r}, expected a number of at least 0"


# MoVI is a mean ----------------------------------------------------------------------------------


@pytest.mark.parametrize("sampled", [False, True], ids=["exact", "sampled"])
def test_the_average_of_movi_is_the_mean_of_all_its_evaluations(sampled):
    tables, _ = trajectory(random_mdp(0, 6, 3, 3), "movi", 60, sampled=sampled)
    means = np.cumsum(tables["q"], 0) / np.arange(1, 62)[:, None, None]
    np.testing.assert_allclose(tables["h"], means, rtol=0, atol=1e-13)


def test_exact_movi_evaluates_the_policy_that_is_greedy_for_the_average():
    mdp = random_mdp(0, 6, 3, 3)
    tables, _ = trajectory(mdp, "movi", 60, sampled=False)
    kernel, every = dense_kernel(mdp), np.arange(6)
    for k in range(1, 61):
        pi = tables["h"][k - 1].argmax(1)
        expected = mdp.rewards + 0.9 * kernel @ tables["q"][k - 1][every, pi]
        np.testing.assert_allclose(tables["q"][k], expected, rtol=0, atol=1e-13)


def test_movi_with_a_constant_beta_is_a_moving_average():
    tables, _ = trajectory(random_mdp(0, 6, 3, 3), "movi", 40, beta=Constant(0.8))
    h = np.zeros((6, 3))
    for k in range(1, 41):
        h = 0.8 * h + 0.2 * tables["q"][k]
        np.testing.assert_allclose(tables["h"][k], h, rtol=0, atol=1e-13)


@pytest.mark.parametrize("name", NAMES)
def test_exact_schemes_converge_to_the_optimum(name):
    mdp = random_mdp(7, 6, 3, 3, 0.5)
    tables, _ = trajectory(mdp, name, 1000, sampled=False)
    v = np.zeros(6)
    for _ in range(200):
        v = (mdp.rewards + 0.5 * dense_kernel(mdp) @ v).max(1)
    found = tables["q"][-1].max(1)
    np.testing.assert_allclose(found, v, rtol=0, atol=1e-10 if name == "avi" else 0.02)


# The ψ-forms -------------------------------------------------------------------------------------


def test_movi_in_its_psi_form_is_the_same_scheme():
    mdp, iterations = random_mdp(1, 6, 3, 3), 80
    tables, samples = trajectory(mdp, "movi", iterations)
    before, psi = np.zeros((6, 3)), np.zeros((6, 3))
    for k in range(1, iterations + 1):
        there, pi = samples[k - 1], psi.argmax(1)  # [S, A] successors; π_k = G(ψ_{k−1})
        new = psi + mdp.rewards + 0.9 * (psi[there, pi[there]] - before[there, pi[there]])
        before, psi = psi, new
        np.testing.assert_allclose((k + 1) * tables["h"][k], psi, rtol=0, atol=1e-11)


def test_sql_in_its_psi_form_is_the_same_scheme():
    mdp, iterations = random_mdp(1, 6, 3, 3), 80
    tables, samples = trajectory(mdp, "sql", iterations)
    before, psi = np.zeros((6, 3)), np.zeros((6, 3))
    for k in range(1, iterations + 1):
        there = samples[k - 1]
        new = psi + mdp.rewards + 0.9 * (psi.max(1)[there] - before.max(1)[there])
        before, psi = psi, new
        np.testing.assert_allclose(k * tables["q"][k], psi, rtol=0, atol=1e-11)


def test_avi_and_dpp_are_their_recursions():
    mdp, iterations = random_mdp(1, 6, 3, 3), 40
    avi, samples = trajectory(mdp, "avi", iterations)
    dpp, same = trajectory(mdp, "dpp", iterations)
    np.testing.assert_array_equal(samples, same)
    q, psi = np.zeros((6, 3)), np.zeros((6, 3))
    for k in range(1, iterations + 1):
        there = samples[k - 1]
        q = mdp.rewards + 0.9 * q.max(1)[there]
        psi = psi + mdp.rewards + 0.9 * psi.max(1)[there] - psi.max(1, keepdims=True)
        np.testing.assert_allclose(avi["q"][k], q, rtol=0, atol=1e-12)
        np.testing.assert_allclose(dpp["q"][k], psi, rtol=0, atol=1e-11)


@settings(max_examples=8)
@given(st.integers(0, 2**31), st.sampled_from([0.5, 0.9, 0.99]))
def test_sql_and_dpp_share_their_greedy_policies_at_every_iteration(seed, discount):
    iterations = 300
    mdps = garnet(10, 3, 3, seed=seed, count=4, discount=discount)
    schemes = [scheme("sql"), scheme("dpp")]
    (chunk,) = run(mdps, schemes, iterations, seed=seed, chunk=iterations)
    sql, dpp = np.asarray(chunk.policies)
    assert (sql[1:] != sql[:-1]).any()
    for m in np.unique(np.argwhere(sql != dpp)[:, 1]):
        assert m == 0, "only MDP 0 can be replayed alone"
        tables, _ = trajectory(mdps[0], "sql", iterations, seed=seed)
        for k, _, s in np.argwhere(sql[:, :1] != dpp[:, :1]):
            row = tables["q"][k, s]
            assert abs(row[sql[k, 0, s]] - row[dpp[k, 0, s]]) <= 1e-12 * (1 + np.abs(row).max())


def test_the_difference_of_sql_and_dpp_depends_on_the_state_alone():
    mdp, iterations = random_mdp(1, 6, 3, 3), 80
    sql, dpp = (trajectory(mdp, name, iterations)[0]["q"] for name in ("sql", "dpp"))
    difference = np.arange(iterations + 1)[:, None, None] * sql - dpp
    np.testing.assert_allclose(np.ptp(difference, -1), 0, atol=1e-10)
    assert np.abs(difference).max() > 1


# Runs --------------------------------------------------------------------------------------------


def policies(mdps, names, iterations, **options):
    chunks = list(run(mdps, [scheme(name) for name in names], iterations, **options))
    assert [c.first for c in chunks] == list(range(1, iterations + 1, options.get("chunk", 500)))
    return np.concatenate([np.asarray(c.policies) for c in chunks], 1)


@pytest.fixture(scope="module")
def mdps():
    return garnet(8, 3, 3, seed=9, count=4)


@pytest.mark.parametrize("name", NAMES)
def test_a_run_yields_the_policy_used_in_each_iteration(mdps, name):
    found = policies(mdps, [name], 50, seed=3)
    tables, _ = trajectory(mdps[0], name, 50, seed=3)
    read = tables["h" if name == "movi" else "q"][:50]  # π_k = G(table k − 1)
    assert found.shape == (1, 50, 4, 8)
    # Actions that are equal but for rounding (one reward, one sampled successor) are either's.
    taken = np.take_along_axis(read, found[0, :, 0, :, None], -1)[..., 0]
    np.testing.assert_allclose(taken, read.max(-1), rtol=1e-12, atol=1e-12)
    second, best = np.sort(read, -1)[..., -2:].transpose(2, 0, 1)
    clear = best - second > 1e-9
    assert clear.mean() > 0.8
    np.testing.assert_array_equal(found[0, :, 0][clear], read.argmax(-1)[clear])
    assert not found[0, 0].any()


def test_the_size_of_chunks_does_not_change_a_run(mdps):
    whole = policies(mdps, NAMES, 60, chunk=60)
    for chunk in (1, 30, 40):
        np.testing.assert_array_equal(policies(mdps, NAMES, 60, chunk=chunk), whole)


def test_the_company_of_an_mdp_does_not_change_its_run(mdps):
    whole = policies(mdps, NAMES, 60)
    np.testing.assert_array_equal(policies(mdps[:2], NAMES, 60), whole[:, :, :2])
    np.testing.assert_array_equal(policies(mdps[0], NAMES, 60), whole[:, :, :1])


def test_the_company_of_a_scheme_does_not_change_its_run(mdps):
    whole = policies(mdps, NAMES, 60)
    for i, name in enumerate(NAMES):
        np.testing.assert_array_equal(policies(mdps, [name], 60)[0], whole[i])


def test_a_seed_gives_the_same_run_twice_and_another_seed_another(mdps):
    runs = [policies(mdps, ["avi"], 60, seed=seed).tobytes() for seed in (0, 0, 1, 2**40)]
    assert runs[0] == runs[1]
    assert len(set(runs)) == 3


def test_a_run_without_samples_is_exact(mdps):
    found = policies(mdps, NAMES, 30, samples=0)
    for i, name in enumerate(NAMES):
        tables, _ = trajectory(mdps[2], name, 30, sampled=False)
        acting = tables["h" if name == "movi" else "q"][:30]
        chosen = np.take_along_axis(acting, found[i, :, 2, :, None].astype(int), -1)[..., 0]
        np.testing.assert_allclose(chosen, acting.max(-1), rtol=0, atol=1e-12)


def test_more_samples_come_nearer_to_the_exact_run(mdps):
    exact = policies(mdps, ["avi"], 40, samples=0)
    agreement = [(policies(mdps, ["avi"], 40, samples=m) == exact).mean() for m in (1, 100)]
    assert agreement[0] < agreement[1]


@pytest.mark.slow
def test_more_than_256_actions_are_told_apart():
    rewards = np.zeros((1, 258))
    rewards[0, 257] = 1
    mdp = FiniteMDP(np.zeros((1, 258, 1), int), np.ones((1, 258, 1)), rewards, 0.5)
    assert policies(mdp, ["avi"], 2, samples=0).tolist() == [[[[0]], [[257]]]]


def test_the_default_precision_is_float32_between_the_chunks_of_a_run(mdps):
    for chunk in run(mdps, [scheme("avi")], 4, chunk=2):
        assert jnp.ones(3).dtype == jnp.float32
        np.asarray(chunk.policies)
    assert jnp.ones(3).dtype == jnp.float32


def test_schemes_are_known_by_name_and_an_algorithm_is_one():
    assert scheme("movi") == Scheme(MOVI, Mean())
    assert scheme(MOVI, Constant(0.5)) == Scheme(MOVI, Constant(0.5))
    assert refusal(scheme, "heavy-ball") == (
        "scheme: 'heavy-ball', expected one of avi, movi, sql, dpp, m-vi, md-vi, da-vi, cvi, "
        "advantage-learning, politex, softened-lspi, mpi, anc-vi"
    )
