"""The regularised family: against dense definitions, its identities and its limits."""

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from momentum_rl.core.family import (
    LEAST,
    AdvantageLearning,
    AnchoredValueIteration,
    ConservativeValueIteration,
    DualAveraging,
    MirrorDescent,
    ModifiedPolicyIteration,
    Politex,
    SoftenedPolicyIteration,
)
from momentum_rl.core.schedules import Constant, Mean
from momentum_rl.core.targets import (
    AVI,
    DPP,
    MOVI,
    SQL,
    DynamicPolicyProgramming,
    Munchausen,
)
from momentum_rl.errors import UserError
from momentum_rl.mdp.model import FiniteMDP
from momentum_rl.planning.engine import Scheme, scheme
from tests import family_oracles as oracle
from tests.family_oracles import Problem, history, successors
from tests.oracles import policy_q, random_mdp

ITERATIONS = 25
MDPS = [random_mdp(seed, 6, 3, 3, gamma) for seed, gamma in ((1, 0.9), (2, 0.5), (3, 0.97))]

RUNS = [(0, True), (0, False), (1, False), (2, False)]  # which MDP; exact, or on common samples

PEERS = {
    "md-vi:lambda=0.6": (oracle.md_vi, (0.6, 0.0, True)),
    "md-vi:lambda=0.05:tau=0.02": (oracle.md_vi, (0.05, 0.02, True)),
    "md-vi:lambda=0.05:tau=0.02:evaluation=plain": (oracle.md_vi, (0.05, 0.02, False)),
    "da-vi:lambda=0.6": (oracle.da_vi, (0.6, 0.0, True)),
    "da-vi:lambda=0.05:evaluation=plain": (oracle.da_vi, (0.05, 0.0, False)),
    "da-vi:lambda=0.05:tau=0.02": (oracle.da_vi, (0.05, 0.02, True)),
    "da-vi:lambda=0:tau=0.2:evaluation=plain": (oracle.da_vi, (0.0, 0.2, False)),
    "m-vi:alpha=0.9:tau=0.1": (oracle.m_vi, (0.9, 0.1)),
    "cvi:alpha=0.7:eta=12": (oracle.cvi, (0.7, 12.0)),
    "dpp:eta=8": (oracle.cvi, (1.0, 8.0)),
    "dpp:eta=8:form=boltzmann": (oracle.cvi, (1.0, 8.0, "boltzmann")),
    "advantage-learning:alpha=0.6": (oracle.advantage_learning, (0.6,)),
    "politex:lambda=0.5": (oracle.politex, (0.5, None)),
    "politex:lambda=0.5:sweeps=3": (oracle.politex, (0.5, 3)),
    "softened-lspi:beta=0.8": (oracle.softened_lspi, (0.8, None)),
    "softened-lspi:beta=0.8:sweeps=4": (oracle.softened_lspi, (0.8, 4)),
    "mpi:sweeps=4": (oracle.mpi, (4,)),
    "mpi:sweeps=1": (oracle.mpi, (1,)),
    "mpi:sweeps=none": (oracle.mpi, (None,)),
    "anc-vi": (oracle.anc_vi, ("optimal",)),
    "anc-vi:anchor=harmonic": (oracle.anc_vi, ("harmonic",)),
}
"""By label: the independent implementation and what it is given."""


@functools.cache
def drawn(i):
    return successors(MDPS[i], ITERATIONS, seed=i)


def runs_of(which):
    """q after, and the policy used in, every iteration: exact, and sampled with common draws."""
    chosen = which if isinstance(which, Scheme) else Scheme(which, Mean())
    for i, exact in RUNS:
        yield history(MDPS[i], chosen, ITERATIONS, None if exact else drawn(i))


@pytest.mark.parametrize("label", PEERS)
def test_every_scheme_is_its_definition_in_dense_numpy(label):
    peer, given = PEERS[label]
    for (i, exact), (tables, policies) in zip(RUNS, runs_of(scheme(label)), strict=True):
        problem = Problem(MDPS[i], None if exact else drawn(i))
        expected = list(peer(problem, ITERATIONS, *given))
        np.testing.assert_allclose(tables["q"], [q for q, _ in expected], rtol=0, atol=1e-10)
        np.testing.assert_allclose(policies, [pi for _, pi in expected], rtol=0, atol=1e-10)


# Identities, errors included ----------------------------------------------------------------------

PAIRS = [(0.02, 0.0), (0.1, 0.05), (0.5, 0.002)]


EVALUATION = {True: "regularised", False: "plain"}


def agree(one, other, same_q=True):
    for (tables, policies), (others, their) in zip(runs_of(one), runs_of(other), strict=True):
        np.testing.assert_allclose(policies, their, rtol=0, atol=1e-11)
        if same_q:
            np.testing.assert_allclose(tables["q"], others["q"], rtol=0, atol=1e-11)
        assert np.ptp(policies, -1).max() > 0.3  # not all uniform


@pytest.mark.parametrize(("lam", "tau"), PAIRS)
@pytest.mark.parametrize("regularised", [True, False], ids=["regularised", "plain"])
def test_mirror_descent_is_dual_averaging(lam, tau, regularised):
    agree(
        MirrorDescent(lam, tau, evaluation=EVALUATION[regularised]).algorithm(),
        DualAveraging(lam, tau, evaluation=EVALUATION[regularised]).algorithm(),
    )


def same_policies(pairs, seed, gamma, scale, exact):
    """On a random MDP, and on common samples of it: pairs of algorithms, and whether q is equal."""
    mdp = random_mdp(seed, 6, 3, 3, gamma)
    mdp = FiniteMDP(mdp.successors, mdp.probabilities, scale * mdp.rewards, gamma)
    draws = None if exact else successors(mdp, ITERATIONS, seed)
    for one, other, same_q in pairs:
        (tables, policies), (others, their) = (
            history(mdp, Scheme(algorithm, Mean()), ITERATIONS, draws) for algorithm in (one, other)
        )
        np.testing.assert_allclose(policies, their, rtol=0, atol=1e-11)
        if same_q:
            np.testing.assert_allclose(tables["q"], others["q"], rtol=0, atol=1e-11)


def identities(lam, tau):
    """All identities at these weights; both are above 0."""
    alpha, total = lam / (lam + tau), lam + tau
    munchausen = Munchausen(alpha, total, None).algorithm()
    dpp = DynamicPolicyProgramming(1 / lam).algorithm()
    return [
        (MirrorDescent(lam, tau).algorithm(), DualAveraging(lam, tau).algorithm(), True),
        (
            MirrorDescent(lam, tau, evaluation="plain").algorithm(),
            DualAveraging(lam, tau, evaluation="plain").algorithm(),
            True,
        ),
        (munchausen, MirrorDescent(lam, tau).algorithm(), False),
        (ConservativeValueIteration(alpha, 1 / total).algorithm(), munchausen, False),
        (dpp, ConservativeValueIteration(1.0, 1 / lam).algorithm(), True),
        (dpp, MirrorDescent(lam, 0.0).algorithm(), False),
    ]


PROBLEMS = {
    "seed": st.integers(0, 2**31 - 1),
    "gamma": st.floats(0.0, 0.97),
    "scale": st.floats(-2.0, 2.0),
    "exact": st.booleans(),
}
AT = identities(0.1, 0.05)


@given(**PROBLEMS)
def test_the_identities_hold_on_any_mdp_and_any_samples(seed, gamma, scale, exact):
    same_policies(AT, seed, gamma, scale, exact)


@pytest.mark.slow
@settings(max_examples=25)
@given(lam=st.floats(0.05, 2.0), tau=st.floats(0.05, 2.0), **PROBLEMS)
def test_the_identities_hold_for_any_weights(lam, tau, seed, gamma, scale, exact):
    same_policies(identities(lam, tau), seed, gamma, scale, exact)


@pytest.mark.parametrize(("alpha", "tau"), [(0.9, 0.1), (1.0, 0.2)])
def test_munchausen_is_mirror_descent_with_the_log_policy_put_into_the_value(alpha, tau):
    mirrored = MirrorDescent(alpha * tau, (1 - alpha) * tau).algorithm()
    agree(Munchausen(alpha, tau, None).algorithm(), mirrored, same_q=False)
    both = zip(RUNS, runs_of(Munchausen(alpha, tau, None).algorithm()), runs_of(mirrored))
    for (i, _), (tables, policies), (own, _) in both:
        # q'_k = q_k + ατ ln π_k; from q'_0 = 0 q begins at ατ ln A instead of 0: γ^k of it is left.
        powers = float(MDPS[i].discount) ** np.arange(1, ITERATIONS + 1)[:, None, None]
        with np.errstate(divide="ignore"):
            expected = own["q"] + alpha * tau * (np.log(policies) + powers * np.log(3))
        known = policies > 1e-250  # where ln π is a number
        np.testing.assert_allclose(tables["q"][known], expected[known], rtol=0, atol=1e-11)


@pytest.mark.parametrize(("alpha", "eta"), [(0.7, 10.0)])
def test_conservative_value_iteration_has_the_policies_of_munchausen(alpha, eta):
    one, other = (
        ConservativeValueIteration(alpha, eta).algorithm(),
        Munchausen(alpha, 1 / eta, None).algorithm(),
    )
    agree(one, other, same_q=False)
    constant = 0.0  # ψ_k − q'_k, by c' = (α − γ)/η ln A + γ c
    (tables, _), (others, _) = next(runs_of(one)), next(runs_of(other))
    for psi, q in zip(tables["q"], others["q"]):
        constant = (alpha - 0.9) / eta * np.log(3) + 0.9 * constant
        np.testing.assert_allclose(psi, q + constant, rtol=0, atol=1e-11)


@pytest.mark.parametrize("eta", [5.0])
def test_dpp_is_conservative_with_alpha_one_and_mirror_descent_without_entropy(eta):
    dpp = DynamicPolicyProgramming(eta).algorithm()
    agree(dpp, ConservativeValueIteration(1.0, eta).algorithm())
    agree(dpp, MirrorDescent(1 / eta).algorithm(), same_q=False)


def test_advantage_learning_has_the_greedy_dpp_at_one_end_and_avi_at_the_other():
    agree(AdvantageLearning(1.0).algorithm(), DPP)
    agree(AdvantageLearning(0.0).algorithm(), AVI)


def test_modified_policy_iteration_goes_from_avi_to_policy_iteration():
    agree(Scheme(ModifiedPolicyIteration(1).algorithm(), Constant(0.0)), AVI)
    for mdp in MDPS:
        _, policies = history(
            mdp, Scheme(ModifiedPolicyIteration(None).algorithm(), Constant(0.0)), 8
        )
        pi = np.zeros(mdp.states, int)
        for used in policies:  # Howard: evaluate, improve
            np.testing.assert_array_equal(used.argmax(1), pi)
            pi = policy_q(mdp, pi).argmax(1)
        np.testing.assert_array_equal(policies[-1], policies[-2])  # and it has ended


def test_softened_lspi_with_one_sweep_is_movi_with_a_fixed_beta():
    agree(
        Scheme(SoftenedPolicyIteration(sweeps=1).algorithm(), Constant(0.7)),
        Scheme(MOVI, Constant(0.7)),
    )


def test_politex_with_one_sweep_is_dual_averaging_with_a_plain_evaluation():
    agree(Politex(0.1, 1).algorithm(), DualAveraging(0.1, evaluation="plain").algorithm())


def test_exact_sql_is_the_anchored_iteration_begun_and_anchored_at_its_first_value():
    """q_k = T q_0 / k + (1 − 1/k) T q_{k−1}; and k q_k is what DA-VI(λ → 0) adds up."""
    for mdp in MDPS:
        sql = history(mdp, Scheme(SQL, Mean()), ITERATIONS)[0]["q"]
        problem = Problem(mdp)
        x = anchor = problem.backup(1, problem.zero.max(1))
        for k, q in enumerate(sql, start=1):
            if k > 1:
                x = anchor / k + (1 - 1 / k) * problem.backup(k, x.max(1))
            np.testing.assert_allclose(q, x, rtol=0, atol=1e-11)
        harmonic = history(
            mdp, Scheme(AnchoredValueIteration("harmonic").algorithm(), Mean()), ITERATIONS
        )[0]["q"]
        k = np.arange(1, ITERATIONS + 1)[:, None, None]
        np.testing.assert_allclose((k + 1) * harmonic, k * sql, rtol=0, atol=1e-11)


# Limits -------------------------------------------------------------------------------------------


def with_twins(mdp):
    """Each action twice: ties that stay, at which soft maxima differ from hard ones by κ ln 2."""
    twice = [np.concatenate([x, x], 1) for x in (mdp.successors, mdp.probabilities, mdp.rewards)]
    return FiniteMDP(*twice, float(mdp.discount))


TWINS = with_twins(MDPS[0])


def distances(make, limit, sizes, kind=lambda tables: tables["q"]):
    """sup ‖·‖ between a scheme and its limit along a sampled run, for each size of the knob."""
    draws = successors(TWINS, ITERATIONS, seed=5)
    expected = kind(history(TWINS, limit, ITERATIONS, draws)[0])
    return np.array(
        [
            np.abs(kind(history(TWINS, make(size), ITERATIONS, draws)[0]) - expected).max()
            for size in sizes
        ]
    )


def orders(errors, sizes):
    return np.log(errors[1:] / errors[:-1]) / np.log(sizes[1:] / sizes[:-1])


SIZES = np.array([4e-3, 2e-3, 1e-3, 5e-4])
SUMS = np.arange(1, ITERATIONS + 1)[:, None, None]


def test_dual_averaging_tends_to_sql_with_a_regularised_evaluation_at_first_order():
    """And so does mirror descent, the same sequence: not to AVI, which it is at λ = 0."""

    def sums(tables):  # h_k = Σ q_j for DA-VI; ψ_k = k q_k for SQL
        return tables["h"] if "h" in tables else SUMS * tables["q"]

    def make(lam):
        return Scheme(DualAveraging(lam).algorithm(), Mean())

    errors = distances(make, Scheme(SQL, Mean()), SIZES, sums)
    assert errors[-1] < 0.02
    np.testing.assert_allclose(orders(errors, SIZES), 1, atol=0.05)
    draws = successors(TWINS, ITERATIONS, seed=5)
    tiny = history(TWINS, Scheme(MirrorDescent(1e-12).algorithm(), Mean()), ITERATIONS, draws)[0][
        "q"
    ]
    avi = history(TWINS, Scheme(AVI, Mean()), ITERATIONS, draws)[0]["q"]
    sql = SUMS * history(TWINS, Scheme(SQL, Mean()), ITERATIONS, draws)[0]["q"]
    np.testing.assert_allclose(np.cumsum(tiny, 0), sql, rtol=0, atol=1e-8)
    assert np.abs(tiny - avi).max() > 1


def test_dual_averaging_tends_to_movi_with_a_plain_evaluation_faster_than_any_order():
    """Off ties the softmax differs from the maximum by exp(−gap/λ)."""

    def make(lam):
        return Scheme(DualAveraging(lam, evaluation="plain").algorithm(), Mean())

    sizes = np.array([8e-3, 4e-3, 2e-3, 1e-3])
    found = orders(distances(make, Scheme(MOVI, Mean()), sizes), sizes)
    assert (np.diff(found) > 0).all()
    assert found[-1] > 2
    assert distances(make, Scheme(MOVI, Mean()), [1e-9])[0] < 1e-11


def test_at_a_constant_beta_it_tends_to_movi_with_that_beta():
    def make(kappa):
        return Scheme(
            DualAveraging(0.9 * kappa, 0.1 * kappa, evaluation="plain").algorithm(), Mean()
        )

    assert distances(make, Scheme(MOVI, Constant(0.9)), [1e-9])[0] < 1e-11


@pytest.mark.parametrize(
    ("make", "limit"),
    [
        (lambda size: DynamicPolicyProgramming(1 / size).algorithm(), DPP),
        (lambda size: Munchausen(0.0, size, None).algorithm(), AVI),
        (lambda size: Munchausen(0.8, size, None).algorithm(), AdvantageLearning(0.8).algorithm()),
        (
            lambda size: ConservativeValueIteration(0.8, 1 / size).algorithm(),
            AdvantageLearning(0.8).algorithm(),
        ),
    ],
    ids=["dpp to greedy dpp", "m-vi to avi", "m-vi to al", "cvi to al"],
)
def test_soft_maxima_tend_to_hard_ones_at_first_order(make, limit):
    errors = distances(lambda size: Scheme(make(size), Mean()), Scheme(limit, Mean()), SIZES)
    assert errors[-1] < 0.05
    np.testing.assert_allclose(orders(errors, SIZES), 1, atol=0.05)


def test_the_boltzmann_form_of_dpp_tends_to_the_greedy_one():
    def make(size):
        return Scheme(DynamicPolicyProgramming(1 / size, "boltzmann").algorithm(), Mean())

    assert distances(make, Scheme(DPP, Mean()), [1e-9])[0] < 1e-11


def test_the_anchors_weights_tend_to_the_harmonic_ones_as_gamma_tends_to_one():
    draws = successors(MDPS[0], ITERATIONS)
    apart = []
    for gap in (1e-3, 1e-4, 1e-5):
        mdp = MDPS[0]
        near = FiniteMDP(mdp.successors, mdp.probabilities, mdp.rewards, 1 - gap)
        runs = [
            history(
                near, Scheme(AnchoredValueIteration(anchor).algorithm(), Mean()), ITERATIONS, draws
            )[0]["q"]
            for anchor in ("optimal", "harmonic")
        ]
        apart.append(np.abs(runs[0] - runs[1]).max())
    np.testing.assert_allclose(orders(np.array(apart), np.array([1e-3, 1e-4, 1e-5])), 1, atol=0.05)


# Numbers of any size ------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1e-300, 1e6])
def test_nothing_overflows_for_tiny_weights_and_values_of_a_million(size):
    mdp = MDPS[0]
    large = FiniteMDP(mdp.successors, mdp.probabilities, 1e6 * mdp.rewards, 0.9)
    draws = drawn(0)
    made = [
        MirrorDescent(size).algorithm(),
        MirrorDescent(0.0, size).algorithm(),
        MirrorDescent(size, size, evaluation="plain").algorithm(),
        DualAveraging(size, size).algorithm(),
        DualAveraging(size, evaluation="plain").algorithm(),
        Munchausen(0.9, size, None).algorithm(),
        ConservativeValueIteration(0.9, 1 / size).algorithm(),
        DynamicPolicyProgramming(1 / size, "boltzmann").algorithm(),
    ]
    for algorithm in made:
        tables, policies = history(large, Scheme(algorithm, Mean()), ITERATIONS, draws)
        assert all(np.isfinite(table).all() for table in tables.values()), algorithm.name
        np.testing.assert_allclose(policies.sum(-1), 1, atol=1e-12)
        if size == 1e-300 and algorithm.name == "md-vi" and algorithm.tabular.tau:
            avi = history(large, Scheme(AVI, Mean()), ITERATIONS, draws)[0]["q"]
            np.testing.assert_allclose(tables["q"], avi, rtol=1e-12)


def test_equal_actions_have_equal_probabilities_however_small_the_weights_are():
    _, policies = history(TWINS, Scheme(MirrorDescent(1e-300).algorithm(), Mean()), 5)
    np.testing.assert_allclose(policies[..., :3], policies[..., 3:], atol=1e-15)
    np.testing.assert_allclose(policies[0], 1 / 6, atol=1e-15)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: MirrorDescent(-1.0), "lambda: -1.0, expected a number of at least 0"),
        (
            lambda: MirrorDescent(1.0, -0.5),
            "tau: -0.5, expected a number of at least 0",
        ),
        (
            lambda: MirrorDescent(float("nan")),
            "lambda: nan, expected a number of at least 0",
        ),
        (
            lambda: MirrorDescent("hot"),
            "lam: 'hot', expected a number",
        ),
        (
            lambda: DualAveraging(0.0),
            "tau: 0.0 with lambda 0.0, expected a sum",
        ),
        (
            lambda: DualAveraging(0, LEAST / 2),
            "at 0 the scheme is not defined",
        ),
        (
            lambda: Munchausen(1.5, 1.0),
            r"alpha: 1.5, expected a number in",
        ),
        (lambda: Munchausen(0.5, 0.0), "tau: 0.0, expected a number above 0"),
        (
            lambda: ConservativeValueIteration(-0.1, 1.0),
            "alpha: -0.1, expected a number in",
        ),
        (
            lambda: ConservativeValueIteration(0.5, 0.0),
            "eta: 0.0, expected a number above 0",
        ),
        (lambda: AdvantageLearning(2.0), "alpha: 2.0, expected a number in"),
        (lambda: Politex(0.0), "lambda: 0.0, expected a number above 0"),
        (lambda: Politex(1.0, 0), "sweeps: 0, expected an integer from 1 to"),
        (lambda: ModifiedPolicyIteration(2.5), "sweeps: 2.5, expected an integer"),
        (
            lambda: AnchoredValueIteration("heavy"),
            "anchor: 'heavy', expected one of optimal, harmonic",
        ),
    ],
)
def test_a_weight_that_means_nothing_is_one_line(make, says):
    with pytest.raises(UserError, match=says):
        make()
