import hashlib
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from momentum_rl.mdp.families import garnet
from tests.oracles import refusal

LIKELY = 1e-4  # tests with a fixed seed either pass for ever or point at a bias


def digest(mdp):
    parts = (mdp.successors, mdp.probabilities, mdp.rewards)
    return hashlib.sha256(b"".join(np.ascontiguousarray(x).tobytes() for x in parts)).hexdigest()


def assert_is_garnet(mdp):
    ordered = np.sort(mdp.successors, -1)
    assert (ordered[..., 1:] != ordered[..., :-1]).all()
    assert ordered.min() >= 0
    assert ordered.max() < mdp.states
    assert (mdp.probabilities > 0).all()
    np.testing.assert_allclose(mdp.probabilities.sum(-1), 1, rtol=0, atol=1e-14)
    assert (np.abs(mdp.rewards) < 1).all()
    assert (mdp.rewards == mdp.rewards[..., :1]).all()


@given(st.integers(1, 40), st.integers(1, 5), st.data(), st.integers(0, 2**63 - 1))
def test_successors_are_distinct_probabilities_positive_and_rewards_per_state(
    states, actions, data, seed
):
    branching = data.draw(st.integers(1, states))
    mdp = garnet(states, actions, branching, seed=seed, discount=0.5)
    assert mdp.successors.shape == (states, actions, branching)
    assert float(mdp.discount) == 0.5
    assert_is_garnet(mdp)


def test_a_garnet_may_lead_everywhere():
    mdp = garnet(6, 3, 6, seed=2)
    assert (np.sort(mdp.successors, -1) == np.arange(6)).all()
    assert_is_garnet(mdp)


def test_one_successor_has_probability_one():
    assert (garnet(9, 2, 1).probabilities == 1).all()


def test_the_defaults_are_the_papers():
    mdps = garnet(count=100)
    assert (mdps.batch, mdps.states, mdps.actions, mdps.branching) == (100, 30, 4, 4)
    assert (mdps.discount == 0.9).all()


def test_a_seed_means_the_same_garnet_for_ever():
    assert digest(garnet(30, 4, 4, seed=0)) == (
        "0f243cdb8f8e495f4ee5e901e6c61568efb2e79441e3d60694a5543da0987082"
    )
    assert digest(garnet(7, 2, 3, seed=12345, count=3)) == (
        "5bd80c2b48b291ae8774d03dcd8c3b8d99dd790b15e357b38454cd3169bcd699"
    )


def test_a_larger_batch_begins_with_the_smaller_one():
    one, two, five = (garnet(8, 3, 2, seed=6, count=count) for count in (None, 2, 5))
    assert digest(five[:2]) == digest(two)
    assert digest(two[0]) == digest(one)


def test_different_seeds_and_members_are_different_garnets():
    digests = {digest(m) for seed in range(5) for m in garnet(8, 3, 2, seed=seed, count=5)}
    assert len(digests) == 25


@pytest.fixture(scope="module")
def many_rows():
    """40,000 rows of 3 successors among 6 states."""
    mdp = garnet(6, 20_000 // 3, 3, seed=11)
    return mdp.successors.reshape(-1, 3), mdp.probabilities.reshape(-1, 3)


def test_every_subset_of_successors_is_equally_likely(many_rows):
    successors, _ = many_rows
    codes = (1 << np.sort(successors, -1)).sum(-1)
    subsets = [sum(1 << s for s in subset) for subset in itertools.combinations(range(6), 3)]
    counts = [np.sum(codes == code) for code in subsets]
    assert sum(counts) == len(successors)
    assert stats.chisquare(counts).pvalue > LIKELY


def test_probabilities_are_spacings_of_uniforms_in_every_slot(many_rows):
    _, probabilities = many_rows
    error = np.sqrt(stats.beta(1, 2).var() / len(probabilities))
    for slot in range(3):
        assert abs(probabilities[:, slot].mean() - 1 / 3) < 5 * error
        assert stats.kstest(probabilities[:, slot], stats.beta(1, 2).cdf).pvalue > LIKELY


def test_spacings_are_exchangeable(many_rows):
    _, probabilities = many_rows
    order = np.argsort(probabilities, -1) @ [9, 3, 1]
    assert stats.chisquare(np.unique(order, return_counts=True)[1]).pvalue > LIKELY
    # For Dirichlet(1, 1, 1), every pair has covariance −1/36.
    covariance = np.cov(probabilities.T)
    np.testing.assert_allclose(covariance[~np.eye(3, dtype=bool)], -1 / 36, atol=1e-3)


def test_no_successor_is_favoured_by_its_probability(many_rows):
    successors, probabilities = many_rows
    groups = [probabilities[successors == s] for s in range(6)]
    assert stats.kruskal(*groups).pvalue > LIKELY


def test_actions_of_a_state_are_drawn_separately():
    mdp = garnet(30, 2, 1, seed=3)
    same = (mdp.successors[:, 0] == mdp.successors[:, 1]).sum()
    assert same < 8  # expected once in 30


def test_rewards_are_uniform_between_minus_one_and_one():
    rewards = garnet(20_000, 1, 1, seed=5).rewards[:, 0]
    assert stats.kstest(rewards, stats.uniform(-1, 2).cdf).pvalue > LIKELY


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({"states": 0}, "states: 0, expected at least 1"),
        ({"actions": -1}, "actions: -1, expected at least 1"),
        ({"branching": 0}, "branching: 0, expected at least 1"),
        ({"states": 3}, "branching: 4, expected at most the number of states, 3"),
        ({"count": 0}, "count: 0, expected at least 1"),
        ({"seed": -1}, "seed: -1, expected an integer in 0..2**63 - 1"),
        ({"discount": 1.0}, "discount: 1.0, expected a number in [0, 1)"),
    ],
)
def test_an_impossible_garnet_is_refused(arguments, line):
    assert refusal(garnet, **arguments) == line


@pytest.mark.slow
def test_a_garnet_of_a_million_states_is_one():
    mdp = garnet(10**6, 4, 4, seed=1)
    assert mdp.successors.shape == (10**6, 4, 4)
    assert_is_garnet(mdp)
    counts = np.bincount(mdp.successors.reshape(-1) // 1000, minlength=1000)
    assert stats.chisquare(counts).pvalue > LIKELY
