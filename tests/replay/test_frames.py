"""The replay of frames against a naive store that keeps whole stacks."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from momentum_rl.errors import UserError
from momentum_rl.replay.frames import FrameReplay, bytes_of, extra_frames
from momentum_rl.spaces import ObservationSpace, Transition
from tests.replay.player import SPACE, Player

ATARI = ObservationSpace((4, 84, 84), "uint8")


def check(replay, naive):
    """Every transition that can be sampled is the naive store's, in its order, bit by bit."""
    held = len(replay)
    batch = replay.sample(np.arange(held, dtype=np.uint32).reshape(1, held))
    for j, expected in enumerate(naive[len(naive) - held :]):
        for values, wanted in zip(batch, expected):
            np.testing.assert_array_equal(values[0, j], wanted)
    assert batch.observation.dtype == batch.next_observation.dtype == np.uint8
    assert batch.observation.shape == (1, held, *SPACE.shape)


steps = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.sampled_from(["no"] * 6 + ["terminated", "truncated"]),
        st.integers(0, 5),
    ),
    min_size=1,
    max_size=150,
)


@settings(max_examples=150, deadline=None)
@given(capacity=st.integers(1, 30), slack=st.integers(0, 5), steps=steps)
def test_any_interleaving_samples_what_a_store_of_whole_stacks_would(capacity, slack, steps):
    replay, naive = FrameReplay(capacity, SPACE, slack=slack), []
    players = [Player() for _ in range(3)]
    frames = 0
    for k, (env, end, action) in enumerate(steps):
        fresh = players[env].stack is None
        transition, ended = players[env].step(end, action, float(k))
        replay.add(env, transition, ended)
        naive.append(Transition(*(np.array(part) for part in transition)))
        frames += 1 + fresh
        if frames <= capacity + extra_frames(capacity):
            assert len(replay) == min(len(naive), capacity)
        assert 1 <= len(replay) <= min(len(naive), capacity)
        if k % 7 == 0 or k == len(steps) - 1:
            check(replay, naive)


@settings(max_examples=20, deadline=None)
@given(
    runs=st.lists(
        st.tuples(st.integers(0, 3), st.integers(1, 40), st.booleans()), min_size=20, max_size=40
    )
)
def test_an_environment_that_lags_far_behind_the_others_is_stored_right(runs):
    """One environment steps so often that the head has passed another's frames before its next."""
    replay, naive = FrameReplay(8, SPACE), []
    players = [Player() for _ in range(4)]
    for env, length, cut in runs:
        for k in range(length):
            end = "truncated" if cut and k == length - 1 else "no"
            transition, ended = players[env].step(end, 0, 0.0)
            replay.add(env, transition, ended)
            naive.append(transition)
        check(replay, naive)
        assert len(replay) <= min(8, len(naive))
    assert len(replay) >= 2


def test_episodes_of_a_hundred_steps_always_leave_exactly_the_capacity():
    replay, naive = FrameReplay(1_000, SPACE), []
    players = [Player() for _ in range(2)]
    for k in range(2_700):
        transition, ended = players[k % 2].step("truncated" if k // 2 % 100 == 99 else "no", 1, k)
        replay.add(k % 2, transition, ended)
        naive.append(transition)
        assert len(replay) == min(k + 1, 1_000)
    check(replay, naive)


def test_a_stack_at_an_episodes_start_is_zeros_then_the_first_frame():
    replay, player = FrameReplay(4, SPACE), Player()
    transition, ended = player.step("no", 0, 0.0)
    replay.add(0, transition, ended)
    batch = replay.sample(np.zeros((1, 1), np.uint32))
    np.testing.assert_array_equal(batch.observation[0, 0, :3], 0)
    np.testing.assert_array_equal(batch.next_observation[0, 0, :2], 0)
    np.testing.assert_array_equal(batch.observation[0, 0, 3], batch.next_observation[0, 0, 2])
    assert batch.observation[0, 0, 3].all()


def test_every_transition_is_sampled_and_about_equally_often():
    replay, player = FrameReplay(10, SPACE), Player()
    for k in range(37):
        transition, ended = player.step("truncated" if k % 9 == 8 else "no", 0, float(k))
        replay.add(0, transition, ended)
    words = np.random.default_rng(0).integers(2**32, size=(2, 10_000), dtype=np.uint32)
    rewards, counts = np.unique(replay.sample(words).reward, return_counts=True)
    np.testing.assert_array_equal(rewards, np.arange(27, 37))
    assert np.abs(counts - 2_000).max() < 5 * np.sqrt(2_000)


def test_a_sample_is_a_copy_that_later_additions_do_not_change():
    replay, player = FrameReplay(3, SPACE), Player()
    replay.add(0, *player.step("no", 0, 0.0))
    batch = replay.sample(np.zeros((1, 2), np.uint32))
    kept = batch.observation.copy()
    for _ in range(200):
        replay.add(0, *player.step("no", 0, 0.0))
    np.testing.assert_array_equal(batch.observation, kept)


def test_in_memory_mapped_files_it_holds_the_same(tmp_path):
    in_memory, mapped = FrameReplay(20, SPACE), FrameReplay(20, SPACE, directory=tmp_path / "r")
    player = Player()
    for k in range(130):
        transition, ended = player.step("no" if k % 11 else "truncated", k % 5, float(k))
        in_memory.add(0, transition, ended)
        mapped.add(0, transition, ended)
    words = np.arange(20, dtype=np.uint32)[None]
    for a, b in zip(in_memory.sample(words), mapped.sample(words)):
        np.testing.assert_array_equal(a, b)
    size = sum(file.stat().st_size for file in (tmp_path / "r").iterdir())
    assert size == mapped.nbytes - mapped._user.nbytes
    blocks = sum(512 * file.stat().st_blocks for file in (tmp_path / "r").iterdir())
    assert blocks >= size  # the disk space is taken: no surprise when it fills up


@pytest.mark.parametrize("episode", [5, 30])
def test_a_replay_taken_back_within_its_slack_goes_on_as_if_nothing_had_happened(tmp_path, episode):
    """Transitions added after the snapshot are lost; what was in the replay then is not."""

    def play(replay, first, last):
        for k in range(first, last):
            rng = np.random.default_rng(k // episode)
            frames = rng.integers(1, 256, (episode + 4, *SPACE.shape[1:])).astype(np.uint8)
            frames[:3] = 0
            i = k % episode
            replay.add(
                0,
                Transition(frames[i : i + 4], 0, float(k), 0.5, frames[i + 1 : i + 5]),
                i == episode - 1,
            )

    words = np.arange(40, dtype=np.uint32)[None]
    through = FrameReplay(40, SPACE, slack=20)
    play(through, 0, 120)
    broken = FrameReplay(40, SPACE, slack=20, directory=tmp_path)
    play(broken, 0, 90)
    snapshot = json.loads(json.dumps(broken.snapshot()))
    while broken.headroom(snapshot) >= 1:
        play(broken, broken._added, broken._added + 1)
    assert broken._added >= 107
    del broken
    again = FrameReplay(40, SPACE, slack=20, directory=tmp_path, new=False)
    again.restore(snapshot)
    play(again, 90, 120)
    assert len(through) == len(again) == 40
    for a, b in zip(through.sample(words), again.sample(words)):
        np.testing.assert_array_equal(a, b)


def test_a_million_transitions_take_at_most_7_3_kilobytes_each():
    assert bytes_of(10**6, ATARI) <= 7.3e9
    small = FrameReplay(1_000, ATARI)
    arrays = [small._frames, small._user, small._slots, small._action, small._reward]
    assert small.nbytes == sum(a.nbytes for a in arrays) + small._discount.nbytes
    assert small._frames.dtype == np.uint8


def test_a_replay_that_cannot_fit_is_refused_at_once_with_its_size(tmp_path):
    with pytest.raises(
        UserError, match=r"10,000,000,000 transitions: needs 71\.7 TB, only .*avail"
    ):
        FrameReplay(10**10, ATARI)
    with pytest.raises(UserError, match=r"needs 71\.7 TB, only .* are free in") as error:
        FrameReplay(10**10, ATARI, directory=tmp_path)
    assert "\n" not in str(error.value)


@pytest.mark.slow
def test_a_full_replay_of_a_million_transitions_in_7_3_gigabytes_and_quick_to_sample():
    """Peak memory, flat once it is full, and the time of a minibatch of 32."""
    import resource
    import time

    from momentum_rl.plumbing.sizes import available_memory

    if available_memory() < 9e9:
        pytest.skip("needs 9 GB of memory")

    def resident():
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    before = resident()
    replay = FrameReplay(10**6, ATARI)
    frames = np.random.default_rng(0).integers(1, 256, (64, 84, 84), dtype=np.uint8)
    stack = np.zeros((4, 84, 84), np.uint8)
    full = 0
    for k in range(1_100_000):
        after = np.stack([*stack[1:], frames[k % 64]])
        ended = k % 1_000 == 999
        replay.add(0, Transition(stack, k % 4, 1.0, 0.99, after), ended)
        stack = np.zeros_like(stack) if ended else after
        if k == 1_030_000:
            full = resident()
    assert len(replay) == 10**6
    assert resident() - before <= 7.3e9
    assert resident() <= full + 5e6  # flat
    words = np.random.default_rng(1).integers(2**32, size=(300, 1, 32), dtype=np.uint32)
    start = time.perf_counter()
    for word in words:
        replay.sample(word)
    milliseconds = (time.perf_counter() - start) / len(words) * 1e3
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(
        f"peak {peak / 1e9:.3f} GB, replay {(resident() - before) / 1e9:.3f} GB, "
        f"minibatch of 32 in {milliseconds:.2f} ms"
    )
    assert milliseconds < 10


@pytest.mark.slow
def test_a_checkpoint_of_a_full_atari_replay_takes_under_a_second_and_no_memory(tmp_path):
    """A million transitions in files, a checkpoint every 5,000 with the paper's networks in it."""
    import time

    from momentum_rl.replay.uniform import slack_of
    from momentum_rl.training.run_directory import Checkpoints, Saved

    def anonymous():
        status = Path("/proc/self/status").read_text()
        return int(status.split("RssAnon:")[1].split()[0]) * 1024

    slack = slack_of(10**6, 5_000)
    replay = FrameReplay(10**6, ATARI, slack=slack, directory=tmp_path / "replay")
    checkpoints = Checkpoints(tmp_path)
    frames = np.random.default_rng(0).integers(1, 256, (64, 84, 84), dtype=np.uint8)
    networks = {"networks": np.random.default_rng(1).random(8 * 1_690_000).astype(np.float32)}
    stack, times, before = np.zeros((4, 84, 84), np.uint8), [], 0
    for k in range(1_100_000):
        after = np.stack([*stack[1:], frames[k % 64]])
        ended = k % 1_000 == 999
        replay.add(0, Transition(stack, k % 4, 1.0, 0.99, after), ended)
        stack = np.zeros_like(stack) if ended else after
        if (k + 1) % 5_000 == 0:
            start = time.perf_counter()
            snapshot = replay.snapshot()
            sealed = time.perf_counter()
            checkpoints.write(k + 1, Saved(networks, {"replay": snapshot}))
            times.append((sealed - start, time.perf_counter() - start))
            before = before or anonymous()
    assert len(replay) == 10**6
    extra = anonymous() - before
    del replay
    start = time.perf_counter()
    again = FrameReplay(10**6, ATARI, slack=slack, directory=tmp_path / "replay", new=False)
    again.restore(snapshot)
    opened = time.perf_counter() - start
    ring, whole = np.array(times[-20:]).T
    print(
        f"replay: mean {ring.mean():.2f} s, longest {ring.max():.2f} s; with networks: "
        f"mean {whole.mean():.2f} s, longest {whole.max():.2f} s; "
        f"memory {extra / 1e6:.0f} MB more; opened and checked in {opened:.1f} s"
    )
    assert np.median(whole) < 1
    assert extra < 50e6
    assert len(again) == 10**6
