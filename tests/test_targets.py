import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from momentum_rl.core.targets import AVI, DPP, MOVI, SCHEMES, SQL, SpeedyQLearning
from momentum_rl.errors import UserError

PRINTED = SpeedyQLearning("printed").algorithm()
EVERY_TARGET = [
    pytest.param(algorithm, name, id=f"{algorithm.name}-{name}")
    for algorithm in (AVI, MOVI, SQL, PRINTED, DPP)
    for name in algorithm.targets
]

# Rows at s and at s': the newest copy first. At s', h prefers action 2 and q prefers action 1.
HERE = {
    "q": np.array([[1.0, 4.0, 2.0], [0.0, 3.0, 5.0]]),
    "h": np.array([[10.0, 20.0, 30.0], [0.0, 0.0, 0.0]]),
}
NEXT = {
    "q": np.array([[6.0, 8.0, -2.0], [7.0, 1.0, 3.0]]),
    "h": np.array([[0.0, 1.0, 9.0], [5.0, 0.0, 0.0]]),
}
HAND = [
    # r + γ max q¹(s') = 3 + 0.5 · 8
    (AVI, "q", 7.0),
    # r + γ q¹(s', argmax h(s')) = 3 + 0.5 · (−2)
    (MOVI, "q", 2.0),
    # 0.75 · h(s, 1) + 0.25 · 2
    (MOVI, "h", 15.5),
    # 4 + 0.25 (3 + 0.5 · 7 − 4) + 0.75 · 0.5 (8 − 7)
    (SQL, "q", 5.0),
    # 4 + 0.25 (3 + 0.5 · 7 − 4) + 0.75 · 0.5 (7 − 8)
    (PRINTED, "q", 4.25),
    # 4 + 3 + 0.5 · 8 − 4
    (DPP, "q", 7.0),
]


@pytest.mark.parametrize(
    ("algorithm", "name", "expected"), HAND, ids=[f"{a.name}-{n}" for a, n, _ in HAND]
)
def test_a_target_equals_the_number_worked_out_by_hand(algorithm, name, expected):
    assert float(algorithm.target(name, HERE, 1, 3.0, 0.5, NEXT, 0.75)) == expected


@pytest.mark.parametrize(
    ("algorithm", "name", "expected"),
    [
        (AVI, "q", 3.0),
        (MOVI, "q", 3.0),
        (MOVI, "h", 0.75 * 20 + 0.25 * 3),
        (SQL, "q", 4 + 0.25 * (3 - 4)),
        (PRINTED, "q", 4 + 0.25 * (3 - 4)),
        (DPP, "q", 4 + 3 - 4),
    ],
)
def test_nothing_is_read_at_the_successor_of_a_termination(algorithm, name, expected):
    assert float(algorithm.target(name, HERE, 1, 3.0, 0.0, NEXT, 0.75)) == expected


def test_the_average_regresses_to_the_evaluation_when_beta_is_zero():
    q, h = (float(MOVI.target(name, HERE, 0, 3.0, 0.5, NEXT, 0.0)) for name in "qh")
    assert h == q == 2.0


def test_the_two_signs_of_sql_are_mirror_images_about_the_common_part():
    sql, printed = (
        float(algorithm.target("q", HERE, 1, 3.0, 0.5, NEXT, 0.75)) for algorithm in (SQL, PRINTED)
    )
    assert (sql + printed) / 2 == 4 + 0.25 * (3 + 0.5 * 7 - 4)
    assert sql > printed  # the newest copy promises more at s' (8 > 7): SQL speeds up towards it


def test_both_signs_of_sql_agree_when_the_copies_agree():
    same = {"q": np.array([[6.0, 8.0, -2.0]] * 2)}
    values = [float(a.target("q", HERE, 1, 3.0, 0.5, same, 0.75)) for a in (SQL, PRINTED)]
    assert values[0] == values[1] == 4 + 0.25 * (3 + 0.5 * 8 - 4)


def test_an_unknown_sign_is_refused():
    with pytest.raises(UserError, match=r"^sign: 'minus', expected one of sql, printed$"):
        SpeedyQLearning("minus").algorithm()


@pytest.mark.parametrize(("algorithm", "name"), EVERY_TARGET)
@pytest.mark.parametrize(
    "wrong",
    [
        {"a": np.array([1])},
        {"r": np.array([3.0])},
        {"discount": np.array([[0.5]])},
        {"beta": np.array([0.75])},
        {"values": {name: rows[0] for name, rows in HERE.items()}},
        {"next_values": {name: rows[None] for name, rows in NEXT.items()}},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_a_target_refuses_wrong_ranks(algorithm, name, wrong):
    right = {"values": HERE, "a": 1, "r": 3.0, "discount": 0.5, "next_values": NEXT, "beta": 0.75}
    algorithm.target(name, **right)
    with pytest.raises(UserError, match=r"^(a|r|discount|beta|q|h): rank \d, expected \d: "):
        algorithm.target(name, **(right | wrong))


@functools.cache
def over_successors(algorithm, name):
    """The target at each of several next rows, and the backup of their mean bootstrap."""
    target = algorithm.targets[name]

    def both(here, a, r, discount, successors, weights, beta):
        each = jax.vmap(lambda there: algorithm.target(name, here, a, r, discount, there, beta))(
            successors
        )
        read = jax.vmap(lambda there: target.bootstrap(algorithm.at(there)))(successors)
        v = jax.tree.map(lambda x: weights @ x, read)
        return weights @ each, target.backup(algorithm.at(here), a, r, discount, v, beta)

    return jax.jit(both)


numbers = st.floats(-100, 100, width=32)
unit = st.floats(0, 1, width=32)


@pytest.mark.parametrize(("algorithm", "name"), EVERY_TARGET)
@given(
    here=arrays(float, (2, 2, 3), elements=numbers),
    there=arrays(float, (2, 4, 2, 3), elements=numbers),
    weights=arrays(float, 4, elements=st.floats(0.0625, 1, width=32)),
    a=st.integers(0, 2),
    r=numbers,
    discount=unit,
    beta=unit,
)
def test_the_expected_target_is_the_target_of_the_expectation(
    algorithm, name, here, there, weights, a, r, discount, beta
):
    with jax.enable_x64(True):
        expected, of_expectation = over_successors(algorithm, name)(
            dict(zip("qh", here)),
            a,
            r,
            discount,
            dict(zip("qh", there)),
            weights / weights.sum(),
            beta,
        )
        np.testing.assert_allclose(of_expectation, expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize(
    ("algorithm", "name", "expected"), HAND, ids=[f"{a.name}-{n}" for a, n, _ in HAND]
)
def test_a_target_maps_over_a_float32_minibatch_in_compiled_code(algorithm, name, expected):
    target = functools.partial(algorithm.target, name)
    batch = jax.tree.map(lambda x: jnp.stack([jnp.float32(x)] * 2), (HERE, NEXT))
    actions, rewards = jnp.array([1, 1]), jnp.array([3.0, 4.0])
    y = jax.jit(jax.vmap(target, in_axes=(0, 0, 0, 0, 0, None)))(
        batch[0], actions, rewards, jnp.array([0.5, 0.5]), batch[1], 0.75
    )
    chex.assert_type(y, jnp.float32)
    weight = {"h": 0.25}.get(name, 0.25 if algorithm in (SQL, PRINTED) else 1.0)
    np.testing.assert_array_equal(y, [expected, expected + weight])  # r has this weight


def test_the_four_schemes_are_known_by_name():
    assert dict(SCHEMES) == {"avi": AVI, "movi": MOVI, "sql": SQL, "dpp": DPP}


def test_momentum_acts_on_the_average_and_the_others_on_q():
    assert {name: a.preference for name, a in SCHEMES.items()} == {
        "avi": "q",
        "movi": "h",
        "sql": "q",
        "dpp": "q",
    }
