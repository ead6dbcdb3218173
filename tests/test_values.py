"""What a value is: each kind against rlax, closed forms and laws."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import rlax
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from momentum_rl.agents.method import huber
from momentum_rl.core.values import NUMBER, Categorical, Quantile, from_json, to_json
from momentum_rl.errors import UserError

ATOMS = Categorical(-4.0, 4.0, 9)


def distributions(n=9):
    weights = arrays(float, n, elements=st.floats(0.0078125, 1, width=32))
    return weights.map(lambda w: w / w.sum())


numbers = st.floats(-3, 3, width=32)


@given(p=distributions(), r=st.floats(-10, 10, width=32), discount=st.floats(0, 1, width=32))
def test_a_projection_is_rlaxs(p, r, discount):
    with jax.enable_x64(True):
        found = ATOMS.backup(r, discount, jnp.asarray(p))
        moved = jnp.asarray(r + discount * ATOMS.atoms)
        expected = rlax.categorical_l2_project(moved, jnp.asarray(p), jnp.asarray(ATOMS.atoms))
    np.testing.assert_allclose(found, expected, atol=1e-6)
    np.testing.assert_allclose(np.asarray(found).sum(), 1, atol=1e-12)


@given(p=distributions(), r=numbers, discount=st.floats(0, 1, width=32))
def test_a_projection_keeps_the_mean_while_no_mass_is_clipped(p, r, discount):
    r = r * (1 - discount)  # so that |r + γ z| ≤ 4
    with jax.enable_x64(True):
        assert float(ATOMS.clipped(r, discount, jnp.asarray(p))) == 0
        mean = ATOMS.expectation(ATOMS.backup(r, discount, jnp.asarray(p)))
    np.testing.assert_allclose(mean, r + discount * (ATOMS.atoms @ p), atol=1e-12)


@pytest.mark.parametrize(
    ("r", "discount", "expected"),
    [
        (1.0, 0.0, [0, 0, 0, 1, 0]),  # hits an atom
        (0.25, 0.0, [0, 0, 0.75, 0.25, 0]),
        (2.0, 1.0, [0, 0, 0, 0, 1]),  # 3 and 4 leave the support: all at its end
        (-9.0, 1.0, [1, 0, 0, 0, 0]),
        (1.0, 1.0, [0, 0, 0, 0, 1]),  # 2 hits the end, 3 leaves it
    ],
)
def test_a_projection_at_atoms_and_at_both_ends(r, discount, expected):
    support = Categorical(-2.0, 2.0, 5)
    p = np.array([0, 0, 0, 0.5, 0.5])
    np.testing.assert_allclose(support.backup(r, discount, p), expected, atol=1e-6)


def test_the_mass_that_is_clipped_is_counted():
    support = Categorical(-2.0, 2.0, 5)
    p = np.array([0.1, 0.2, 0.3, 0.15, 0.25])
    assert float(support.clipped(1.0, 1.0, p)) == pytest.approx(0.25)
    assert float(support.clipped(-1.5, 1.0, p)) == pytest.approx(0.3)
    assert float(support.clipped(0.0, 1.0, p)) == 0.0


def test_an_atom_that_rounding_moves_beyond_the_end_is_not_clipped():
    """0.15 + 0.97 · 5 = 5, which in 32 bits is more."""
    support, last = Categorical(-5.0, 5.0, 51), np.eye(51, dtype=np.float32)[-1]
    r, discount = np.float32(0.15), np.float32(0.97)
    assert r + discount * np.float32(5) > 5
    assert float(support.clipped(r, discount, last)) == 0
    assert float(support.clipped(np.float32(0.16), discount, last)) == 1


@given(beta=st.floats(0, 1, width=32), x=distributions(), y=distributions())
def test_the_mean_of_a_mixture_is_the_mixture_of_the_means(beta, x, y):
    with jax.enable_x64(True):
        for kind in (ATOMS, Quantile(9)):
            mixed = kind.expectation(kind.mixture(beta, jnp.asarray(x), jnp.asarray(y)))
            means = kind.expectation(jnp.asarray(x)), kind.expectation(jnp.asarray(y))
            np.testing.assert_allclose(mixed, NUMBER.mixture(beta, *means), atol=1e-12)


def test_categorical_losses_are_rlaxs_categorical_q_learning():
    rng = np.random.default_rng(0)
    q, q2 = (jnp.asarray(rng.normal(size=(3, 9)), jnp.float32) for _ in range(2))
    atoms = jnp.asarray(ATOMS.atoms, jnp.float32)
    for a, r, discount in ((0, 0.3, 0.9), (2, -1.0, 0.0), (1, 3.5, 0.99)):
        theirs = rlax.categorical_q_learning(atoms, q, a, r, discount, atoms, q2)
        next_p = ATOMS.read(q2)
        best = jnp.argmax(ATOMS.expectation(next_p))
        ours = ATOMS.distance(q[a], ATOMS.backup(r, discount, next_p[best]), huber)
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_categorical_losses_with_another_selector_are_rlaxs_double_q_learning():
    rng = np.random.default_rng(1)
    q, q2 = (jnp.asarray(rng.normal(size=(3, 9)), jnp.float32) for _ in range(2))
    atoms, selector = jnp.asarray(ATOMS.atoms, jnp.float32), jnp.array([0.0, 2.0, 1.0])
    theirs = rlax.categorical_double_q_learning(atoms, q, 1, 0.5, 0.9, atoms, q2, selector)
    ours = ATOMS.distance(q[1], ATOMS.backup(0.5, 0.9, ATOMS.read(q2)[1]), huber)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_quantile_losses_are_rlaxs_quantile_q_learning():
    rng = np.random.default_rng(2)
    kind = Quantile(7)
    q, q2 = (jnp.asarray(rng.normal(size=(7, 3)), jnp.float32) for _ in range(2))
    levels = jnp.asarray((np.arange(7) + 0.5) / 7, jnp.float32)
    for a, r, discount in ((0, 0.3, 0.9), (2, -1.0, 0.0)):
        theirs = rlax.quantile_q_learning(q, levels, a, r, discount, q2, q2, huber_param=1.0)
        best = jnp.argmax(kind.expectation(q2.T))
        ours = kind.distance(q.T[a], kind.backup(r, discount, q2.T[best]), huber)
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def learned_from_a_coin(kind, p, rate):
    """The output that descent on the expected distance finds; r = 1 or −1 ends the episode."""

    def expected(output):
        targets = [kind.backup(r, 0.0, kind.read(output)) for r in (1.0, -1.0)]
        heads, tails = (kind.distance(output, jax.lax.stop_gradient(y), huber) for y in targets)
        return p * heads + (1 - p) * tails

    def step(_, output):
        return output - rate * jax.grad(expected)(output)

    with jax.enable_x64(True):
        first = jnp.zeros(kind.shape, jnp.float64)
        return kind.read(jax.jit(lambda: jax.lax.fori_loop(0, 400, step, first))())


def test_two_atoms_learn_the_probabilities_of_a_coin():
    found = learned_from_a_coin(Categorical(-1.0, 1.0, 2), 0.3, rate=1.0)
    np.testing.assert_allclose(found, [0.7, 0.3], atol=1e-9)


def test_quantiles_learn_a_coin_but_for_what_hubers_parabola_takes():
    # θ solves p τ min(1 − θ, 1) = (1 − p)(1 − τ) min(1 + θ, 1): with u = p τ and w = (1 − p)(1 − τ)
    # it is 1 − w/u if u > w, else u/w − 1. For p = ¼ and τ = ⅛, ⅜, ⅝, ⅞ the smaller of u and w is
    # 1/21, 1/5, 5/9 and 3/7 of the larger.
    found = learned_from_a_coin(Quantile(4), 0.25, rate=1.0)
    np.testing.assert_allclose(found, [-20 / 21, -4 / 5, -4 / 9, 4 / 7], atol=1e-9)


def test_zero_is_the_value_of_nothing():
    assert NUMBER.zero() == 0
    np.testing.assert_allclose(Categorical(-1.0, 2.0, 3).zero(), [1 / 3, 2 / 3, 0], atol=1e-6)
    assert Quantile(4).zero().tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("kind", [NUMBER, ATOMS, Quantile(3)])
def test_a_kind_survives_its_description(kind):
    assert from_json(to_json(kind)) == kind


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Categorical(1.0, 1.0), "expected low < high"),
        (lambda: Categorical(0.0, float("inf")), "expected low < high"),
        (lambda: Categorical(0.0, 1.0, 1), "atoms: 1, expected at least 2"),
        (lambda: Quantile(0), "quantiles: 0, expected at least 1"),
        (
            lambda: from_json({"kind": "gaussian"}),
            "'gaussian', expected one of number, categorical",
        ),
        (lambda: from_json({"kind": "quantile", "n": "x"}), "n: 'x', expected an integer"),
    ],
)
def test_a_kind_that_makes_no_sense_is_one_line(make, says):
    with pytest.raises(UserError, match=says):
        make()
