"""Actions in [−1, 1] as an environment has them: within its bounds, of its shape and dtype."""

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from momentum_rl.envs.gym_vector import spaces_of
from momentum_rl.errors import UserError
from momentum_rl.spaces import Box, ObservationSpace, Spaces

SEEN = gym.spaces.Box(-1, 1, (3,), np.float32)


def box_of(low, high, shape=(1,), dtype=np.float32):
    """An environment's space, and what we make of it."""
    space = gym.spaces.Box(low, high, shape, dtype)
    return space, spaces_of(SEEN, space, "Some-v0").actions


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@given(
    low=st.floats(-100, 100, width=16),
    width=st.floats(0.0078125, 100, width=16),
    action=st.floats(-2, 2, width=32),
)
def test_an_action_is_always_one_of_the_environments(dtype, low, width, action):
    low, high = dtype(low), dtype(low + width)
    if not low < high:
        return
    space, box = box_of(low, high, (2,), dtype)
    own = box.rescaled(np, np.full((5, 2), action, np.float32))
    assert own.dtype == dtype
    assert all(space.contains(one) for one in own)


def test_bounds_of_double_precision_are_not_left_at_the_ends():
    """0.1 in 32 bits is above 0.1 in 64."""
    space, box = box_of(-0.1, 0.1, (2,), np.float64)
    own = box.rescaled(np, np.array([1.0, -1.0], np.float32))
    assert own.tolist() == [0.1, -0.1]
    assert space.contains(own)


def test_rounding_between_the_bounds_does_not_go_beyond_them():
    """In 32 bits some sums (1 − x) low + x high are outside of [low, high]."""
    random = np.random.default_rng(0)
    shares = random.uniform(-1, 1, 200).astype(np.float32)
    part, beyond = (shares + 1) / 2, 0
    for low in random.uniform(1, 4, 200).astype(np.float32):
        high = np.float32(low * (1 + 1e-6))
        beyond += np.sum((1 - part) * low + part * high < low)
        box = Box((float(low),), (float(high),), (1,))
        for library in (np, jnp):
            own = np.asarray(box.rescaled(library, shares[:, None]))
            assert low <= own.min()
            assert own.max() <= high
    assert beyond > 0


def test_an_action_may_have_no_axis():
    space, box = box_of(-2.0, 2.0, ())
    own = box.rescaled(np, np.array([0.5], np.float32))
    assert own.shape == ()
    assert space.contains(own)
    assert box.rescaled(np, np.zeros((4, 1), np.float32)).shape == (4,)
    with jax.enable_x64(True):
        assert box.rescaled(jnp, jnp.zeros((4, 1))).dtype == jnp.float32


def test_spaces_that_are_made_of_lists_are_those_made_of_tuples():
    one = Spaces(ObservationSpace([2], "float32"), Box([-2.0], [2.0], [1]))
    other = Spaces(ObservationSpace((2,), "float32"), Box((-2.0,), (2.0,), (1,)))
    assert one == other
    assert hash(one) == hash(other)


@pytest.mark.parametrize(
    ("space", "said"),
    [
        (gym.spaces.Box(-1, 1, (0,)), r"of the shape \(0,\), expected at least one number"),
        (gym.spaces.Box(1, 1, (2,)), r"from 1\.0 to 1\.0, expected finite bounds, low < high"),
    ],
)
def test_actions_of_which_there_are_none_are_one_line_with_the_environments_name(space, said):
    with pytest.raises(UserError, match=f"env: Some-v0 has actions: {said}"):
        spaces_of(SEEN, space, "Some-v0")


@pytest.mark.parametrize("dtype", ["int32", "no dtype", "float128"])
def test_actions_are_floats_that_are_known(dtype):
    with pytest.raises(UserError, match=f"actions: of {dtype}, expected one of float16, float32, "):
        Box((0.0,), (1.0,), (1,), dtype)
