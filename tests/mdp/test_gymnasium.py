import gymnasium
import numpy as np
import pytest

from momentum_rl.mdp.model import FiniteMDP
from momentum_rl.mdp.solve.exact import optimum
from tests.oracles import refusal

# Names without a version mean the newest that is installed, with a warning.
pytestmark = pytest.mark.filterwarnings("ignore:.*latest versioned environment")


def table_values(table, gamma):
    """q* of a toy-text table by value iteration; nothing follows a termination."""
    states, actions = len(table), len(table[0])
    rows = [
        (s, a, p, n, r, 0.0 if terminated else gamma)
        for s in range(states)
        for a in range(actions)
        for p, n, r, terminated in table[s][a]
    ]
    s, a, p, n, r, discount = (np.array(column) for column in zip(*rows))
    q = np.zeros((states, actions))
    for _ in range(100_000):
        outcomes = p * (r + discount * q.max(1)[n])
        new = np.bincount(s * actions + a, outcomes).reshape(q.shape)
        if np.abs(new - q).max() < 1e-13:
            return new
        q = new
    raise AssertionError("value iteration did not settle")


@pytest.mark.parametrize("gamma", [0.9, 0.99])
@pytest.mark.parametrize(
    ("name", "options", "added"),
    [
        ("FrozenLake", {}, 0),
        ("FrozenLake", {"map_name": "8x8", "is_slippery": False}, 0),
        ("Taxi", {}, 1),
        ("CliffWalking", {}, 1),
        ("CliffWalking", {"is_slippery": True}, 1),
    ],
)
def test_a_toy_text_environment_has_the_values_of_its_table(name, options, added, gamma):
    environment = gymnasium.make(name, **options)
    table = environment.unwrapped.P
    mdp = FiniteMDP.from_gymnasium(environment, gamma)
    assert (mdp.states, mdp.actions) == (len(table) + added, len(table[0]))
    q = optimum(mdp).q
    np.testing.assert_allclose(q[: len(table)], table_values(table, gamma), rtol=0, atol=1e-9)
    np.testing.assert_allclose(q[len(table) :], 0, rtol=0, atol=1e-10)


@pytest.mark.parametrize(("gamma", "value"), [(0.9, 0.06889), (0.99, 0.54203)])
def test_slippery_frozen_lake_is_worth_what_is_known(gamma, value):
    mdp = FiniteMDP.from_gymnasium(gymnasium.make("FrozenLake"), gamma)
    assert optimum(mdp).q[0].max() == pytest.approx(value, abs=5e-6)


@pytest.mark.parametrize("gamma", [0.5, 0.9, 0.99])
def test_the_cliff_is_passed_in_thirteen_steps(gamma):
    mdp = FiniteMDP.from_gymnasium(gymnasium.make("CliffWalking"), gamma)
    start = 36
    assert optimum(mdp).q[start].max() == pytest.approx(-(1 - gamma**13) / (1 - gamma), abs=1e-9)


def test_a_taxi_that_only_has_to_drop_its_passenger_earns_twenty_and_no_more():
    environment = gymnasium.make("Taxi").unwrapped
    mdp = FiniteMDP.from_gymnasium(environment, 0.99)
    q = optimum(mdp).q
    at_red_with_passenger_for_red = environment.encode(0, 0, 4, 0)
    assert q[at_red_with_passenger_for_red].max() == pytest.approx(20, abs=1e-9)
    assert q[at_red_with_passenger_for_red].argmax() == 5


def test_a_table_alone_is_enough_and_outcomes_with_the_same_successor_are_added():
    table = {
        0: {0: [(0.25, 1, 4.0, False), (0.25, 1, 0.0, False), (0.5, 0, 2.0, True)]},
        1: {0: [(1.0, 1, 1.0, False)]},
    }
    mdp = FiniteMDP.from_gymnasium(table, 0.5)
    np.testing.assert_array_equal(mdp.rewards, [[2.0], [1.0], [0.0]])
    np.testing.assert_array_equal(mdp.dense()[:, 0], [[0, 0.5, 0.5], [0, 1, 0], [0, 0, 1]])
    np.testing.assert_allclose(optimum(mdp).q[:, 0], [2 + 0.5 * 0.5 * 2, 2, 0], atol=1e-12)


def test_a_state_that_ends_the_episode_keeps_the_reward_of_what_leads_to_it():
    table = {
        0: {0: [(1.0, 1, 7.0, True)]},
        1: {0: [(1.0, 1, -3.0, False)]},  # never left, but not for free: not an end in itself
    }
    mdp = FiniteMDP.from_gymnasium(table, 0.5)
    np.testing.assert_allclose(optimum(mdp).q[:2, 0], [7, -6], atol=1e-12)


GOOD = [(1.0, 0, 0.0, False)]


@pytest.mark.parametrize(
    "table",
    [
        {},
        {1: {0: GOOD}},
        {0: {}},
        {0: 3},
        {0: {0: GOOD}, 2: {0: GOOD}},
        {0: {0: GOOD, -1: GOOD}},
        {0: {0: GOOD}, 1: {"left": GOOD}},
        {0: {0: []}},
        {0: {0: [(1.0, 0)]}},
        {0: {0: [(1.0, "here", 0.0, False)]}},
        {0: {0: [("all", 0, 0.0, False)]}},
        {0: {0: [(1.0, 1, 0.0, False)]}},
        {0: {0: [(1.0, -1, 0.0, False)]}},
        {0: {0: [(1.0, 9, 0.0, True)]}},
        {0: {0: [(0.5, 0, 0.0, False)]}},
        {0: {0: [(-0.5, 0, 0.0, False), (1.5, 0, 0.0, False)]}},
        {0: {0: [(1.0, 0, float("nan"), False)]}},
        {0: {0: [(float("nan"), 0, 1.0, False)]}},
    ],
    ids=[
        "empty",
        "no-state-0",
        "no-actions",
        "not-a-table",
        "state-missing",
        "action-negative",
        "action-a-word",
        "no-outcomes",
        "outcome-too-short",
        "successor-a-word",
        "probability-a-word",
        "successor-one-past-the-end",
        "successor-negative",
        "terminal-successor-out-of-range",
        "probabilities-sum-to-a-half",
        "probability-negative",
        "reward-nan",
        "probability-nan",
    ],
)
def test_a_malformed_table_is_refused(table):
    refusal(FiniteMDP.from_gymnasium, table, 0.9)


def test_an_environment_without_a_table_is_refused():
    line = refusal(FiniteMDP.from_gymnasium, gymnasium.make("CartPole"), 0.9)
    assert "no transition table P" in line
