"""Replays in files: damage is found, slack is enough, and hostile files are one line."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from momentum_rl.errors import UserError
from momentum_rl.replay.frames import FrameReplay, bytes_of
from momentum_rl.replay.uniform import Damaged, Ring, UniformReplay, slack_of
from momentum_rl.spaces import ObservationSpace, Transition

SPACE = ObservationSpace((4,), "float32")
FRAMES = ObservationSpace((2, 3, 3), "uint8")


SHIFTED = ("first", "added", "written", "oldest")
"""What counts in a snapshot."""


def transition(k, space=SPACE):
    rng = np.random.default_rng(k)
    s, s2 = (rng.integers(1, 200, space.shape).astype(space.dtype) for _ in range(2))
    if space is FRAMES:
        s[0], s2[0] = 0, s[1]  # as at an episode's start
    return Transition(s, k % 3, float(k), 0.5, s2)


def filled(kind, space, directory, count, episode=4):
    replay = kind(12, space, slack=10, directory=directory)
    for k in range(count):
        replay.add(0, transition(k, space), k % episode == episode - 1)
    return replay


@settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
@pytest.mark.parametrize(("kind", "space"), [(UniformReplay, SPACE), (FrameReplay, FRAMES)])
def test_damage_at_any_offset_of_any_file_is_found_or_was_of_no_transition(
    tmp_path, kind, space, data
):
    replay = filled(kind, space, tmp_path, data.draw(st.integers(1, 60)))
    snapshot = replay.snapshot()
    held = np.arange(len(replay), dtype=np.uint32)
    before = replay.sample(held)
    file = data.draw(st.sampled_from(sorted(tmp_path.iterdir())))
    content = bytearray(file.read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= data.draw(st.integers(1, 255))
    del replay
    file.write_bytes(content)
    again = kind(12, space, slack=10, directory=tmp_path, new=False)
    try:
        again.restore(snapshot)
    except Damaged:
        return
    for a, b in zip(before, again.sample(held)):
        np.testing.assert_array_equal(a, b)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    kind=st.sampled_from([(UniformReplay, SPACE), (FrameReplay, FRAMES)]),
    count=st.integers(0, 60),
    episode=st.integers(1, 9),
)
def test_while_there_is_room_a_moment_can_be_gone_back_to(tmp_path, kind, count, episode):
    kind, space = kind
    replay = filled(kind, space, tmp_path, count, episode)
    snapshot = replay.snapshot()
    held = np.arange(len(replay), dtype=np.uint32)
    before = replay.sample(held) if len(replay) else None
    k = count
    while replay.headroom(snapshot) > 0:
        replay.add(0, transition(k, space), k % episode == episode - 1)
        k += 1
    assert k - count >= 10  # the slack
    again = kind(12, space, slack=10, directory=tmp_path, new=False)
    again.restore(snapshot)
    assert len(again) == len(held)
    if before is not None:
        for a, b in zip(before, again.sample(held)):
            np.testing.assert_array_equal(a, b)


def test_two_intervals_of_slack_keep_the_older_of_two_checkpoints():
    assert slack_of(1_000_000, 5_000) == 10_000
    assert slack_of(100, 5_000) == 200  # then a checkpoint is made every 100 steps
    atari = ObservationSpace((4, 84, 84), "uint8")
    assert bytes_of(10**6, atari, slack_of(10**6, 5_000), mapped=True) <= 7.3e9


@pytest.mark.parametrize("kind", [(UniformReplay, SPACE), (FrameReplay, FRAMES)])
def test_what_is_sampled_does_not_depend_on_the_slack_or_the_place(kind, tmp_path):
    kind, space = kind
    replays = [kind(12, space), kind(12, space, slack=30), filled(kind, space, tmp_path, 0, 1)]
    words = np.random.default_rng(0).integers(2**32, size=(2, 5), dtype=np.uint32)
    for k in range(100):
        for replay in replays:
            replay.add(0, transition(k, space), k % 2 == 1)  # episodes of two: many frames
        samples = [replay.sample(words) for replay in replays]
        for a, b, c in zip(*samples):
            np.testing.assert_array_equal(a, b)
            np.testing.assert_array_equal(a, c)


@pytest.mark.parametrize("slack", [0, 10])
@pytest.mark.parametrize("kind", [(UniformReplay, SPACE), (FrameReplay, FRAMES)])
def test_a_moment_is_of_its_own_run_and_lap_whatever_the_records_hold(kind, slack, tmp_path):
    """All transitions are the same, so that a checksum of what they hold alone tells nothing."""
    kind, space = kind
    about = {"slack": slack, "directory": tmp_path / "run"}

    def moments(count, **files):
        replay = kind(12, space, **files)
        for _ in range(count):
            replay.add(0, transition(1, space), True)
            yield replay.snapshot()

    ours = list(moments(90, **about, run="ours"))
    other = list(moments(90, slack=slack, directory=tmp_path / "other", run="other"))
    again = kind(12, space, **about, new=False)
    wrong = [other[89], ours[30], other[30]]  # another run's, an older lap's
    later = {name: value + 200 if name in SHIFTED else value for name, value in ours[89].items()}
    for snapshot in [*wrong, later]:  # and a newer one's
        with pytest.raises(Damaged, match="damaged, of another run or of another moment"):
            again.restore(snapshot)
    again.restore(ours[89])
    assert len(again) == 12


@pytest.mark.parametrize("episode", [1, 2, 50])
@pytest.mark.parametrize("kind", [(UniformReplay, SPACE), (FrameReplay, FRAMES)])
def test_what_is_sampled_does_not_depend_on_room_that_is_never_used(kind, episode):
    """Also where more episodes begin than a replay expects: 70 frames are one too many."""
    kind, space = kind
    whole, small = kind(300, space), kind(300, space, slack=-200)
    assert small.nbytes < whole.nbytes
    words = np.random.default_rng(0).integers(2**32, size=(2, 5), dtype=np.uint32)
    for k in range(100):
        for replay in (whole, small):
            replay.add(0, transition(k, space), k % episode == episode - 1)
        assert len(whole) == len(small)
        for a, b in zip(whole.sample(words), small.sample(words)):
            np.testing.assert_array_equal(a, b)
    assert (len(small) < 100) == (kind is FrameReplay and episode == 1)


def test_files_of_another_size_absent_ones_and_links_are_one_line(tmp_path):
    dtype = np.dtype([("x", np.int32)])
    Ring(5, dtype, tmp_path / "r.bin", new=True).seal(0, 5, "mine")
    for size in (4, 7):  # of a shorter run, of a longer one
        ring = Ring(size, dtype, tmp_path / "r.bin", new=False)
        ring.verify(0, min(size, 5), "mine")
        assert ring.data["x"].tolist() == [0] * size
    with pytest.raises(Damaged, match=r"r\.bin: damaged"):
        ring.verify(0, 6, "mine")
    with pytest.raises(Damaged, match="No such file"):
        Ring(5, dtype, tmp_path / "absent.bin", new=False)
    (tmp_path / "precious").write_bytes(bytes(20))
    (tmp_path / "link.bin").symlink_to(tmp_path / "precious")
    for new in (False, True):
        with pytest.raises(UserError):
            Ring(5, dtype, tmp_path / "link.bin", new=new)
    assert (tmp_path / "precious").read_bytes() == bytes(20)


@pytest.mark.parametrize(
    "change",
    [{"added": 10**9}, {"first": -1}, {"histories": [[0, 5]]}, {"oldest": -5}, {"slack": 11}],
)
def test_a_moment_that_cannot_be_is_one_line(change, tmp_path):
    replay = filled(FrameReplay, FRAMES, tmp_path, 30)
    snapshot = replay.snapshot()
    with pytest.raises(Damaged, match="expected a snapshot of it"):
        replay.restore({**snapshot, **change})
