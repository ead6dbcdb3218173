"""ε̄_{l,N}, against loops and matrices that are given the same sampled successors."""

import jax
import numpy as np
import pytest

from movi.mdp import FiniteMDP, garnet
from movi.mdp.operators import union
from movi.planning.assumption import assumption_check
from movi.planning.engine import member_keys, sample, thresholds
from movi.planning.errors import trace
from movi.planning.schemes import scheme
from tests.oracles import pair_kernel, random_mdp, refusal

LENGTHS = (0, 1, 2, 4)


def stacked(mdps):
    fields = ("successors", "probabilities", "rewards", "discount")
    return FiniteMDP(*(np.stack([getattr(mdp, name) for mdp in mdps]) for name in fields))


@pytest.fixture(scope="module")
def mdps():
    return stacked([random_mdp(i, 4, 3, 3, gamma) for i, gamma in enumerate((0.3, 0.9, 0.95))])


def draws(mdps, keys, copies, iterations):
    """The successors of every (s, a) at each iteration, [iteration][member, S, A]."""
    with jax.enable_x64(True):
        device = union(mdps, copies)
        limits = np.repeat(thresholds(mdps), copies, 0).reshape(*device.rewards.shape, -1)
        drawn = {k: np.asarray(sample(device, limits, keys, k, 1))[0] for k in iterations}
    members = len(mdps) * copies
    offsets = np.arange(members)[:, None, None] * mdps.states
    return {k: x.reshape(members, mdps.states, mdps.actions) - offsets for k, x in drawn.items()}


def backup(mdp, q, policy, successors):
    """T̂_π q by a loop."""
    new = np.empty_like(q)
    for s, a in np.ndindex(*q.shape):
        n = successors[s, a]
        new[s, a] = mdp.rewards[s, a] + float(mdp.discount) * q[n, policy[n]]
    return new


def by_brute_force(mdps, j, lengths, restarts, seed):
    """The paper's description, word for word: restart from q_{j−1}, multiply by the kernels."""
    with jax.enable_x64(True):
        past = member_keys(seed, len(mdps))
        future = member_keys(seed + 1, len(mdps), restarts)
    history = draws(mdps, past, 1, range(1, j))
    fresh = draws(mdps, future, restarts, range(j, j + max(lengths) + 1))
    result = np.empty((len(lengths), restarts, len(mdps)))
    for m, mdp in enumerate(mdps):
        q = h = np.zeros((mdps.states, mdps.actions))
        for k in range(1, j):
            q = backup(mdp, q, h.argmax(1), history[k][m])
            h = (k * h + q) / (k + 1)
        products = np.empty((len(lengths), restarts, q.size))
        for n in range(restarts):
            own_q, own_h, policies = q, h, {}
            for k in range(j, j + max(lengths) + 1):
                policies[k] = own_h.argmax(1)
                new = backup(mdp, own_q, policies[k], fresh[k][m * restarts + n])
                if k == j:
                    exact = mdp.rewards.reshape(-1)
                    exact = exact + float(mdp.discount) * pair_kernel(mdp, policies[j]) @ q.ravel()
                    error = new.reshape(-1) - exact
                own_q, own_h = new, (k * own_h + new) / (k + 1)
            for row, length in enumerate(lengths):
                matrix = np.eye(q.size)
                for k in range(j + 1, j + length + 1):  # P_{j+l:j+1} = P_{j+l} … P_{j+1}
                    matrix = pair_kernel(mdp, policies[k]) @ matrix
                products[row, n] = matrix @ error
        for count in range(1, restarts + 1):
            result[:, count - 1, m] = np.abs(products[:, :count].mean(1)).max(-1)
    return result


@pytest.mark.parametrize(("j", "seed"), [(1, 0), (2, 5), (6, 3)])
def test_the_estimate_is_that_of_loops_and_explicit_matrices(mdps, j, seed):
    found = assumption_check(mdps, iteration=j, lengths=LENGTHS, restarts=9, seed=seed)
    expected = by_brute_force(mdps, j, LENGTHS, 9, seed)
    assert found.shape == (4, 9, 3)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)
    assert (expected.max() > 0.1) == (j > 1)  # from zero the first error is zero


@pytest.mark.slow
@pytest.mark.parametrize("batch", [1, 2, 100])
def test_the_size_of_batches_does_not_change_the_estimates(mdps, batch):
    settings = {"iteration": 5, "lengths": (0, 2), "restarts": 7, "seed": 1}
    expected = assumption_check(mdps, **settings, batch=3)
    np.testing.assert_allclose(
        assumption_check(mdps, **settings, batch=batch), expected, rtol=0, atol=1e-13
    )


@pytest.mark.slow
def test_fewer_restarts_or_lengths_are_a_part_of_more(mdps):
    settings = {"iteration": 5, "seed": 1}
    all_of_it = assumption_check(mdps, **settings, lengths=(0, 1, 2, 4), restarts=8)
    some = assumption_check(mdps, **settings, lengths=(4, 1), restarts=8)
    np.testing.assert_allclose(some, all_of_it[[3, 1]], rtol=0, atol=1e-13)
    fewer = assumption_check(mdps, **settings, lengths=(0, 1, 2, 4), restarts=3)
    np.testing.assert_allclose(fewer, all_of_it[:, :3], rtol=0, atol=1e-13)


def test_without_kernels_the_mean_error_falls_with_the_root_of_the_restarts():
    """l = 0: a mean of independent centred errors."""
    estimates = assumption_check(
        garnet(10, 2, 3, seed=1, count=12), iteration=10, lengths=(0,), restarts=400
    )[0].mean(-1)
    assert estimates[399] / estimates[24] == pytest.approx(0.25, abs=0.08)
    assert estimates[399] < 0.1 * estimates[0]


def test_a_single_restart_without_kernels_is_the_size_of_an_error(mdps):
    """N = 1, l = 0: ‖ε_j‖∞, on average over seeds the same as in any run."""
    seeds = range(60)
    single = [
        assumption_check(mdps, iteration=4, lengths=(0,), restarts=1, seed=s)[0, 0] for s in seeds
    ]
    inside = [
        np.abs(trace(mdps, scheme("movi"), 4, seed=100 + s).errors[3]).max((-2, -1)) for s in seeds
    ]
    np.testing.assert_allclose(np.mean(single, 0), np.mean(inside, 0), rtol=0.15)


def test_with_one_action_no_policy_depends_on_the_error_and_every_mean_vanishes():
    """P_{j+l:j+1} is then a constant matrix, and Assumption 1 holds exactly."""
    mdps = garnet(10, 1, 3, seed=1, count=12)
    estimates = assumption_check(mdps, iteration=10, lengths=(1, 3), restarts=400).mean(-1)
    assert (estimates[:, 399] / estimates[:, 24] < 0.4).all()
    assert (estimates[:, 399] < 0.12 * estimates[:, 0]).all()


def test_with_choices_the_estimate_levels_off_because_the_next_policy_has_seen_the_error():
    """π_{j+1} is greedy for h_j, which contains ε_j/(j+1): the assumption fails at j = 10."""
    mdps = garnet(count=10, seed=0)
    estimates = assumption_check(mdps, iteration=10, lengths=(0, 1), restarts=400).mean(-1)
    plain, next_policy = estimates
    assert plain[399] < 0.12 * plain[0]
    assert next_policy[399] > 0.3 * next_policy[0]  # a mean of centred terms: 0.05
    assert next_policy[399] > 0.8 * next_policy[99]  # a mean of centred terms: 0.5


def test_the_effect_shrinks_with_the_iteration():
    mdps = garnet(count=10, seed=0)
    early, late = (
        assumption_check(mdps, iteration=j, lengths=(1,), restarts=400)[0, 399].mean()
        for j in (10, 1000)
    )
    assert late < 0.4 * early


def test_a_seed_gives_the_same_estimates_twice_and_another_seed_others(mdps):
    settings = {"iteration": 5, "lengths": (0, 2), "restarts": 7}
    first = assumption_check(mdps, **settings, seed=1)
    np.testing.assert_array_equal(assumption_check(mdps, **settings, seed=1), first)
    assert (assumption_check(mdps, **settings, seed=2) != first).all()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"iteration": 0}, "iteration: 0, expected at least 1"),
        ({"restarts": 0}, "restarts: 0, expected at least 1"),
        ({"batch": 0}, "batch: 0, expected at least 1"),
        ({"lengths": ()}, "lengths: (), expected integers of at least 0"),
        ({"lengths": (1, -2)}, "lengths: (1, -2), expected integers of at least 0"),
    ],
)
def test_an_impossible_check_is_refused(mdps, arguments, complaint):
    assert refusal(assumption_check, mdps, **arguments) == complaint


def test_a_single_mdp_is_refused(mdps):
    assert refusal(assumption_check, mdps[0]).startswith("mdps: a single MDP, expected a batch")
