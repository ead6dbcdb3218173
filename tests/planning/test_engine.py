import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from momentum_rl.core.schedules import Constant
from momentum_rl.core.targets import SCHEMES, SpeedyQLearning
from momentum_rl.mdp.families import garnet
from momentum_rl.mdp.model import FiniteMDP
from momentum_rl.mdp.operators import on_device
from momentum_rl.planning.engine import (
    Scheme,
    exactly,
    from_samples,
    greedy,
    iterate,
    member_keys,
    sample,
    scheme,
    start,
    thresholds,
)
from tests.oracles import dense_kernel, random_mdp

NAMES = ("avi", "movi", "sql", "dpp")

# Two states, two actions, γ = 1/2; tables whose newest copy is Q1 (or H) and whose older one is Q2.
Q1, Q2, H = [[1.0, 2.0], [4.0, 0.0]], [[0.0, 1.0], [2.0, 2.0]], [[3.0, 1.0], [0.0, 5.0]]
SAMPLED = [[1, 0], [0, 1]]


@pytest.fixture
def x64():
    with jax.enable_x64(True):
        yield


@pytest.fixture
def two_states():
    return FiniteMDP(
        np.broadcast_to([0, 1], (2, 2, 2)),
        [[[0.25, 0.75], [0.5, 0.5]], [[1.0, 0.0], [0.125, 0.875]]],
        [[1.0, 0.0], [2.0, -1.0]],
        0.5,
    )


def tables_of(algorithm, q1=Q1, q2=Q2, h=H):
    rows = {"q": [q1, q2][: algorithm.lags], "h": [h]}
    return {name: jnp.array(rows[name]) for name in algorithm.targets}


@pytest.mark.parametrize(
    ("which", "k", "table", "expected"),
    [
        # v = (2, 4): r + v(s')/2
        ("avi", 1, "q", [[3.0, 1.0], [3.0, 1.0]]),
        # π = G(H) = (0, 1), v = (Q1(0,0), Q1(1,1)) = (1, 0)
        ("movi", 1, "q", [[1.0, 0.5], [2.5, -1.0]]),
        # β_1 = 1/2: (H + q)/2
        ("movi", 1, "h", [[2.0, 0.75], [1.25, 2.0]]),
        # β_3 = 3/4: (3 H + q)/4
        ("movi", 3, "h", [[2.5, 0.875], [0.625, 3.5]]),
        # weight 1: r + max Q2(s')/2
        ("sql", 1, "q", [[2.0, 0.5], [2.5, 0.0]]),
        # weight 1/2: Q1 + (r + max Q2(s')/2 − Q1)/2 + (max Q1(s') − max Q2(s'))/4
        ("sql", 2, "q", [[2.0, 1.5], [3.5, 0.5]]),
        # the last difference reversed
        ("printed", 2, "q", [[1.0, 1.0], [3.0, -0.5]]),
        # Q1 + r + max Q1(s')/2 − max Q1(s)
        ("dpp", 1, "q", [[2.0, 1.0], [3.0, -3.0]]),
    ],
)
def test_one_sampled_iteration_equals_the_one_worked_out_by_hand(
    x64, two_states, which, k, table, expected
):
    chosen = scheme(SpeedyQLearning("printed").algorithm() if which == "printed" else which)
    read = from_samples(jnp.array([SAMPLED]))
    new = iterate(chosen, tables_of(chosen.algorithm), read, on_device(two_states), k)
    np.testing.assert_array_equal(new[table][0], expected)


def test_the_new_table_comes_first_and_the_oldest_falls_off(x64, two_states):
    chosen = scheme("sql")
    read = from_samples(jnp.array([SAMPLED]))
    new = iterate(chosen, tables_of(chosen.algorithm), read, on_device(two_states), 2)
    np.testing.assert_array_equal(new["q"], [[[2.0, 1.5], [3.5, 0.5]], Q1])


def test_several_samples_give_the_mean_of_their_targets(x64, two_states):
    chosen = scheme("avi")
    read = from_samples(jnp.array([SAMPLED, [[0, 0], [0, 0]]]))
    new = iterate(chosen, tables_of(chosen.algorithm), read, on_device(two_states), 1)
    # with s' = 0 everywhere: r + 2/2 = [[2, 1], [3, 0]]
    np.testing.assert_array_equal(new["q"][0], [[2.5, 1.0], [3.0, 0.5]])


def test_one_exact_iteration_equals_the_one_worked_out_by_hand(x64, two_states):
    device = on_device(two_states)
    for name, table, expected in [
        # E v(s') with v = (2, 4): [[3.5, 3], [2, 3.75]]
        ("avi", "q", [[2.75, 1.5], [3.0, 0.875]]),
        # E v(s') with v = (1, 0): [[.25, .5], [1, .125]]
        ("movi", "q", [[1.125, 0.25], [2.5, -0.9375]]),
        # Q1 + r + E max Q1(s')/2 − max Q1(s)
        ("dpp", "q", [[1.75, 1.5], [3.0, -3.125]]),
    ]:
        chosen = scheme(name)
        new = iterate(chosen, tables_of(chosen.algorithm), exactly(device), device, 1)
        np.testing.assert_array_equal(new[table][0], expected, err_msg=name)


@pytest.mark.parametrize("name", NAMES)
def test_a_scheme_starts_from_zero(x64, name):
    tables = start(SCHEMES[name], 3, 2)
    for table in SCHEMES[name].targets:
        assert tables[table].shape == (SCHEMES[name].lags, 3, 2)
        assert tables[table].dtype == jnp.float64
        assert not tables[table].any()
    np.testing.assert_array_equal(greedy(SCHEMES[name], tables), [0, 0, 0])


@pytest.mark.parametrize(
    ("which", "betas"),
    [("movi", [1 / 2, 2 / 3, 3 / 4, 4 / 5]), ("sql", [0, 1 / 2, 2 / 3, 3 / 4])],
)
def test_movi_averages_from_its_first_iteration_and_sql_weighs_its_kth_by_one_over_k(which, betas):
    assert [scheme(which).rate(k) for k in (1, 2, 3, 4)] == betas


def test_a_constant_beta_is_used_at_every_iteration(x64, two_states):
    chosen = scheme("movi", Constant(0.25))
    read = from_samples(jnp.array([SAMPLED]))
    for k in (1, 50):
        new = iterate(chosen, tables_of(chosen.algorithm), read, on_device(two_states), k)
        # (H + 3 q)/4 with q = [[1, .5], [2.5, −1]]
        np.testing.assert_array_equal(new["h"][0], [[1.5, 0.625], [1.875, 0.5]])


# The engine and the targets ----------------------------------------------------------------------

ALGORITHMS = [*SCHEMES.values(), SpeedyQLearning("printed").algorithm()]


def random_tables(algorithm, states, actions, seed=0):
    rng = np.random.default_rng(seed)
    return {
        name: jnp.array(rng.normal(size=(algorithm.lags, states, actions)))
        for name in algorithm.targets
    }


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda a: a.name)
def test_a_sampled_iteration_is_the_target_at_every_state_and_action(x64, algorithm):
    mdp = random_mdp(1, 5, 3, 4, 0.8)
    chosen, tables = Scheme(algorithm, Constant(0.3)), random_tables(algorithm, 5, 3)
    successors = np.random.default_rng(2).integers(0, 5, (5, 3))
    new = iterate(chosen, tables, from_samples(jnp.array(successors)[None]), on_device(mdp), 7)
    for name in algorithm.targets:
        for s, a in np.ndindex(5, 3):
            here, there = (
                {n: t[:, state] for n, t in tables.items()} for state in (s, successors[s, a])
            )
            y = algorithm.target(name, here, a, mdp.rewards[s, a], mdp.discount, there, 0.3)
            assert float(new[name][0, s, a]) == pytest.approx(float(y), abs=1e-14)


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda a: a.name)
def test_an_exact_iteration_is_the_expected_target_at_every_state_and_action(x64, algorithm):
    mdp = random_mdp(1, 4, 2, 3, 0.8)
    chosen, tables = Scheme(algorithm, Constant(0.3)), random_tables(algorithm, 4, 2)
    device = on_device(mdp)
    new = iterate(chosen, tables, exactly(device), device, 7)
    kernel = dense_kernel(mdp)
    rows = [{n: t[:, state] for n, t in tables.items()} for state in range(4)]
    for name in algorithm.targets:
        for s, a in np.ndindex(4, 2):
            expected = sum(
                kernel[s, a, n]
                * float(
                    algorithm.target(
                        name, rows[s], a, mdp.rewards[s, a], mdp.discount, rows[n], 0.3
                    )
                )
                for n in range(4)
            )
            assert float(new[name][0, s, a]) == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda a: a.name)
def test_the_mean_of_many_sampled_iterations_approaches_the_exact_one(x64, algorithm):
    many = 10_000
    mdp = random_mdp(5, 4, 2, 3, 0.9)
    chosen, tables, device = (
        Scheme(algorithm, Constant(0.3)),
        random_tables(algorithm, 4, 2),
        on_device(mdp),
    )
    draws = sample(device, thresholds(mdp), member_keys(3, 1), jnp.asarray(1), many)
    one = jax.jit(jax.vmap(lambda d: iterate(chosen, tables, from_samples(d[None]), device, 7)))(
        draws
    )
    exact = iterate(chosen, tables, exactly(device), device, 7)
    for name in algorithm.targets:
        samples = np.asarray(one[name][:, 0])
        error = samples.std(0) / np.sqrt(many)
        assert error.max() > 1e-4
        difference = np.abs(samples.mean(0) - exact[name][0])
        assert (difference <= 4.5 * error + 1e-12).all()


def test_a_union_keeps_mdps_of_different_discounts_apart(x64):
    parts = [random_mdp(seed, 4, 2, 3, discount) for seed, discount in ((1, 0.2), (2, 0.9))]
    both = FiniteMDP(
        *(np.stack([getattr(p, n) for p in parts]) for n in ("successors", "probabilities")),
        np.stack([p.rewards for p in parts]),
        np.array([0.2, 0.9]),
    )
    chosen = scheme("movi")
    tables = random_tables(chosen.algorithm, 8, 2)
    device = on_device(both)
    together = iterate(chosen, tables, exactly(device), device, 3)
    for m, part in enumerate(parts):
        mine = {n: t[:, 4 * m : 4 * m + 4] for n, t in tables.items()}
        alone = iterate(chosen, mine, exactly(on_device(part)), on_device(part), 3)
        for name in "qh":
            np.testing.assert_array_equal(together[name][:, 4 * m : 4 * m + 4], alone[name])


# Sampling ----------------------------------------------------------------------------------------


def draw(mdp, seed=0, k=1, samples=1, copies=1):
    limits = np.repeat(thresholds(mdp).reshape(mdp.batch or 1, -1), copies, 0)
    device = on_device(mdp, copies)
    limits = limits.reshape(*device.rewards.shape, mdp.branching - 1)
    keys = member_keys(seed, mdp.batch or 1, copies)
    return np.asarray(sample(device, limits, keys, jnp.asarray(k), samples))


@pytest.mark.parametrize("branching", [1, 2, 4, 32, 33, 40])
def test_successors_are_drawn_with_their_probabilities(x64, branching):
    mdp = garnet(40, 2, branching, seed=branching)
    many = 20_000
    draws = draw(mdp, samples=many)
    kernel = dense_kernel(mdp)
    pvalues = []
    for s, a in np.ndindex(40, 2):
        counts = np.bincount(draws[:, s, a], minlength=40)
        assert not counts[kernel[s, a] == 0].any()
        likely = kernel[s, a] * many >= 5
        observed = [*counts[likely], counts[~likely].sum()]
        expected = [*(kernel[s, a][likely] * many), kernel[s, a][~likely].sum() * many]
        if expected[-1] < 1e-6:
            observed, expected = observed[:-1], expected[:-1]
        if len(observed) > 1:
            expected = np.array(expected) * (sum(observed) / sum(expected))
            pvalues.append(stats.chisquare(observed, expected).pvalue)
    assert len(pvalues) == (0 if branching == 1 else 80)
    if pvalues:
        assert min(pvalues) > 1e-3 / len(pvalues)
        assert stats.kstest(pvalues, "uniform").pvalue > 1e-4


@pytest.mark.parametrize("width", [4, 40])
@pytest.mark.parametrize("place", ["first", "inner", "last", "all-but-one"])
def test_a_slot_of_probability_zero_is_never_drawn(x64, width, place):
    possible = np.ones(width, bool)
    if place == "all-but-one":
        possible[:] = False
        possible[width // 2] = True
    else:
        possible[{"first": 0, "inner": width // 2, "last": -1}[place]] = False
    probabilities = possible / possible.sum()
    successors = np.broadcast_to(np.arange(width), (width, 1, width))
    mdp = FiniteMDP(
        successors, np.broadcast_to(probabilities, successors.shape), np.zeros((width, 1)), 0.5
    )
    drawn = np.unique(draw(mdp, samples=20_000 // width * 4))
    np.testing.assert_array_equal(drawn, np.flatnonzero(possible))


def test_no_random_number_reaches_a_slot_past_the_last_possible_one():
    rows = np.array([[0.1] * 10 + [0.0] * 2])
    assert np.cumsum(rows)[9] < 1  # a random number may exceed the rounded sum
    mdp = FiniteMDP(np.zeros((1, 1, 12), int), rows[None], np.zeros((1, 1)), 0.5)
    limits = thresholds(mdp)[0, 0]
    assert (limits[9:] == 2**31 - 1).all()  # the largest number that is drawn is not above it
    shares = (limits[:9] + 1.0) / 2**31
    np.testing.assert_allclose(shares, np.arange(1, 10) / 10, atol=2.0**-32)


def test_a_first_slot_of_probability_zero_is_always_passed():
    mdp = FiniteMDP([[[0, 0]]], [[[0.0, 1.0]]], [[0.0]], 0.5)
    assert thresholds(mdp)[0, 0, 0] == -1  # below the smallest number that is drawn


def test_iterations_and_samples_are_drawn_anew(x64):
    mdp = garnet(30, 4, 4)
    draws = [draw(mdp, k=k, samples=2) for k in (1, 2)]
    equal = [(x == y).mean() for x, y in ((draws[0], draws[1]), (draws[0][0], draws[0][1]))]
    # two draws agree with probability Σ p², on average 2/(B + 1) = 0.4
    assert all(0.2 < share < 0.6 for share in equal)


def test_no_two_members_copies_or_seeds_share_a_key(x64):
    keys = [
        tuple(np.asarray(jax.random.key_data(key)).tolist())
        for seed in (0, 1, 2, 2**32, 2**40)
        for key in member_keys(seed, 5, 3)
    ]
    assert len(set(keys)) == 5 * 5 * 3


def test_an_mdp_draws_the_same_in_any_batch_and_with_any_number_of_copies(x64):
    mdps = garnet(6, 2, 3, seed=2, count=3)
    together = draw(mdps).reshape(3, 6, 2) - 6 * np.arange(3)[:, None, None]
    np.testing.assert_array_equal(draw(mdps[:2]).reshape(2, 6, 2)[0], together[0])
    np.testing.assert_array_equal(draw(mdps[0]).reshape(6, 2), together[0])
    copies = draw(mdps, copies=4).reshape(3, 4, 6, 2)
    np.testing.assert_array_equal(copies[1, 0] - 6 * 4, together[1])
    assert (copies[1, 1] - 6 * 5 != together[1]).any()
