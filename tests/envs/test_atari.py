"""Atari by the paper's protocol, against Gymnasium's wrappers and the emulator itself."""

import sys

import gymnasium as gym
import numpy as np
import pytest

ale_py = pytest.importorskip("ale_py")

from momentum_rl.envs.atari import (  # noqa: E402
    EPISODE_STEPS,
    AtariScreen,
    emulator_seeds,
    make_atari,
    vector_env,
)
from momentum_rl.envs.make import make_environment  # noqa: E402
from momentum_rl.errors import UserError  # noqa: E402
from momentum_rl.spaces import (  # noqa: E402
    ObservationSpace,
    Spaces,
    is_atari,
)
from tests.report.synthetic_runs import GAMES  # noqa: E402

CERTAIN = {"repeat_action_probability": 0.0}
gym.register_envs(ale_py)


def by_wrappers(env_id, seed, **settings):
    """The same preprocessing from Gymnasium's parts: AtariPreprocessing and a frame stack."""
    pytest.importorskip("cv2")
    env = gym.make(env_id, frameskip=1, repeat_action_probability=0.0, **settings)
    env = gym.wrappers.AtariPreprocessing(
        env, noop_max=0, frame_skip=4, screen_size=84, terminal_on_life_loss=False
    )
    env = gym.wrappers.FrameStackObservation(env, 4, padding_type="zero")
    return env, env.reset(seed=seed)[0]


@pytest.mark.parametrize(
    ("game", "steps"), [("Pong", 400), ("Breakout", 800), ("Seaquest", 500), ("MsPacman", 400)]
)
def test_observations_equal_those_of_gymnasiums_wrappers_frame_by_frame(game, steps):
    env_id = f"ALE/{game}-v5"
    environment = make_atari(env_id, **CERTAIN)
    reference, expected = by_wrappers(env_id, 3)
    np.testing.assert_array_equal(environment.reset([3])[0], expected)
    actions = np.random.default_rng(0).integers(environment.spaces.actions, size=steps)
    ends = changes = 0
    for action in actions:
        outcome = environment.step(np.array([action]))
        expected, reward, terminated, truncated, _ = reference.step(action)
        assert outcome.reward[0] == reward
        assert (outcome.terminated[0], outcome.truncated[0]) == (terminated, truncated)
        changes += bool((outcome.next_observation[0, -1] != outcome.next_observation[0, -2]).any())
        # All frames but the newest, always; the newest too, unless the game ended within the step:
        # then the vector environment does not grab the last frames (and a terminal s' is not used).
        np.testing.assert_array_equal(outcome.next_observation[0, :-1], expected[:-1])
        if not terminated:
            np.testing.assert_array_equal(outcome.next_observation[0, -1], expected[-1])
        else:
            ends += 1
            expected = reference.reset()[0]
        np.testing.assert_array_equal(outcome.observation[0], expected)
    assert changes > steps // 4
    if game == "Breakout":
        assert ends >= 2
    environment.close()
    reference.close()


def test_the_documented_difference_at_an_episodes_end_the_last_frame():
    """At the time limit ours has the final frames; the emulator's and Gymnasium's limits do not.

    (All leave them out where a game ends by itself; that s' is terminal and no target reads it.)
    """
    limit = {"max_num_frames_per_episode": 4 * 80}
    cut = make_atari("ALE/Pong-v5", episode_steps=80, **CERTAIN)
    emulators = make_atari("ALE/Pong-v5", **CERTAIN, **limit)
    uncut = make_atari("ALE/Pong-v5", **CERTAIN)
    wrapped, expected = by_wrappers("ALE/Pong-v5", 0, **limit)
    for environment in (cut, uncut, emulators):
        environment.reset([0])
    for k in range(1, 81):
        ours, whole, theirs = (e.step(np.array([2])) for e in (cut, uncut, emulators))
        expected, _, terminated, truncated, _ = wrapped.step(2)
        assert (bool(ours.truncated[0]), terminated, truncated) == (k == 80, False, k == 80)
        np.testing.assert_array_equal(ours.next_observation, whole.next_observation)
        if k < 80:
            np.testing.assert_array_equal(ours.next_observation[0], expected)
    assert theirs.truncated[0]
    assert (ours.next_observation[0, -1] != theirs.next_observation[0, -1]).any()
    assert (ours.next_observation[0, -1] != expected[-1]).any()


def test_a_game_starts_with_zeros_before_its_first_frame_and_the_newest_frame_is_last():
    environment = make_atari("ALE/Seaquest-v5", 2)
    first = environment.reset([0, 1])
    assert first.shape == (2, 4, 84, 84)
    assert first.dtype == np.uint8
    np.testing.assert_array_equal(first[:, :3], 0)
    assert first[:, 3].any(axis=(1, 2)).all()
    after = environment.step(np.zeros(2, int)).next_observation
    np.testing.assert_array_equal(after[:, 2], first[:, 3])


def test_the_emulator_advances_four_frames_per_step():
    env = vector_env("ALE/Pong-v5", 1)
    env.reset(seed=np.array([0]))
    numbers = [int(env.step(np.array([k % 6]))[4]["frame_number"][0]) for k in range(200)]
    assert numbers == list(range(4, 804, 4))


@pytest.mark.parametrize("n", [1, 3])
def test_a_game_is_cut_after_its_last_step_and_that_is_a_truncation(n):
    """As the limit of 27,000 steps, with fewer."""
    long = make_atari("ALE/Pong-v5", n, **CERTAIN)
    assert long._limit == EPISODE_STEPS == 27_000
    short = make_atari("ALE/Pong-v5", n, episode_steps=50, **CERTAIN)
    seeds = list(range(n))
    np.testing.assert_array_equal(short.reset(seeds), long.reset(seeds))
    for k in range(1, 51):
        a, b = (e.step(np.full(n, k % 6)) for e in (short, long))
        np.testing.assert_array_equal(a.next_observation, b.next_observation)  # the final one too
        assert not a.terminated.any()
        np.testing.assert_array_equal(a.truncated, k == 50)
    np.testing.assert_array_equal(a.observation[:, :3], 0)
    assert a.observation[:, 3].any(axis=(1, 2)).all()
    cuts = np.zeros(n, int)
    for _ in range(120):
        outcome = short.step(np.zeros(n, int))
        cuts += outcome.truncated
    assert (cuts == 2).all()


def test_games_that_end_and_games_that_are_cut_side_by_side():
    """Three games of Breakout with a limit that some reach: every transition is of one game."""
    n, limit = 3, 200
    environment = make_atari("ALE/Breakout-v5", n, episode_steps=limit)
    rng, observation = np.random.default_rng(0), environment.reset([0, 1, 2])
    length, ends, cuts = np.zeros(n, int), 0, 0
    for _ in range(700):
        outcome = environment.step(rng.integers(4, size=n))
        for i in range(n):
            length[i] += 1
            np.testing.assert_array_equal(outcome.next_observation[i, :3], observation[i, 1:])
            assert outcome.truncated[i] == (length[i] == limit and not outcome.terminated[i])
            if outcome.terminated[i] or outcome.truncated[i]:
                ends, cuts = ends + outcome.terminated[i], cuts + outcome.truncated[i]
                length[i] = 0
        observation = outcome.observation
    assert ends > 1
    assert cuts > 1


def test_a_lost_life_is_not_an_end():
    env = vector_env("ALE/Breakout-v5", 1)
    _, info = env.reset(seed=np.array([0]))
    rng, lives, ends = np.random.default_rng(0), [int(info["lives"][0])], []
    while not ends or not ends[-1]:
        *_, terminated, truncated, info = env.step(rng.integers(4, size=1))
        lives.append(int(info["lives"][0]))
        ends.append(bool(terminated[0]))
        assert not truncated[0]
    assert set(lives) == {5, 4, 3, 2, 1, 0}
    assert ends.count(True) == 1


def repetitions(observations, actions, ale):
    """How many frames of each step still took the action before, from what was seen.

    A second emulator without stickiness tries every possibility from the states that explain all
    observations so far: frame by frame the action before, j times, then the new one.
    """
    import cv2

    explanations = [(ale.cloneState(), (), ale_py.Action.NOOP)]
    for observation, action in zip(observations, actions):
        kept = {}
        for state, counts, before in explanations:
            for j in range(5):
                ale.restoreState(state)
                for k in range(4):
                    ale.act(before if k < j else action)
                    if k == 2:
                        previous = ale.getScreenGrayscale()
                seen = np.maximum(previous, ale.getScreenGrayscale())
                seen = cv2.resize(seen, (84, 84), interpolation=cv2.INTER_AREA)
                if (seen == observation).all():
                    last = before if j == 4 else action
                    key = ale.getRAM().tobytes(), last
                    kept.setdefault(key, (ale.cloneState(), (*counts, j), last))
        assert kept, "no sequence of actions explains what was seen"
        explanations = list(kept.values())
    return np.array(explanations[0][1])


def test_actions_stick_in_a_quarter_of_the_frames_and_frame_by_frame():
    """Freeway's chicken, told to go up and down in turn, shows what each frame did."""
    pytest.importorskip("cv2")
    steps = 400
    environment = make_atari("ALE/Freeway-v5")
    environment.reset([5])
    numbers = np.array([1, 2] * (steps // 2))
    seen = [environment.step(np.array([a])).next_observation[0, -1] for a in numbers]
    ale = ale_py.ALEInterface()
    ale.setFloat("repeat_action_probability", 0.0)
    ale.setInt("random_seed", 5)
    ale.loadROM(ale_py.roms.get_rom_path("freeway"))
    ale.reset_game()
    counts = repetitions(seen, [ale.getMinimalActionSet()[a] for a in numbers], ale)
    # Every frame until the new action is taken is a throw of the coin; per step it would be 0 or 4.
    repeated, thrown = counts.sum(), (np.minimum(counts, 3) + 1).sum()
    assert abs(repeated / thrown - 0.25) < 4 * np.sqrt(0.25 * 0.75 / thrown)
    # Expected shares: 0.25 · 0.75 = 0.19 of the steps repeat one frame, 0.25⁴ = 0.004 all four.
    assert 0.11 < (counts == 1).mean() < 0.27
    assert (counts == 4).mean() < 0.03


def rollout(environment, seeds, steps=60):
    n = environment.num_envs
    rng = np.random.default_rng(0)
    seen = [environment.reset(seeds)]
    for _ in range(steps):
        outcome = environment.step(np.full(n, rng.integers(environment.spaces.actions)))
        seen.append(outcome.observation)
    return np.array(seen)


@pytest.mark.parametrize("seed", [0, 1, 2**31, 2**32 - 1])
def test_the_same_seed_gives_the_same_game_whatever_the_seed(seed):
    environments = [make_atari("ALE/Breakout-v5") for _ in range(2)]
    a, b = (rollout(e, [seed]) for e in environments)
    np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(rollout(environments[0], [seed]), a)


def test_environments_have_their_own_seeds_and_do_not_depend_on_their_number():
    three = rollout(make_atari("ALE/Breakout-v5", 3), [4, 5, 4])
    np.testing.assert_array_equal(three[:, 0], three[:, 2])
    assert (three[:, 0] != three[:, 1]).any()
    one = rollout(make_atari("ALE/Breakout-v5"), [5])
    np.testing.assert_array_equal(three[:, 1], one[:, 0])


def test_the_games_of_one_run_differ_in_where_actions_stick():
    """A reset goes on in the emulator's random numbers; it does not start them again."""
    environment = make_atari("ALE/Pong-v5", episode_steps=100)
    environment.reset([0])
    games = []
    for _ in range(3):
        games.append([environment.step(np.array([2 + k // 5 % 2])) for k in range(100)])
    frames = [np.array([o.next_observation[0, -1] for o in game]) for game in games]
    assert (frames[0] != frames[1]).any()
    assert (frames[1] != frames[2]).any()


def test_the_twenty_games_have_their_minimal_actions():
    sizes = {}
    for game in GAMES:
        environment = make_environment(f"ALE/{game}-v5")
        assert environment.spaces.observation == ObservationSpace((4, 84, 84), "uint8")
        sizes[game] = environment.spaces.actions
        environment.close()
    assert len(sizes) == 20
    assert (sizes["Pong"], sizes["Breakout"], sizes["Asterix"], sizes["Seaquest"]) == (6, 4, 9, 18)
    assert make_environment("ALE/Pong-v5").spaces == Spaces(
        ObservationSpace((4, 84, 84), "uint8"), 6
    )


def test_the_screen_for_videos_plays_the_game_that_the_agent_sees():
    screen = AtariScreen("ALE/Breakout-v5")
    environment = make_atari("ALE/Breakout-v5")
    np.testing.assert_array_equal(screen.reset(seed=9)[0], environment.reset([9])[0])
    assert screen.render().shape == (210, 160, 3)
    assert len(np.unique(screen.render().reshape(-1, 3), axis=0)) > 5  # in colour
    before = screen.render()
    for k in range(50):
        observation, reward, *_ = screen.step(k % 4)
        outcome = environment.step(np.array([k % 4]))
        np.testing.assert_array_equal(observation, outcome.next_observation[0])
        assert reward == outcome.reward[0]
    assert (screen.render() != before).any()
    screen.close()


def test_an_unknown_game_and_a_missing_ale_py_are_one_clear_line(monkeypatch):
    assert is_atari("ALE/Pong-v5")
    with pytest.raises(UserError, match="Pong-v5") as error:
        make_environment("ALE/Pomg-v5")
    assert "\n" not in str(error.value)
    monkeypatch.setitem(sys.modules, "ale_py", None)
    with pytest.raises(
        UserError, match=r"needs the extra `atari`: pip install 'momentum-rl\[atari\]'"
    ):
        make_environment("ALE/Pong-v5")


def test_seeds_are_never_negative_to_the_emulator():
    np.testing.assert_array_equal(emulator_seeds([0, 2**31, 2**32 - 1]), [0, 0, 2**31 - 1])
