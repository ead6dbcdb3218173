"""The families against closed forms, published numbers and an independent solver."""

import dataclasses

import numpy as np
import pytest
import quantecon

import benchmarks.families
from benchmarks.families import Epidemic, Forest, Inventory, Pendulum, Queue, Replacement
from momentum_rl.mdp.families import FAMILIES, Garnet, Maze, garnet
from momentum_rl.mdp.solve.exact import optimum
from momentum_rl.planning.solver import solve
from tests.oracles import refusal


def value(family, tolerance=1e-9):
    solution = solve(family.mdp(), tolerance=tolerance)
    assert solution.converged
    return solution.v


EVERY = FAMILIES | benchmarks.families.FAMILIES
SIZES = {"maze": 6, "pendulum": 7, "epidemic": 12, "forest": 5}


def small(name, size):
    """Keyword arguments that make a family small; a Garnet is."""
    return {} if name == "garnet" else {"size": size}


@pytest.mark.parametrize("name", EVERY)
def test_every_family_is_valid_says_its_sizes_and_is_solved_as_quantecon_does(name):
    family = EVERY[name](**small(name, SIZES.get(name, 9)), discount=0.9)
    mdp = family.mdp()
    problem = quantecon.markov.DiscreteDP(mdp.rewards, mdp.dense(), 0.9)
    expected = problem.solve("policy_iteration").v
    np.testing.assert_allclose(value(family), expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("name", [name for name in EVERY if name != "garnet"])
def test_a_batch_has_the_members_of_its_seeds(name):
    family = EVERY[name](size=4, seed=3)
    batch = family.batch(2)
    for i in range(2):
        member = dataclasses.replace(family, seed=3 + i).mdp()
        np.testing.assert_array_equal(batch[i].successors, member.successors)
        np.testing.assert_array_equal(batch[i].rewards, member.rewards)


def test_a_batch_of_garnets_is_that_of_the_function():
    batch = Garnet(states=7, seed=3).batch(2)
    np.testing.assert_array_equal(batch.rewards, garnet(7, seed=3, count=2).rewards)


def test_a_maze_without_walls_or_slip_is_worth_its_distance():
    size, discount = 9, 0.97
    v = value(Maze(size=size, walls=0, slip=0, discount=discount)).reshape(size, size)
    steps = 2 * (size - 1) - np.add.outer(np.arange(size), np.arange(size))
    np.testing.assert_allclose(v, -(1 - discount**steps) / (1 - discount), rtol=0, atol=1e-8)


def test_walls_are_never_entered_and_slips_go_to_the_sides():
    maze = Maze(size=30, walls=0.3, seed=5)
    mdp = maze.mdp()
    blocked = (np.random.default_rng(5).random((30, 30)) < 0.3).ravel()
    blocked[[0, -1]] = False
    entered = np.zeros(900, bool)
    others = mdp.successors != np.arange(900)[:, None, None]
    entered[mdp.successors[others]] = True
    assert not (entered & blocked).any()
    assert blocked.mean() == pytest.approx(0.3, abs=0.05)
    right = mdp.successors[31, 1]  # from row 1, column 1
    assert set(right.tolist()) <= {32, 31, 1, 61}
    np.testing.assert_allclose(mdp.probabilities[31, 1], [0.8, 0.1, 0.1])


def test_an_inventory_without_setup_is_filled_up_to_the_critical_ratio():
    """The critical ratio of the newsvendor and the value below it: Karlin's closed form."""
    discount, price, unit, holding, largest = 0.95, 5.0, 2.0, 0.5, 9
    family = Inventory(
        size=30,
        orders=30,
        demand=largest,
        price=price,
        unit=unit,
        setup=0.0,
        holding=holding,
        discount=discount,
    )
    ratio = (price - unit) / (price + holding - discount * unit)
    d = np.arange(largest + 1)
    y = int(np.argmax(np.arange(1, largest + 2) / (largest + 1) >= ratio))
    left, sold = np.maximum(y - d, 0).mean(), np.minimum(d, y).mean()
    g = price * sold - unit * y - (holding - discount * unit) * left
    solution = solve(family.mdp(), tolerance=1e-9)
    stock = np.arange(y + 1)
    np.testing.assert_array_equal(solution.policy[: y + 1], y - stock)
    expected = unit * stock + g / (1 - discount)
    np.testing.assert_allclose(solution.v[: y + 1], expected, rtol=0, atol=1e-8)


def test_with_a_setup_cost_the_policy_is_one_of_two_numbers():
    """Scarf: below s, order up to S; from s on, order nothing."""
    solution = solve(Inventory(size=40, orders=40, demand=8, setup=10.0).mdp())
    ordered = solution.policy
    below = int(np.argmax(ordered == 0))
    assert below > 0
    assert (ordered[below:] == 0).all()
    up_to = np.arange(below) + ordered[:below]
    assert (up_to == up_to[0]).all()


def test_an_empty_queue_that_is_served_at_once_earns_every_arrival():
    """With service certain and nothing to pay for waiting, v(n) = λR/(1 − γ) below the limit."""
    v = value(Queue(size=8, service=1.0, waiting=0.0, arrival=0.3, reward=5, discount=0.9))
    np.testing.assert_allclose(v[:8], 0.3 * 5 / 0.1, rtol=0, atol=1e-8)
    assert v[8] < v[0]


def test_a_queue_that_earns_nothing_turns_away_and_pays_what_is_left():
    """With service certain, v(n) = −c Σ_{i<n} γⁱ (n − i)."""
    solution = solve(Queue(size=8, service=1.0, reward=0.0, waiting=0.3, discount=0.9).mdp())
    expected = [-0.3 * sum(0.9**i * (n - i) for i in range(n)) for n in range(9)]
    np.testing.assert_allclose(solution.v, expected, rtol=0, atol=1e-6)


def test_customers_are_let_in_up_to_a_threshold():
    solution = solve(Queue(size=60, reward=2.0, waiting=0.5).mdp())
    threshold = int(np.argmax(solution.policy == 0))
    assert 0 < threshold < 60
    assert (solution.policy[:threshold] == 1).all()
    assert (solution.policy[threshold:] == 0).all()


def test_a_machine_that_surely_wears_is_replaced_at_the_best_age():
    discount, upkeep, price = 0.95, 1.0, 20.0
    family = Replacement(size=40, wear=1.0, upkeep=upkeep, price=price, discount=discount)
    worth = [
        -(sum(discount**i * upkeep * i for i in range(t)) + discount**t * price)
        / (1 - discount ** (t + 1))
        for t in range(40)
    ]
    solution = solve(family.mdp(), tolerance=1e-9)
    assert solution.v[0] == pytest.approx(max(worth), abs=1e-8)
    assert int(np.argmax(solution.policy == 1)) == int(np.argmax(worth))


def test_the_forest_has_the_values_that_its_toolbox_prints():
    answer = optimum(Forest(discount=0.9).mdp())
    np.testing.assert_allclose(answer.q.max(1), [26.244, 29.484, 33.484], rtol=0, atol=1e-9)
    np.testing.assert_array_equal(answer.policy, [0, 0, 0])


def test_the_pendulum_is_the_one_of_gymnasium_and_symmetric():
    import gymnasium

    family = Pendulum(size=11, discount=0.9)
    mdp, n = family.mdp(), 11
    angle, speed = (np.arange(n) - 5) * 2 * np.pi / n, np.linspace(-8, 8, n)
    environment = gymnasium.make("Pendulum-v1").unwrapped
    for i, j, a in ((5, 5, 4), (2, 8, 0), (9, 1, 3)):
        environment.reset(seed=0)
        environment.state = np.array([angle[i], speed[j]])
        _, reward, *_ = environment.step(np.array([a - 2.0]))
        theta, omega = environment.state
        row = i * n + j
        assert mdp.rewards[row, a] == pytest.approx(float(reward), abs=1e-9)
        p, s = mdp.probabilities[row, a], mdp.successors[row, a]
        assert p @ speed[s % n] == pytest.approx(omega, abs=1e-9)
        if 0 < i < n - 1:  # elsewhere the mean of angles goes around
            assert p @ angle[s // n] == pytest.approx(theta, abs=1e-9)
    v = value(family, 1e-7).reshape(n, n)
    np.testing.assert_allclose(v, v[::-1, ::-1], rtol=0, atol=1e-6)
    assert v[5, 5] == v.max()


def test_an_epidemic_without_infection_dies_out_at_its_rate():
    family = Epidemic(size=40, infection=0.0, recovery=0.7, discount=0.98)
    solution = solve(family.mdp(), tolerance=1e-9)
    share = np.arange(41) / 40
    expected = -share / (1 - 0.98 * (1 - 0.7 / 40))
    np.testing.assert_allclose(solution.v, expected, rtol=0, atol=1e-8)
    assert (solution.policy == 0).all()


@pytest.mark.parametrize(
    ("family", "line"),
    [
        (Maze(size=0), "size: 0, expected at least 1"),
        (Maze(walls=1.5), "walls: 1.5, expected a number in [0, 1]"),
        (Maze(size=10**6), "1,000,000,000,000 states: needs"),
        (Inventory(lot=0), "lot: 0, expected at least 1"),
        (Queue(service=float("nan")), "service: nan, expected a number in [0, 1]"),
        (Forest(size=1), "size: 1, expected at least 2 ages"),
        (Epidemic(measures=0), "measures: 0, expected at least 1"),
        (Maze(seed=-1), "seed: -1"),
        (Maze(discount=1.0), "discount: 1.0"),
    ],
)
def test_what_makes_no_family_is_refused(family, line):
    assert refusal(family.mdp).startswith(line)
