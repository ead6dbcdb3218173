"""Both readings of ε̄_{l,N}, against loops and matrices that are given the same samples."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from momentum_rl.mdp.families import garnet
from momentum_rl.mdp.model import FiniteMDP
from momentum_rl.mdp.operators import on_device
from momentum_rl.planning.engine import member_keys, sample, scheme, thresholds
from momentum_rl.planning.theory import trace
from paper.tables.assumption import AssumptionCheck, assumption_check, policies_fixed
from tests.oracles import pair_kernel, random_mdp, refusal

LENGTHS = (0, 1, 2, 4)
READINGS = ("printed", "assumed", "one_more")


def stacked(mdps):
    fields = ("successors", "probabilities", "rewards", "discount")
    return FiniteMDP(*(np.stack([getattr(mdp, name) for mdp in mdps]) for name in fields))


@pytest.fixture(scope="module")
def mdps():
    return stacked([random_mdp(i, 4, 3, 3, gamma) for i, gamma in enumerate((0.3, 0.9, 0.95))])


def draws(mdps, keys, copies, iterations):
    """The successors of every (s, a) at each iteration, [iteration][member, S, A]."""
    with jax.enable_x64(True):
        device = on_device(mdps, copies)
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


def noise(mdp, q, policy, sampled):
    """T̂_π q − T_π q as a vector, the exact operator by an explicit matrix."""
    exact = mdp.rewards.reshape(-1)
    exact = exact + float(mdp.discount) * pair_kernel(mdp, policy) @ q.reshape(-1)
    return sampled.reshape(-1) - exact


def by_brute_force(mdps, j, lengths, restarts, seed, reading):
    """A reading word for word, with explicit products of matrices.

    printed: restart from q_j and h_j, with ε = T̂_{π_j} q_j − T_{π_j} q_j (Section 7.1).
    assumed: restart from q_{j−1} and h_{j−1}, with ε = T̂_{π_j} q_{j−1} − T_{π_j} q_{j−1}.
    one_more: the same restarts; the product has P_{π_j} as well.
    """
    with jax.enable_x64(True):
        past = member_keys(seed, len(mdps))
        future = member_keys(seed + 1, len(mdps), restarts)
    history = draws(mdps, past, 1, range(1, j + 1))
    fresh = draws(mdps, future, restarts, range(j, j + max(lengths) + 2))
    result = np.empty((len(lengths), restarts, len(mdps)))
    for m, mdp in enumerate(mdps):
        q = h = np.zeros((mdps.states, mdps.actions))
        for k in range(1, j + 1 if reading == "printed" else j):
            policy = h.argmax(1)  # π_k
            q = backup(mdp, q, policy, history[k][m])
            h = (k * h + q) / (k + 1)
        products = np.empty((len(lengths), restarts, q.size))
        for n in range(restarts):
            own_q, own_h, policies = q, h, {}
            if reading == "printed":
                first, policies[j] = j + 1, policy
            else:
                first, policies[j] = j, h.argmax(1)
            samples = fresh[first][m * restarts + n]
            error = noise(mdp, q, policies[j], backup(mdp, q, policies[j], samples))
            for k in range(first, j + max(lengths) + 1):
                policies[k] = own_h.argmax(1)
                own_q = backup(mdp, own_q, policies[k], fresh[k][m * restarts + n])
                own_h = (k * own_h + own_q) / (k + 1)
            for row, length in enumerate(lengths):
                matrix = np.eye(q.size)
                lowest = j if reading == "one_more" else j + 1
                for k in range(lowest, j + length + 1):  # P_{j+l} … P_{j+1}, or … P_j
                    matrix = pair_kernel(mdp, policies[k]) @ matrix
                products[row, n] = matrix @ error
        for count in range(1, restarts + 1):
            result[:, count - 1, m] = np.abs(products[:, :count].mean(1)).max(-1)
    return result


@pytest.mark.parametrize(("j", "seed"), [(1, 0), (2, 5), (6, 3)])
def test_each_reading_is_that_of_loops_and_explicit_matrices(mdps, j, seed):
    found = assumption_check(mdps, iteration=j, lengths=LENGTHS, restarts=9, seed=seed)
    expected = {r: by_brute_force(mdps, j, LENGTHS, 9, seed, r) for r in READINGS}
    for reading, values in expected.items():
        assert getattr(found, reading).shape == (4, 9, 3)
        np.testing.assert_allclose(getattr(found, reading), values, rtol=0, atol=1e-10)
        # From zero the first error is zero; q_1 is not zero, so the printed one is there at once.
        assert (values.max() > 0.1) == (j > 1 or reading == "printed")
    if j > 1:
        assert np.abs(expected["printed"] - expected["assumed"]).max() > 0.1
        assert np.abs(expected["one_more"] - expected["assumed"]).max() > 0.1


def test_as_printed_the_first_kernel_does_not_know_the_error_and_the_mean_is_centred(mdps):
    """l = 1: the mean over infinitely many restarts is zero, by enumeration of all samples."""
    j, seed = 5, 2
    with jax.enable_x64(True):
        past = member_keys(seed, len(mdps))
    history = draws(mdps, past, 1, range(1, j + 1))
    for m, mdp in enumerate(mdps):
        q = h = np.zeros((mdps.states, mdps.actions))
        before = h
        for k in range(1, j + 1):
            before = h
            q = backup(mdp, q, h.argmax(1), history[k][m])
            h = (k * h + q) / (k + 1)
        # E[T̂ q_j](s, a), one sum over the successors for each (s, a).
        policy, next_policy = before.argmax(1), h.argmax(1)
        values = q[np.arange(mdps.states), policy]
        mean = mdp.rewards + float(mdp.discount) * (mdp.probabilities * values[mdp.successors]).sum(
            -1
        )
        product = pair_kernel(mdp, next_policy) @ noise(mdp, q, policy, mean)
        np.testing.assert_allclose(product, 0, atol=1e-12)


def equal(found, expected, atol=1e-13):
    for name in READINGS:
        one, other = getattr(found, name), getattr(expected, name)
        np.testing.assert_allclose(one, other, rtol=0, atol=atol, err_msg=name)
    for name in ("fixed_printed", "fixed_assumed"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


@pytest.mark.slow
@pytest.mark.parametrize("batch", [1, 2, 100])
def test_the_size_of_batches_does_not_change_the_estimates(mdps, batch):
    settings = {"iteration": 5, "lengths": (0, 2), "restarts": 7, "seed": 1}
    expected = assumption_check(mdps, **settings, batch=3)
    equal(assumption_check(mdps, **settings, batch=batch), expected)


@pytest.mark.slow
def test_fewer_restarts_or_lengths_are_a_part_of_more(mdps):
    settings = {"iteration": 5, "seed": 1}
    all_of_it = assumption_check(mdps, **settings, lengths=(0, 1, 2, 4), restarts=8)
    some = assumption_check(mdps, **settings, lengths=(4, 1), restarts=8)
    equal(some, AssumptionCheck(*(column[[3, 1]] for column in all_of_it)))
    fewer = assumption_check(mdps, **settings, lengths=(0, 1, 2, 4), restarts=3)
    for name in READINGS:
        np.testing.assert_allclose(
            getattr(fewer, name), getattr(all_of_it, name)[:, :3], rtol=0, atol=1e-13
        )


def test_a_single_restart_without_kernels_is_the_size_of_an_error(mdps):
    """N = 1, l = 0, as assumed: ‖ε_j‖∞, on average over seeds the same as in any run."""
    seeds = range(60)
    single = [
        assumption_check(mdps, iteration=4, lengths=(0,), restarts=1, seed=s).assumed[0, 0]
        for s in seeds
    ]
    inside = [
        np.abs(trace(mdps, scheme("movi"), 4, seed=100 + s).errors[3]).max((-2, -1)) for s in seeds
    ]
    np.testing.assert_allclose(np.mean(single, 0), np.mean(inside, 0), rtol=0.15)


def test_with_one_action_no_policy_depends_on_the_error_and_every_mean_vanishes():
    """P_{j+l:j+1} is then a constant matrix, and Assumption 1 holds exactly."""
    mdps = garnet(10, 1, 3, seed=1, count=12)
    check = assumption_check(mdps, iteration=10, lengths=(0, 1, 3), restarts=400)
    assert check.fixed_assumed.all()
    assert check.fixed_printed.all()
    for name in READINGS:
        estimates = getattr(check, name).mean(-1)
        assert estimates[0, 399] / estimates[0, 24] == pytest.approx(0.25, abs=0.08)
        assert (estimates[:, 399] / estimates[:, 24] < 0.4).all()
        assert (estimates[:, 399] < 0.12 * estimates[:, 0]).all()


def test_at_a_small_j_the_readings_differ_as_the_next_policy_has_seen_the_error_or_has_not():
    """π_{j+1} is greedy for h_j, which contains ε_j/(j+1) as assumed, and not as printed."""
    mdps = garnet(count=10, seed=0)
    check = assumption_check(mdps, iteration=10, lengths=(0, 1), restarts=400)
    plain, next_policy = check.assumed.mean(-1)
    assert plain[399] < 0.12 * plain[0]
    assert next_policy[399] > 0.3 * next_policy[0]  # a mean of centred terms: 0.05
    assert next_policy[399] > 0.8 * next_policy[99]  # a mean of centred terms: 0.5
    plain, next_policy = check.printed.mean(-1)
    assert (next_policy < plain).all()
    assert next_policy[399] < 0.08 * next_policy[0]
    assert next_policy[399] == pytest.approx(0.5 * next_policy[99], rel=0.35)


def test_the_effect_shrinks_with_the_iteration():
    mdps = garnet(count=10, seed=0)
    early, late = (
        assumption_check(mdps, iteration=j, lengths=(1,), restarts=400).assumed[0, 399].mean()
        for j in (10, 1000)
    )
    assert late < 0.4 * early


# Where the conditional mean is zero, by proof ----------------------------------------------------


def two_armed(rewards, discount=0.5):
    """One state that stays, two actions."""
    still = np.zeros((1, 1, 2, 1), int)
    return FiniteMDP(still, np.ones(still.shape), np.array([[rewards]]), np.array([discount]))


def test_what_iterations_can_move_is_compared_with_the_gap():
    """γ = 1/2, rewards 0 and 1, q's range 1: d_0 = 1 + 1/2, R_0 = 3/2, d_1 = 1 + 3/4."""
    mdps, q = two_armed([0.0, 1.0]), np.array([[[0.0, 1.0]]])
    for gap, expected in ((0.15, [1, 0, 0]), (0.151, [1, 1, 0]), (0.325, [1, 1, 0])):
        found = policies_fixed(mdps, q, gap * q, 10, (0, 1, 2))
        np.testing.assert_array_equal(found[:, 0], np.array(expected, bool))
    assert policies_fixed(mdps, q, 0.3251 * q, 10, (2,)).all()


@given(seed=st.integers(0, 10_000), j=st.integers(1, 60), gamma=st.sampled_from([0.2, 0.6, 0.9]))
@settings(max_examples=60, deadline=None)
def test_a_fixed_policy_is_changed_by_no_samples(seed, j, gamma):
    """The proof's claim by adversaries: from any tables, random successors, possible or not."""
    rng = np.random.default_rng(seed)
    mdp = random_mdp(seed, 3, 2, 2, gamma)
    mdps = stacked([mdp])
    q = rng.normal(size=(3, 2)) * rng.choice([0.1, 1, 5])
    h = rng.normal(size=(3, 2)) * rng.choice([0.5, 5, 50])
    lengths = (0, 1, 2, 3)
    proven = policies_fixed(mdps, q[None], h[None], j, lengths)[:, 0]
    longest = max(length for length, is_so in zip(lengths, proven) if is_so)
    assert proven[: longest + 1].all()
    for _ in range(20):
        own_q, own_h = q, h
        for k in range(j, j + longest):
            policy = own_h.argmax(1)
            np.testing.assert_array_equal(policy, h.argmax(1))
            own_q = backup(mdp, own_q, policy, rng.integers(3, size=(3, 2)))
            own_h = (k * own_h + own_q) / (k + 1)
        np.testing.assert_array_equal(own_h.argmax(1), h.argmax(1))


@pytest.mark.slow
def test_on_a_garnet_with_clear_gaps_a_late_conditional_mean_is_that_of_a_constant_matrix():
    """Settled at j = 20,000 for every l ≤ 10: the products are P_{π_j}^l times a mean error."""
    garnets = garnet(count=40, seed=0)
    check = assumption_check(garnets, iteration=20_000, restarts=100)
    clear = check.fixed_assumed.all(0)
    assert clear.sum() >= 10
    for estimates in (check.assumed, check.one_more):
        falls = estimates[:, 99, clear].mean(-1) / estimates[:, 0, clear].mean(-1)
        assert (falls < 0.15).all()  # 1/√100 = 0.1


def test_the_share_of_garnets_with_fixed_policies_grows_with_j_and_falls_with_l():
    garnets = garnet(count=20, seed=0)
    checks = [
        assumption_check(garnets, iteration=j, restarts=1, lengths=(0, 1, 2, 5))
        for j in (10, 100, 1000)
    ]
    for name in ("fixed_printed", "fixed_assumed"):
        shares = np.stack([getattr(check, name).mean(1) for check in checks])
        np.testing.assert_array_equal(shares[:, 0], 1)
        assert (np.diff(shares, axis=1) <= 0).all()
        assert (np.diff(shares, axis=0) >= 0).all()
        # As printed the first kernel is fixed before the error: l = 1 is always fixed.
        assert shares[0, 1] == (name == "fixed_printed")
        assert shares[2, 2] >= 0.2


def test_a_seed_gives_the_same_estimates_twice_and_another_seed_others(mdps):
    settings = {"iteration": 5, "lengths": (0, 4), "restarts": 9}
    first = assumption_check(mdps, **settings, seed=1)
    equal(assumption_check(mdps, **settings, seed=1), first, atol=0)
    other = assumption_check(mdps, **settings, seed=2)
    for name in READINGS:
        assert (getattr(other, name) != getattr(first, name)).mean() > 0.9


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
