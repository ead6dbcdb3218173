"""n-step transitions of all three replays, by hand and against a slow walk through the stream."""

import functools
import json

import jax
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from momentum_rl.replay import device
from momentum_rl.replay.frames import FrameReplay
from momentum_rl.replay.uniform import UniformReplay
from momentum_rl.spaces import NStep, ObservationSpace, Transition
from tests.replay.player import SPACE as FRAMES
from tests.replay.player import Player

NUMBERS = ObservationSpace((1,), "float32")
GAMMA = 0.5  # the players'
KINDS = [(UniformReplay, NUMBERS), (FrameReplay, FRAMES)]


class Counter:
    """An environment whose observations are all different numbers."""

    count = 0.0

    def __init__(self):
        self.now = None

    def number(self):
        Counter.count += 1
        return np.array([Counter.count], np.float32)

    def step(self, end, action, reward):
        before = self.number() if self.now is None else self.now
        after = self.number()
        self.now = after if end == "no" else None
        return Transition(
            before, action, reward, 0.0 if end == "terminated" else GAMMA, after
        ), end != "no"


def players(space, n):
    return [Counter() if space is NUMBERS else Player(space) for _ in range(n)]


class Stream:
    """What was added to a replay: a list, and an n-step transition by walking along it."""

    def __init__(self):
        self.added = []

    def add(self, env, transition, ended):
        self.added.append((env, Transition(*map(np.array, transition)), ended))

    def window(self, t, n, clip=None):
        """The expected transition of number t; its reward and discount in double precision."""
        env, first, ended = self.added[t]
        last, rewards = first, [float(first.reward)]
        for other, transition, ends in self.added[t + 1 :]:
            if ended or len(rewards) == n:
                break
            if other == env:
                last, ended = transition, ends
                rewards.append(float(transition.reward))
        if clip is not None:
            rewards = np.clip(rewards, -clip, clip)
        return Transition(
            first.observation,
            first.action,
            sum(GAMMA**i * r for i, r in enumerate(rewards)),
            GAMMA ** len(rewards) if last.discount else 0.0,
            last.next_observation,
        ), (len(rewards) == n or ended)


def everything(replay):
    """Every transition that can be sampled, once, [m, ...]."""
    return replay.sample(np.arange(len(replay), dtype=np.uint32))


def assert_samples(batch, stream, numbers, n, clip=None):
    """A batch has the n-step transitions of these numbers, in any order, each once."""
    by_first = {stream.added[t][1].observation.tobytes(): t for t in numbers}
    assert len(by_first) == len(batch.action) == len(numbers)
    for j in range(len(numbers)):
        t = by_first.pop(np.asarray(batch.observation[j]).tobytes())
        expected, whole = stream.window(t, n, clip)
        assert whole
        assert batch.action[j] == expected.action
        np.testing.assert_allclose(batch.reward[j], expected.reward, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(batch.discount[j], expected.discount, rtol=1e-6)
        np.testing.assert_array_equal(batch.next_observation[j], expected.next_observation)


ENDS = {"-": "no", "T": "terminated", "C": "truncated"}


def play(replay, script, n):
    """One environment after the other by a script such as "-- -T C-": a word for each tick."""
    stream, sources = Stream(), players(NUMBERS if isinstance(replay, UniformReplay) else FRAMES, n)
    for k, word in enumerate(script.split()):
        for env, end in enumerate(word):
            transition, ended = sources[env].step(ENDS[end], k % 3, float(10**k))
            replay.add(env, transition, ended)
            stream.add(env, transition, ended)
    return stream


@pytest.mark.parametrize(("kind", "space"), KINDS)
@pytest.mark.parametrize("end", ["T", "C"])
def test_one_environment_by_hand(kind, space, end):
    """Rewards 1, 10, 100, …; the third transition ends an episode; γ = 1/2, n = 3."""
    replay = kind(8, space, horizon=NStep(3))
    stream = play(replay, f"- - {end} - - - -", 1)
    assert len(replay) == 5  # of seven, the newest two are not sampled
    batch = everything(replay)
    after = [transition.next_observation for _, transition, _ in stream.added]
    cut = end == "C"
    expected = [
        (1 + 5 + 25, cut / 8, after[2]),
        (10 + 50, cut / 4, after[2]),
        (100, cut / 2, after[2]),  # no reward of the next episode
        (1e3 + 5e3 + 25e3, 1 / 8, after[5]),
        (1e4 + 5e4 + 25e4, 1 / 8, after[6]),
    ]
    for j, (reward, discount, observation) in enumerate(expected):
        assert (batch.reward[j], batch.discount[j]) == (reward, discount)
        np.testing.assert_array_equal(batch.next_observation[j], observation)
        np.testing.assert_array_equal(batch.observation[j], stream.added[j][1].observation)


@pytest.mark.parametrize(("kind", "space"), KINDS)
def test_two_environments_across_the_rings_head_by_hand(kind, space):
    """Environment 1 is cut at its third step."""
    replay = kind(6, space, horizon=NStep(2, 2))
    stream = play(replay, "-- -- -C -- --", 2)
    # tick:  0   1   2   3   4      ten transitions, 4, …, 9 are kept and 4, …, 7 sampled
    #        01  23  45  67  89
    assert len(replay) == 4
    batch = everything(replay)
    after = [transition.next_observation for _, transition, _ in stream.added]
    by_reward = {
        100.0: (1 / 2, after[5]),  # 5, which was cut: one step
        100 + 500.0: (1 / 4, after[6]),  # 4 is followed by 6
    }
    assert sorted(batch.reward) == [100, 600, 6_000, 6_000]
    for j in np.flatnonzero(batch.reward < 6_000):
        discount, observation = by_reward[float(batch.reward[j])]
        assert batch.discount[j] == discount
        np.testing.assert_array_equal(batch.next_observation[j], observation)
    assert_samples(batch, stream, range(4, 8), 2)


def test_each_reward_is_clipped_before_the_sum():
    replay = UniformReplay(8, NUMBERS, horizon=NStep(3, 1, reward_clip=20.0))
    play(replay, "- - - - -", 1)  # rewards 1, 10, 100, …
    assert everything(replay).reward.tolist() == [1 + 5 + 5, 10 + 10 + 5, 20 + 10 + 5]


ticks = st.lists(
    st.lists(
        st.tuples(
            st.sampled_from(["no"] * 5 + ["terminated", "truncated"]),
            st.integers(0, 5),
            st.floats(-3, 3, width=16),
        ),
        min_size=3,
        max_size=3,
    ),
    min_size=1,
    max_size=40,
)


def run(replays, space, ticks, n):
    """Environments in turn."""
    stream, sources = Stream(), players(space, n)
    for tick in ticks:
        for env, (end, action, reward) in enumerate(tick[:n]):
            transition, ended = sources[env].step(end, action, reward)
            for replay in replays:
                replay.add(env, transition, ended)
            stream.add(env, transition, ended)
            yield stream


@pytest.mark.parametrize(("kind", "space"), KINDS)
@settings(max_examples=80, deadline=None)
@given(
    n=st.integers(1, 5),
    num_envs=st.integers(1, 3),
    capacity=st.integers(1, 30),
    slack=st.integers(0, 5),
    clip=st.none() | st.just(1.0),
    ticks=ticks,
)
def test_n_steps_of_any_stream_are_those_of_a_slow_walk_through_it(
    kind, space, n, num_envs, capacity, slack, clip, ticks
):
    """n steps unless the episode ends before, whatever the head has overwritten."""
    if n == 1:
        num_envs, clip = 1, None  # the learner clips
    horizon = NStep(n, num_envs, clip)
    replay = kind(capacity, space, slack=slack, horizon=horizon)
    for k, stream in enumerate(run([replay], space, ticks, num_envs)):
        added = len(stream.added)
        kept = min(added, capacity) if kind is UniformReplay else added - replay._first
        assert len(replay) == max(0, kept - (n - 1) * num_envs)
        if len(replay) and (k % 11 == 0 or k > 3 * len(ticks) - 5):
            numbers = range(added - kept, added - (n - 1) * num_envs)
            assert_samples(everything(replay), stream, numbers, n, clip)


CAPACITY = 20


@functools.partial(jax.jit, static_argnums=3)
def drawn(ring, added, words, horizon):
    return device.sample(ring, added, words, NUMBERS, horizon)


HORIZONS = [NStep(), NStep(2, 1, 1.0), NStep(4), NStep(2, 2), NStep(3, 3, 1.0)]


@settings(max_examples=40, deadline=None)
@given(horizon=st.sampled_from(HORIZONS), ticks=ticks)
def test_the_compiled_ring_gives_the_same_as_the_hosts_and_as_a_slow_walk(horizon, ticks):
    n, num_envs, _ = horizon
    host = UniformReplay(CAPACITY, NUMBERS, horizon=horizon)
    ring = Transition(*(np.array(part) for part in device.empty(CAPACITY, NUMBERS)))
    for stream in run([host], NUMBERS, ticks, num_envs):
        _, new, ended = stream.added[-1]
        new = new._replace(discount=np.float32(-new.discount if ended else new.discount))
        for array, part in zip(ring, new):
            array[(len(stream.added) - 1) % CAPACITY] = part
    added, held = len(stream.added), len(host)
    if not held:
        return
    words = np.random.default_rng(added).integers(2**32, size=2 * CAPACITY, dtype=np.uint32)
    for a, b in zip(drawn(ring, added, words, horizon), host.sample(words)):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)
    every = np.arange(2 * CAPACITY, dtype=np.uint32)
    batch = Transition(*(np.asarray(a)[:held] for a in drawn(ring, added, every, horizon)))
    numbers = range(max(0, added - CAPACITY), added - (n - 1) * num_envs)
    assert_samples(batch, stream, numbers, n, horizon.reward_clip)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    kind=st.sampled_from(KINDS),
    n=st.integers(2, 4),
    num_envs=st.integers(1, 3),
    before=ticks,
    back=st.integers(0, 3),
    after=ticks,
)
def test_files_taken_back_to_a_moment_go_on_with_the_same_windows(
    tmp_path, kind, n, num_envs, before, back, after
):
    """What was added after the snapshot, with links to transitions before it, is forgotten."""
    kind, space = kind
    about = {"slack": 20, "horizon": NStep(n, num_envs)}
    whole, broken = kind(15, space, **about), kind(15, space, directory=tmp_path, **about)
    stream, sources = Stream(), players(space, num_envs)

    def take(replays, ticks):
        for tick in ticks:
            for env, (end, action, reward) in enumerate(tick[:num_envs]):
                transition, ended = sources[env].step(end, action, reward)
                for replay in replays:
                    replay.add(env, transition, ended)
                stream.add(env, transition, ended)

    take([whole, broken], before)
    snapshot = json.loads(json.dumps(broken.snapshot()))
    kept = [vars(player).copy() for player in sources]
    length = len(stream.added)
    take([broken], after[:back])
    for player, attributes in zip(sources, kept):  # the environments are taken back, too
        vars(player).update(attributes)
    del stream.added[length:], broken
    again = kind(15, space, directory=tmp_path, new=False, **about)
    again.restore(snapshot)
    for more in ([], after):
        take([whole, again], more)
        assert len(whole) == len(again)
        if len(whole):
            for a, b in zip(everything(whole), everything(again)):
                np.testing.assert_array_equal(a, b)
