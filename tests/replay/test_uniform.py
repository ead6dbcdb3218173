import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from momentum_rl.errors import UserError
from momentum_rl.replay import device, uniform
from momentum_rl.replay import frames as frames_of
from momentum_rl.replay.frames import FrameReplay
from momentum_rl.replay.uniform import UniformReplay
from momentum_rl.spaces import ActionFormat, NStep, ObservationSpace, Transition


def numbered(k, space):
    return Transition(
        observation=np.full(space.shape, k % 251, space.dtype),
        action=k % 7,
        reward=float(k),
        discount=0.99 if k % 3 else 0.0,
        next_observation=np.full(space.shape, (k + 1) % 251, space.dtype),
    )


@settings(max_examples=50, deadline=None)
@given(
    capacity=st.integers(1, 20),
    count=st.integers(1, 60),
    words=st.lists(st.integers(0, 2**32 - 1), min_size=6, max_size=6),
)
def test_it_samples_the_newest_transitions_as_a_naive_list_would(capacity, count, words):
    space = ObservationSpace((2, 2), "uint8")
    replay, naive = UniformReplay(capacity, space), []
    for k in range(count):
        replay.add(0, numbered(k, space), False)
        naive.append(numbered(k, space))
    assert len(replay) == min(count, capacity)
    batch = replay.sample(np.array(words, np.uint32).reshape(2, 3))
    assert batch.observation.shape == (2, 3, 2, 2)
    newest = {t.reward: t for t in naive[-capacity:]}
    for j in np.ndindex(2, 3):
        stored = newest[float(batch.reward[j])]
        for values, expected in zip(batch, stored):
            np.testing.assert_allclose(values[j], expected, rtol=1e-6)


def test_every_stored_transition_is_sampled_and_about_equally_often():
    space = ObservationSpace((1,), "float32")
    replay = UniformReplay(10, space)
    for k in range(17):
        replay.add(0, numbered(k, space), False)
    words = np.random.default_rng(0).integers(2**32, size=20_000, dtype=np.uint32)
    rewards, counts = np.unique(replay.sample(words).reward, return_counts=True)
    np.testing.assert_array_equal(rewards, np.arange(7, 17))
    assert np.abs(counts - 2000).max() < 5 * np.sqrt(2000)


@pytest.mark.parametrize("dtype", ["uint8", "bool", "float64", "int8", "float32"])
def test_observations_keep_their_own_dtype(dtype):
    space = ObservationSpace((3,), dtype)
    replay = UniformReplay(4, space)
    replay.add(0, numbered(1, space), False)
    batch = replay.sample(np.zeros((1, 2), np.uint32))
    assert batch.observation.dtype == batch.next_observation.dtype == np.dtype(dtype)
    assert replay.nbytes == 4 * (2 * 3 * np.dtype(dtype).itemsize + 3 * 4)


def test_a_sample_is_a_copy_that_later_additions_do_not_change():
    space = ObservationSpace((1,), "float32")
    replay = UniformReplay(2, space)
    replay.add(0, numbered(1, space), False)
    batch = replay.sample(np.zeros((1, 3), np.uint32))
    kept = batch.observation.copy()
    for k in range(5):
        replay.add(0, numbered(k, space), False)
    np.testing.assert_array_equal(batch.observation, kept)


def test_a_replay_that_cannot_fit_is_refused_at_once_with_its_size():
    with pytest.raises(UserError, match="10,000,000,000 transitions: needs 565 TB"):
        UniformReplay(10**10, ObservationSpace((84, 84, 4), "uint8"))


def test_actions_of_any_dtype_and_shape_are_stored_as_they_are(tmp_path):
    """In memory, in files, inside a compiled loop and beside frames; with n steps too."""
    space, action = ObservationSpace((2,), "float32"), ActionFormat("float32", (3,))
    rng = np.random.default_rng(0)
    taken = rng.uniform(-1, 1, (9, 3)).astype(np.float32)
    stacks = ObservationSpace((2, 1), "uint8")
    replays = [
        UniformReplay(5, space, action=action),
        UniformReplay(5, space, action=action, directory=tmp_path, slack=2),
        UniformReplay(5, space, action=action, horizon=NStep(2, 1)),
    ]
    frames = FrameReplay(5, stacks, action=action)
    ring = device.empty(5, space, action)
    for k in range(9):
        one = numbered(k, space)._replace(action=taken[k])
        for replay in replays:
            replay.add(0, one, False)
        ring = device.add(ring, jnp.int32(k % 5), one, space)
        frames.add(0, numbered(k + 1, stacks)._replace(action=taken[k], reward=k), True)
    words = np.arange(40, dtype=np.uint32)
    batches = [replay.sample(words) for replay in (*replays, frames)]
    for batch in [*batches, device.sample(ring, jnp.int32(9), jnp.asarray(words), space)]:
        assert (batch.action.shape, batch.action.dtype) == ((40, 3), np.float32)
    for batch in (*batches[:2], batches[3]):
        np.testing.assert_array_equal(batch.action, taken[batch.reward.astype(int)])
    assert device.bytes_per_transition(space, action) == 2 * 8 + 3 * 4 + 8
    assert uniform.bytes_of(10, space, action=action) == 10 * (2 * 8 + 3 * 4 + 8)
    assert frames_of.bytes_of(10, stacks, action=action) - frames_of.bytes_of(10, stacks) == 80
