"""MinAtar's screen: the authors' colours, and the same game as in evaluation."""

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from momentum_rl.envs.gym_vector import spaces_of
from momentum_rl.envs.gymnax_env import CELL, make_gymnax, palette, picture
from momentum_rl.envs.jax_env import HostedEnvironment
from momentum_rl.envs.make import make_visible
from momentum_rl.errors import UserError


@pytest.mark.parametrize("channels", [4, 6, 7, 10])  # of Breakout and Asterix up to Seaquest
def test_the_colours_are_those_of_the_authors_palette(channels):
    seaborn = pytest.importorskip("seaborn")
    theirs = np.array(seaborn.color_palette("cubehelix", channels))
    np.testing.assert_allclose(palette(channels)[1:] / 255, theirs, atol=0.5 / 255 + 1e-9)
    assert palette(channels)[0].tolist() == [0, 0, 0]


def test_a_cell_has_the_colour_of_its_highest_channel():
    observation = np.zeros((10, 10, 4), bool)
    observation[2, 3, 0] = observation[2, 4, 3] = True
    observation[5, 5, 1] = observation[5, 5, 2] = True
    image = picture(observation)
    assert image.shape == (10 * CELL, 10 * CELL, 3)
    colours = palette(4)
    for row, column, index in ((0, 0, 0), (2, 3, 1), (2, 4, 4), (5, 5, 3)):
        cell = image[row * CELL : (row + 1) * CELL, column * CELL : (column + 1) * CELL]
        assert (cell == colours[index]).all(), (row, column)


def test_the_game_that_is_seen_is_the_game_that_is_evaluated():
    seen = make_visible("MinAtar/Breakout")
    played = HostedEnvironment(make_gymnax("MinAtar/Breakout"))
    assert spaces_of(seen.observation_space, seen.action_space, "a game") == played.spaces
    observation, _ = seen.reset(seed=3)
    np.testing.assert_array_equal(observation, played.reset([3])[0])
    for action in [1, 3, 0, 3, 3, 1] * 10:
        observation, reward, terminated, truncated, _ = seen.step(action)
        outcome = played.step(np.array([action]))
        np.testing.assert_array_equal(observation, outcome.next_observation[0])
        assert (reward, terminated, truncated) == (
            outcome.reward[0],
            outcome.terminated[0],
            outcome.truncated[0],
        )
        np.testing.assert_array_equal(seen.render(), picture(observation))
        if terminated:
            break
    assert terminated  # the last picture is of the state in which the game was lost


def test_what_has_no_picture_is_refused():
    with pytest.raises(UserError, match="gymnax/CartPole-v1 has no picture"):
        make_visible("gymnax/CartPole-v1")


@pytest.mark.filterwarnings("ignore:.*not having a spec")
@pytest.mark.parametrize("env_id", ["MinAtar/Breakout", "ALE/Pong-v5"])
def test_a_viewer_is_an_environment_as_gymnasium_wants_them(env_id):
    env = make_visible(env_id)
    check_env(env)
    env.close()


def test_a_reset_without_a_seed_starts_any_game_and_after_a_seed_the_same_ones():
    def firsts(seed):
        env = make_visible("MinAtar/Asterix")
        seen = [env.reset(seed=seed)[0]] if seed is not None else []
        for _ in range(8):
            env.reset()
            seen += [env.step(0)[0] for _ in range(30)]  # until something enters the screen
        return np.array(seen)

    np.testing.assert_array_equal(firsts(3), firsts(3))
    games = firsts(None).reshape(8, 30, 10, 10, 4)
    assert len({game.tobytes() for game in games}) > 1
    assert not np.array_equal(games, firsts(None).reshape(games.shape))
