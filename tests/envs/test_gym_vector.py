"""Episode ends, in every autoreset mode."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from hypothesis import given, settings
from hypothesis import strategies as st

from momentum_rl.envs.gym_vector import GymnasiumVector, make_gymnasium, spaces_of
from momentum_rl.errors import UserError
from momentum_rl.spaces import Box, ObservationSpace, Spaces
from tests.training.diagnostics import Scripted, scripted, vector


def transitions(environment, ticks):
    """The transitions of each environment: (s, r, terminated, truncated, s')."""
    n = environment.num_envs
    seen = [[] for _ in range(n)]
    observation = environment.reset(list(range(n)))
    for _ in range(ticks):
        outcome = environment.step(np.zeros(n, int))
        for i in range(n):
            seen[i].append(
                (
                    tuple(observation[i]),
                    outcome.reward[i],
                    bool(outcome.terminated[i]),
                    bool(outcome.truncated[i]),
                    tuple(outcome.next_observation[i]),
                )
            )
        observation = outcome.observation
    return seen


def by_hand(number, count):
    """The same from the environment itself, without any vector."""
    env, result = Scripted(number), []
    observation, _ = env.reset()
    while len(result) < count:
        after, reward, terminated, truncated, _ = env.step(5)
        result.append((tuple(observation), reward, terminated, truncated, tuple(after)))
        observation = env.reset()[0] if terminated or truncated else after
    return result


@settings(max_examples=15, deadline=None)
@given(n=st.integers(1, 4), ticks=st.integers(1, 40))
def test_it_gives_the_transitions_of_the_bare_environment(n, ticks):
    for number, seen in enumerate(transitions(scripted(n), ticks)):
        assert seen == by_hand(number, len(seen))
        # No transition crosses episodes: s and s' are of one episode and one step apart.
        assert all(s[1] == s2[1] and s[2] + 1 == s2[2] for s, _, _, _, s2 in seen)


def test_the_number_of_transitions_is_the_sum_of_the_episodes_lengths():
    for seen in transitions(scripted(3), 60):
        ends = [
            i for i, (_, _, terminated, truncated, _) in enumerate(seen) if terminated or truncated
        ]
        lengths = [seen[i][4][2] for i in ends]
        assert sum(lengths) == ends[-1] + 1
        assert len(ends) > 5


def test_a_truncated_steps_next_observation_is_the_final_one_not_the_resets():
    for seen in transitions(scripted(2), 40):
        cuts = [(s, s2) for s, _, _, truncated, s2 in seen if truncated]
        assert cuts
        assert all(s2[2] == s[2] + 1 for s, s2 in cuts)


def test_environments_in_processes_of_their_own_give_the_same():
    makers = [lambda i=i: Scripted(i) for i in range(2)]
    mode = AutoresetMode.DISABLED
    environment = GymnasiumVector(AsyncVectorEnv(makers, autoreset_mode=mode, context="spawn"))
    try:
        for number, seen in enumerate(transitions(environment, 25)):
            assert seen == by_hand(number, len(seen))
    finally:
        environment.close()


def test_observations_handed_out_are_never_written_to_again():
    environment = make_gymnasium("CartPole-v1", 2)
    first = environment.reset([1, 2])
    kept = first.copy()
    for _ in range(5):
        environment.step(np.zeros(2, int))
    np.testing.assert_array_equal(first, kept)


def test_each_environment_has_its_own_seed_and_seed_zero_works():
    environment = make_gymnasium("CartPole-v1", 3)
    a, b = environment.reset([0, 0, 1]), environment.reset([0, 0, 1])
    np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(a[0], a[1])
    assert not np.array_equal(a[0], a[2])
    np.testing.assert_array_equal(a[0], gym.make("CartPole-v1").reset(seed=0)[0])


@pytest.mark.parametrize("mode", [None, AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_a_vector_that_resets_itself_is_one_clear_line(mode):
    env = SyncVectorEnv([lambda: Scripted(0)])
    env.metadata["autoreset_mode"] = mode
    with pytest.raises(UserError, match=r"autoreset_mode .*, expected AutoresetMode\.DISABLED"):
        GymnasiumVector(env)


def test_spaces_become_plain_data():
    box, discrete = gym.spaces.Box, gym.spaces.Discrete
    assert spaces_of(box(0, 255, (4, 84, 84), np.uint8), discrete(6), "x") == Spaces(
        ObservationSpace((4, 84, 84), "uint8"), 6
    )
    assert spaces_of(discrete(16, start=2), discrete(4, start=1), "x") == Spaces(
        ObservationSpace((), "int64", 16, 2), 4, 1
    )
    assert spaces_of(gym.spaces.MultiBinary(7), discrete(2), "x").observation == ObservationSpace(
        (7,), "int8"
    )
    arm = box(np.array([[-1.0, 0.0]]), np.array([[2.0, 0.5]]), dtype=np.float64)
    assert spaces_of(box(0, 1, (2,)), arm, "x").actions == Box(
        (-1.0, 0.0), (2.0, 0.5), (1, 2), "float64"
    )


class Arm(gym.Env):
    """Sees the action that reached it, a matrix; its episodes have four steps."""

    observation_space = gym.spaces.Box(-9, 9, (4,), np.float64)
    action_space = gym.spaces.Box(np.float32([[-2.0], [0.0]]), np.float32([[2.0], [1.0]]))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t, self.drift = 0, self.np_random.normal()
        return np.array([0, 0, 0, self.drift]), {}

    def step(self, action):
        assert action.shape == (2, 1)
        assert self.action_space.contains(action)
        self.t += 1
        seen = np.array([*action.ravel(), self.t, self.drift])
        return seen, float(action.sum()), False, self.t == 4, {}


def arms(n):
    return vector([Arm] * n)


def test_actions_in_the_unit_box_reach_the_environment_rescaled_and_shaped():
    environment = arms(2)
    environment.reset([0, 1])
    outcome = environment.step(np.array([[-1, 1], [0.5, -0.5]], np.float32))
    np.testing.assert_allclose(outcome.next_observation[:, :2], [[-2, 1], [1, 0.25]])
    np.testing.assert_allclose(outcome.reward, [-1, 1.25])
    beyond = environment.step(np.array([[3, -3], [0, 0]], np.float32))
    np.testing.assert_allclose(beyond.next_observation[0, :2], [2, 0])
    for _ in range(3):
        outcome = environment.step(np.zeros((2, 2), np.float32))
    assert outcome.observation.shape == (2, 4)


@pytest.mark.parametrize("steps", [0, 3, 4, 9])
def test_environments_with_a_box_of_actions_are_restored_in_mid_episode(steps):
    rng = np.random.default_rng(0)
    one, other = arms(2), arms(2)
    now = one.reset([5, 6])
    for _ in range(steps):
        now = one.step(rng.uniform(-1, 1, (2, 2)).astype(np.float32)).observation
    np.testing.assert_array_equal(other.restore(one.snapshot()), now)
    actions = rng.uniform(-1, 1, (2, 2)).astype(np.float32)
    for ours, theirs in zip(one.step(actions), other.step(actions)):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("observation", "action", "problem"),
    [
        (gym.spaces.Box(0, 1, (2,)), gym.spaces.Box(0, np.inf, (2,)), "unbounded Box actions"),
        (gym.spaces.Box(0, 1, (2,)), gym.spaces.Box(0, 9, (2,), int), "integer Box actions"),
        (gym.spaces.Dict(a=gym.spaces.Discrete(2)), gym.spaces.Discrete(2), "Dict observations"),
        (gym.spaces.Text(4), gym.spaces.Discrete(2), "Text observations"),
        (gym.spaces.Box(0, 1, (2,)), gym.spaces.MultiDiscrete([2, 2]), "MultiDiscrete actions"),
    ],
)
def test_unsupported_spaces_are_one_line_that_says_what_is_supported(observation, action, problem):
    with pytest.raises(UserError) as error:
        spaces_of(observation, action, "Some-v0")
    assert problem in str(error.value)
    assert "supported are Box, Discrete and MultiBinary observations" in str(error.value)
    assert "\n" not in str(error.value)


def test_an_unknown_environment_is_one_line():
    with pytest.raises(UserError, match=r"NoSuchEnv-v3") as error:
        make_gymnasium("NoSuchEnv-v3")
    assert "\n" not in str(error.value)


def test_gymnasiums_warnings_are_given_once_and_without_colours():
    with pytest.warns(DeprecationWarning, match="out of date") as caught:
        make_gymnasium("CartPole-v0").close()
    lines = [str(one.message) for one in caught]
    assert len(lines) == 1
    assert "\x1b" not in lines[0]
