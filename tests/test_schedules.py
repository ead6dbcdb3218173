from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from momentum_rl.core.schedules import (
    Capped,
    Constant,
    Epsilon,
    Heuristic,
    Mean,
    RateUpdates,
    Smoothing,
)
from tests.oracles import refusal

SCHEDULES = [
    Mean(),
    RateUpdates(7),
    Constant(0.3),
    Heuristic(7),
    Capped(RateUpdates(7), 0.7),
    Epsilon(20, 50, 0.1),
]


def test_a_capped_schedule_is_the_other_up_to_its_largest_beta():
    assert [Capped(RateUpdates(10), 0.6)(k) for k in (0, 9, 10, 20, 90)] == [0, 0, 0.5, 0.6, 0.6]
    assert refusal(Capped, Mean(), 1.0) == "most: 1.0, expected a number in [0, 1)"


def test_no_schedule_of_an_average_reaches_one():
    for rho in (1.5, 2.0, 10.0):
        assert all(Smoothing(rho)(k) < 1 for k in (50, 100, 10_000))


def test_the_mean_weighs_one_half_two_thirds_and_so_on():
    assert [Mean()(k) for k in (0, 1, 2, 3, 99)] == [0, 1 / 2, 2 / 3, 3 / 4, 0.99]


@given(rho=st.fractions(0, 3), k=st.integers(0, 40))
def test_smoothing_gives_the_last_q_its_share_of_all_weights(rho, k):
    """β_k = 1 − 1/(1 + ρ + … + ρ^k), in rationals."""
    weights = sum(rho**i for i in range(k + 1))
    assert Smoothing(float(rho))(k) == pytest.approx(float(1 - 1 / weights), rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("rho", [0.5, 0.9, 1.0, 1.1, 2.0])
def test_smoothing_is_the_same_in_compiled_code_and_late_in_a_run(rho):
    """To rounding: a power is computed in another way there."""
    steps, schedule = [0, 1, 7, 45, 2**31, 10**12], Smoothing(rho)
    with jax.enable_x64(True):
        compiled = np.asarray(jax.jit(jax.vmap(schedule))(jnp.array(steps, jnp.int64)))
    np.testing.assert_allclose(compiled, [schedule(k) for k in steps], rtol=1e-13)
    assert schedule(10**12) == pytest.approx(min(rho, 1.0), rel=1e-11)


@pytest.mark.parametrize(
    ("step", "beta"),
    [
        (0, 0),
        (2_499_999, 0),
        (2_500_000, 1 / 2),
        (4_999_999, 1 / 2),
        (5_000_000, 2 / 3),
        (7_500_000, 3 / 4),
        (49_999_999, 19 / 20),
    ],
)
def test_beta_is_zero_for_kappa_steps_then_a_half_two_thirds_up_to_nineteen_twentieths(step, beta):
    assert RateUpdates(2_500_000)(step) == beta


@pytest.mark.parametrize(
    ("step", "beta"),
    [(0, 0), (9, 0), (10, 0.1), (25, 0.2), (89, 0.8), (90, 0.9), (100, 0.9), (10**12, 0.9)],
)
def test_the_heuristic_climbs_by_a_tenth_and_stays_below_one(step, beta):
    assert Heuristic(10)(step) == beta


@pytest.mark.parametrize(
    ("step", "epsilon"),
    [
        (0, 1),
        (19_999, 1),
        (20_000, 1),
        (145_000, 0.505),
        (269_999, 0.01 + 0.99 / 250_000),
        (270_000, 0.01),
        (10**15, 0.01),
    ],
)
def test_epsilon_is_one_while_warming_up_then_linear_then_final(step, epsilon):
    assert Epsilon()(step) == pytest.approx(epsilon, abs=1e-15)


@pytest.mark.parametrize("beta", [0, 0.1, 0.5, 0.9])
def test_a_constant_is_the_same_at_every_step(beta):
    assert {Constant(beta)(k) for k in (0, 1, 2**31, 2**63)} == {beta}


@given(st.integers(1, 2**62), st.integers(0, 60), st.integers(-2, 2))
def test_rate_updates_are_exact_on_the_host_around_any_multiple_of_kappa(kappa, n, offset):
    step = max(0, kappa * n + offset)
    updates = Fraction(step) // kappa
    assert RateUpdates(kappa)(step) == float(Fraction(updates, updates + 1))
    assert Heuristic(kappa)(step) == float(min(Fraction(updates, 10), Fraction(9, 10)))


@given(st.integers(0, 2**62), st.integers(1, 2**62), st.integers(0, 2**63))
def test_epsilon_is_exact_on_the_host_at_any_step(warmup, decay, step):
    share = min(max(Fraction(step - warmup, decay), Fraction(0)), Fraction(1))
    assert Epsilon(warmup, decay, 0.25)(step) == pytest.approx(
        float(1 - Fraction(3, 4) * share), abs=1e-15
    )


INT32_STEPS = [0, 1, 6, 7, 13, 20, 45, 69, 70, 71, 2**24, 2**24 + 1, 2**31 - 2, 2**31 - 1]


@pytest.mark.parametrize("schedule", SCHEDULES, ids=repr)
def test_compiled_int32_steps_give_what_the_host_gives(schedule):
    compiled = jax.jit(jax.vmap(schedule))(jnp.array(INT32_STEPS, jnp.int32))
    assert compiled.dtype == jnp.float32
    host = np.array([schedule(k) for k in INT32_STEPS])
    np.testing.assert_allclose(compiled, host, rtol=2.0**-23, atol=0)


@pytest.mark.parametrize("schedule", SCHEDULES, ids=repr)
def test_compiled_int64_steps_past_two_to_the_31_give_exactly_what_the_host_gives(schedule):
    steps = [0, 7, 45, 2**31, 2**31 + 1, 7 * 2**33 - 1, 7 * 2**33]
    with jax.enable_x64(True):
        compiled = np.asarray(jax.jit(jax.vmap(schedule))(jnp.array(steps, jnp.int64)))
    np.testing.assert_allclose(compiled, [schedule(k) for k in steps], rtol=2.0**-52, atol=0)


@pytest.mark.parametrize("schedule", SCHEDULES, ids=repr)
@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.int32, np.uint32])
def test_numpy_steps_of_any_integer_type_give_what_the_host_gives(schedule, dtype):
    steps = [0, 7, 45, 70, 2**31 - 1]
    host = [schedule(k) for k in steps]
    assert [float(schedule(dtype(k))) for k in steps] == pytest.approx(host, rel=1e-15)
    np.testing.assert_allclose(schedule(np.array(steps, dtype)), host, rtol=1e-15)


@pytest.mark.parametrize("schedule", SCHEDULES, ids=repr)
def test_compiled_unsigned_steps_give_what_the_host_gives(schedule):
    steps = [0, 7, 45, 70, 71, 2**24 + 1]
    compiled = jax.jit(jax.vmap(schedule))(jnp.array(steps, jnp.uint32))
    np.testing.assert_allclose(compiled, [schedule(k) for k in steps], rtol=2.0**-23)


@pytest.mark.parametrize(
    ("schedule", "before", "after"),
    [
        (RateUpdates(2**24 + 1), 0.0, 0.5),
        (Heuristic(2**24 + 1), 0.0, 0.1),
        (Epsilon(2**24, 1, 0.0), 1.0, 0.0),
    ],
    ids=repr,
)
def test_no_counter_is_rounded_to_float32(schedule, before, after):
    assert np.float32(2**24) == np.float32(2**24 + 1)
    compiled = jax.jit(schedule)
    assert float(compiled(jnp.int32(2**24))) == np.float32(before)
    assert float(compiled(jnp.int32(2**24 + 1))) == np.float32(after)


@pytest.mark.parametrize("schedule", [Mean(), RateUpdates(1), Constant(1 - 2.0**-40)], ids=repr)
def test_no_share_is_rounded_up_to_one(schedule):
    """k/(k + 1) of two thousand million is nearer to 1 than to any other number of 32 bits."""
    assert float(jax.jit(schedule)(jnp.int32(2**31 - 1))) == 1 - 2.0**-24
    assert schedule(2**80) <= 1 - 2.0**-53


@pytest.mark.parametrize(
    ("make", "name", "value"),
    [
        (lambda: RateUpdates(0), "kappa", "0"),
        (lambda: RateUpdates(-3), "kappa", "-3"),
        (lambda: RateUpdates(2.5), "kappa", "2.5"),
        (lambda: RateUpdates(True), "kappa", "True"),
        (lambda: Heuristic(0), "kappa", "0"),
        (lambda: Constant(1.0), "beta", "1.0"),
        (lambda: Constant(-0.1), "beta", "-0.1"),
        (lambda: Constant(float("nan")), "beta", "nan"),
        (lambda: Epsilon(warmup=-1), "warmup", "-1"),
        (lambda: Epsilon(decay=0), "decay", "0"),
        (lambda: Epsilon(final=1.5), "final", "1.5"),
        (lambda: Epsilon(final=float("nan")), "final", "nan"),
    ],
)
def test_an_impossible_schedule_is_refused_by_name_and_value(make, name, value):
    assert refusal(make).startswith(f"{name}: {value}, expected ")


def test_schedules_with_the_same_numbers_are_the_same_to_compiled_code():
    assert RateUpdates(5) == RateUpdates(5) != RateUpdates(6)
    assert hash(Constant(0.5)) == hash(Constant(0.5))
