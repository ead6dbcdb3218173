import functools

import jax.numpy as jnp
import numpy as np
import pytest

import momentum_rl.planning.comparison
from momentum_rl.core.schedules import Constant, Mean
from momentum_rl.mdp.families import garnet
from momentum_rl.mdp.model import FiniteMDP
from momentum_rl.mdp.solve.exact import optimum
from momentum_rl.planning.comparison import compare_schemes, run
from momentum_rl.planning.engine import scheme
from tests.oracles import optimal_q, policy_q, random_mdp, refusal

NAMES = ("avi", "movi", "sql", "dpp")


@pytest.fixture(scope="module")
def mdps():
    return garnet(8, 3, 3, seed=9, count=4)


@pytest.fixture(scope="module")
def long(mdps):
    """200 iterations of the four schemes."""
    return compare_schemes(mdps, iterations=200)


def stacked(*mdps):
    fields = ("successors", "probabilities", "rewards", "discount")
    return FiniteMDP(*(np.stack([getattr(m, name) for m in mdps]) for name in fields))


def test_the_comparison_has_the_papers_orders_of_magnitude():
    """READING.md, from another implementation and other Garnets; 40 of them steady the means."""
    result = compare_schemes(garnet(count=40, seed=1), iterations=520, seed=1)
    assert result.schemes == NAMES
    means = result.l1.mean(-1)
    reference = {
        "avi": (1.43, 1.21, 1.31),
        "movi": (0.44, 0.065, 0.010),
        "sql": (0.46, 0.073, 0.013),
        "dpp": (0.46, 0.073, 0.013),
    }
    for name, curve in zip(NAMES, means):
        for k, expected in zip((10, 100, 500), reference[name]):
            near = curve[int(0.96 * k) - 1 : int(1.04 * k)].mean()
            assert expected / 2 < near < expected * 2, (name, k, near)
    assert means[0, 100:].min() > 10 * means[1:, 100:].mean(1).max()


def test_the_errors_are_exact_losses_of_the_policies_of_the_run(mdps):
    result = compare_schemes(mdps, iterations=40, seed=5)
    (chunk,) = run(mdps, [scheme(name) for name in NAMES], 40, seed=5, chunk=40)
    policies = np.asarray(chunk.policies)
    best = [optimal_q(mdp) for mdp in mdps]
    for i, k, m in np.ndindex(4, 40, 4):
        difference = best[m] - policy_q(mdps[m], policies[i, k, m])
        assert result.l1[i, k, m] == pytest.approx(difference.mean(), abs=1e-10)
        assert result.sup[i, k, m] == pytest.approx(difference.max(), abs=1e-10)


def test_point_one_is_the_first_action_everywhere_and_point_two_is_greedy_for_the_reward():
    mdps = stacked(random_mdp(1, 6, 3, 2), random_mdp(2, 6, 3, 2))
    result = compare_schemes(mdps, iterations=2)
    for m, mdp in enumerate(mdps):
        best = optimal_q(mdp)
        for k, policy in enumerate([np.zeros(6, int), mdp.rewards.argmax(1)]):
            loss = np.abs(best - policy_q(mdp, policy)).mean()
            np.testing.assert_allclose(result.l1[:, k, m], loss, rtol=0, atol=1e-10)
    assert (result.l1[:, 0] != result.l1[:, 1]).all()


def test_chunks_and_company_do_not_change_a_comparison(mdps):
    whole = compare_schemes(mdps, iterations=40)
    chunked = compare_schemes(mdps, iterations=40, chunk=25)
    # The policies are the same; how many are evaluated at once changes the rounding of products.
    same = functools.partial(np.testing.assert_allclose, rtol=0, atol=1e-12)
    same(chunked.l1, whole.l1)
    same(chunked.sup, whole.sup)
    same(compare_schemes(mdps[:2], iterations=40).l1, whole.l1[..., :2])
    alone = compare_schemes(mdps, ["sql"], iterations=40)
    same(alone.l1[0], whole.l1[2])
    same(compare_schemes(mdps, iterations=25).l1, whole.l1[:, :25])


def test_a_comparison_larger_than_its_memory_is_cut_into_chunks(mdps, monkeypatch):
    whole = compare_schemes(mdps, iterations=40)
    monkeypatch.setattr(momentum_rl.planning.comparison, "_ROWS", 4 * 4 * 8 * 25)
    np.testing.assert_allclose(
        compare_schemes(mdps, iterations=40).l1, whole.l1, rtol=0, atol=1e-12
    )


def test_another_seed_gives_other_samples(mdps):
    first, again, other = (compare_schemes(mdps, iterations=40, seed=s).l1 for s in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_sql_and_dpp_have_the_same_curve(long):
    np.testing.assert_array_equal(long.l1[2], long.l1[3])


def test_exact_schemes_lose_nothing_in_the_end(mdps):
    result = compare_schemes(mdps, iterations=400, samples=0, chunk=200)
    assert result.l1[:, -1].max() < 1e-9
    assert result.l1[:, 0].min() > 1e-3


def test_a_constant_beta_reaches_the_schemes_that_have_one(mdps, long):
    mean = long.l1
    same, half = (
        compare_schemes(mdps, iterations=200, beta=beta).l1 for beta in (Mean(), Constant(0.5))
    )
    np.testing.assert_array_equal(mean, same)
    for i, name in enumerate(NAMES):
        assert (half[i] != mean[i]).any() == (name in ("movi", "sql"))
    assert half[1, 100:].mean() > 2 * mean[1, 100:].mean()  # a moving average keeps its noise


def test_with_beta_zero_movi_is_avi_up_to_ties(mdps):
    zero = compare_schemes(mdps, ["avi", "movi"], iterations=60, beta=Constant(0.0)).l1
    np.testing.assert_array_equal(zero[0], zero[1])


def test_the_result_is_float64_and_the_default_precision_stays(mdps):
    result = compare_schemes(mdps, iterations=40)
    assert result.l1.dtype == result.sup.dtype == np.float64
    assert jnp.ones(3).dtype == jnp.float32


def test_losses_are_never_negative_beyond_rounding_and_sup_dominates(mdps, long):
    result = long
    assert result.l1.min() > -1e-12
    assert (result.sup >= result.l1 - 1e-12).all()
    assert optimum(mdps).bound.max() < 1e-10


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"iterations": 0}, "iterations: 0, expected at least 1"),
        ({"iterations": -5}, "iterations: -5, expected at least 1"),
        ({"samples": -1}, "samples: -1, expected at least 0"),
        ({"seed": -1}, "seed: -1, expected an integer in 0..2**63 - 1"),
        ({"seed": 2**70}, f"seed: {2**70}, expected "),
        ({"chunk": 0}, "chunk: 0, expected at least 1"),
        ({"chunk": -1}, "chunk: -1, expected at least 1"),
        ({"schemes": []}, "schemes: none, expected at least one"),
        (
            {"schemes": np.ones((2, 2))},
            "which: array([1., 1.]), expected a text or Algorithm or Options",
        ),
        ({"schemes": ["movi", "what"]}, "scheme: 'what', expected one of avi, movi, sql, dpp"),
        ({"mdps": garnet(3, 2, 2)}, "mdps: a single MDP, expected a batch"),
    ],
)
def test_an_impossible_comparison_is_refused(mdps, arguments, complaint):
    line = refusal(compare_schemes, **({"mdps": mdps, "iterations": 3} | arguments))
    assert line.startswith(complaint)
