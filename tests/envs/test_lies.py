"""Environments that lie: each lie is one line that names environment, step and value, or harmless.

What is harmless trains as the truth does, bit for bit.
"""

import re

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from momentum_rl.envs.gym_vector import GymnasiumVector
from momentum_rl.envs.jax_env import JaxEnvironment, JaxOutcome
from momentum_rl.errors import UserError
from momentum_rl.runs.config import Config
from momentum_rl.spaces import ObservationSpace, Outcome, Spaces
from momentum_rl.training.train import Watcher, train, train_seeds

AT = 47  # the step of the lie, in mid-episode
LENGTH = 10
FIELDS = {
    "steps": 100,
    "iteration_steps": 50,
    "checkpoint_every": 0,
    "learning_starts": 20,
    "replay_capacity": 60,
    "batch_size": 8,
    "hidden": (4,),
    "final_episodes": 0,
}
FLOATS = gym.spaces.Box(-1, 1, (3,), np.float32)
PIXELS = gym.spaces.Box(0, 255, (3,), np.uint8)
ROOMS = gym.spaces.Discrete(4, start=2)
TRUTH = {"floats": np.full(3, 0.5, np.float32), "pixels": np.full(3, 7, np.uint8), "rooms": 3}
SPACES = {"floats": FLOATS, "pixels": PIXELS, "rooms": ROOMS}


class Liar(gym.Env):
    """Episodes of ten steps, and in one step something else than what it declares."""

    action_space = gym.spaces.Discrete(2)

    def __init__(self, seen, part=None, lie=None):
        self.observation_space, self.truth = SPACES[seen], TRUTH[seen]
        self.part, self.lie, self.steps, self.time = part, lie, 0, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        whole = self.part == "reset" and self.steps >= AT
        return self.lie if whole else (self.truth, {})

    def step(self, action):
        self.steps, self.time = self.steps + 1, self.time + 1
        parts = [self.truth, 1.0, self.time == LENGTH, False, {}]
        if self.steps == AT and isinstance(self.part, int):
            parts[self.part] = self.lie
        return self.lie if (self.steps, self.part) == (AT, "outcome") else tuple(parts)


OBSERVATION, REWARD, TERMINATED, TRUNCATED, INFO = range(5)
NAN, INF = float("nan"), float("inf")
SHORT = np.zeros(3, np.float32)

LIES = [
    ("floats", OBSERVATION, np.array([0, NAN, 0], np.float32), "observation nan"),
    ("floats", OBSERVATION, np.array([0, INF, 0], np.float32), "observation inf"),
    ("floats", OBSERVATION, np.array([0, 0, 1e300]), "observation 1e+300"),
    ("floats", OBSERVATION, None, "observation None"),
    ("floats", OBSERVATION, "abc", "observation abc"),
    ("floats", OBSERVATION, {"x": 1}, "observation {'x': 1}"),
    ("floats", OBSERVATION, np.array([1j, 0, 0]), "observation 1j"),
    ("floats", OBSERVATION, np.zeros(2, np.float32), "observation of shape (2,), expected (3,)"),
    ("floats", OBSERVATION, np.zeros(1, np.float32), "observation of shape (1,), expected (3,)"),
    ("floats", OBSERVATION, np.zeros((1, 3)), "observation of shape (1, 3), expected (3,)"),
    ("floats", OBSERVATION, 0.5, "observation of shape (), expected (3,)"),
    ("floats", OBSERVATION, [[1], [1, 2], 3], "observation [[[1], [1, 2], 3]]"),
    ("pixels", OBSERVATION, None, "observation None, expected a uint8 number"),
    ("pixels", OBSERVATION, np.array([0, 300, 0]), "observation 300, expected a uint8 number"),
    ("pixels", OBSERVATION, np.array([0, 0, -1]), "observation -1, expected a uint8 number"),
    ("pixels", OBSERVATION, np.array([0.1, 0.2, 1]), "observation 0.1, expected a uint8 number"),
    ("rooms", OBSERVATION, 6, "observation 6, expected a category in 2..5"),
    ("rooms", OBSERVATION, 1, "observation 1, expected a category in 2..5"),
    ("rooms", OBSERVATION, 2.5, "observation 2.5, expected a category in 2..5"),
    ("rooms", OBSERVATION, None, "observation None, expected a category in 2..5"),
    ("rooms", OBSERVATION, np.array([3]), "observation of shape (1,), expected ()"),
    ("floats", REWARD, NAN, "reward nan"),
    ("floats", REWARD, INF, "reward inf"),
    ("floats", REWARD, -1e39, "reward -1e+39, expected a finite float32 number"),
    ("floats", REWARD, None, "reward None"),
    ("floats", REWARD, "1", "reward '1'"),
    ("floats", REWARD, 1j, "reward 1j"),
    ("floats", REWARD, np.array([1.0, 2.0]), "reward array([1., 2.])"),
    ("floats", TERMINATED, None, "terminated None"),
    ("floats", TERMINATED, NAN, "terminated nan"),
    ("floats", TERMINATED, "no", "terminated 'no'"),
    ("floats", TRUNCATED, np.array([True, False]), "truncated array([ True, False])"),
    ("floats", INFO, None, "None), expected 5 parts, the last a dictionary"),
    ("floats", "outcome", (TRUTH["floats"], 0.0, False, {}), "expected 5 parts"),
    ("floats", "outcome", None, "None, expected 5 parts"),
]
FIRST = 50  # the episode after the lie begins there
LIES_AT_A_RESET = [
    ("floats", "reset", (np.full(3, NAN), {}), "observation nan"),
    ("floats", "reset", TRUTH["floats"], "expected 2 parts, the last a dictionary"),
    ("rooms", "reset", (9, {}), "observation 9, expected a category in 2..5"),
]
HARMLESS = [
    ("floats", OBSERVATION, np.full(3, 0.5)),
    ("floats", OBSERVATION, [0.5, 0.5, 0.5]),
    ("pixels", OBSERVATION, np.full(3, 7, np.int64)),
    ("rooms", OBSERVATION, np.int8(3)),
    ("floats", REWARD, True),
    ("floats", REWARD, np.array(1.0)),
    ("floats", TERMINATED, 0),
    ("floats", TRUNCATED, np.False_),
]


def trained(seen, part=None, lie=None, **fields):
    """A run on an environment that is registered by an id."""
    gym.register("Liar-v0", entry_point=lambda: Liar(seen, part, lie))
    config = Config("dqn", "Liar-v0", **{**FIELDS, **fields})
    try:
        return train(config, watcher=Watcher())
    finally:
        del gym.registry["Liar-v0"]


@pytest.mark.filterwarnings("ignore")  # Gymnasium's own, of the first step
@pytest.mark.parametrize(
    ("seen", "part", "lie", "says", "step"),
    [*((*lie, AT) for lie in LIES), *((*lie, FIRST) for lie in LIES_AT_A_RESET)],
    ids=lambda value: str(value)[:40],
)
def test_a_lie_is_one_line_that_names_environment_step_and_value(seen, part, lie, says, step):
    with pytest.raises(UserError, match=re.escape(says)) as error:
        trained(seen, part, lie)
    assert str(error.value).startswith(f"env: Liar-v0, step {step}: ")
    assert "expected" in str(error.value)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("seen", "part", "lie"), HARMLESS, ids=str)
def test_what_is_harmless_trains_as_the_truth_does(seen, part, lie):
    lied, honest = trained(seen, part, lie), trained(seen)
    assert lied.metrics == honest.metrics
    assert lied.status == "finished"
    assert lied.metrics[-1]["updates"] == 40
    same = jax.tree.map(np.array_equal, lied.agent.params, honest.agent.params)
    assert all(jax.tree.leaves(same))


def test_an_infinite_reward_is_learned_from_where_rewards_are_clipped_but_nan_is_not():
    run = trained("floats", REWARD, INF, reward_clip=1.0)
    assert run.metrics[0]["largest_reward"] is None  # not finite
    run_of_ones = trained("floats", reward_clip=1.0)
    same = jax.tree.map(np.array_equal, run.agent.params, run_of_ones.agent.params)
    assert all(jax.tree.leaves(same))
    with pytest.raises(UserError, match=f"env: Liar-v0, step {AT}: reward nan"):
        trained("floats", REWARD, NAN, reward_clip=1.0)


@pytest.mark.parametrize(
    ("seen", "part", "lie", "says"),
    [
        ("floats", OBSERVATION, np.full(3, NAN, np.float32), "observation nan, expected a finite"),
        ("rooms", OBSERVATION, 7, "observation 7, expected a category in 2..5"),
        ("floats", REWARD, None, "reward nan, expected a finite float32 number"),
    ],
)
def test_a_vector_of_ones_own_is_looked_at_too(seen, part, lie, says):
    """Two environments in turn: the second one's step 47 is agent step 94."""
    honest, liar = (lambda: Liar(seen)), (lambda: Liar(seen, part, lie))
    vector = SyncVectorEnv([honest, liar], autoreset_mode=AutoresetMode.DISABLED)
    config = Config("dqn", "mine", num_envs=2, **FIELDS)
    with pytest.raises(UserError, match=re.escape(f"env: mine, step {2 * AT}: {says}")):
        train(config, environment=GymnasiumVector(vector), watcher=Watcher())


class Corridor:
    """An ``Environment`` of one's own, which knows nothing of Gymnasium."""

    spaces, num_envs = Spaces(ObservationSpace((1,), "float32"), 2), 1

    def __init__(self, first=0.0, then=0.0):
        self.first, self.then = first, then

    def reset(self, seeds):
        return np.array([[self.first]], np.float32)

    def step(self, actions):
        seen, no = np.array([[self.then]], np.float32), np.zeros(1, bool)
        return Outcome(seen, seen, np.ones(1), no, no)

    def close(self):
        pass


@pytest.mark.parametrize(("step", "lie"), [(0, {"first": NAN}), (1, {"then": -INF})])
def test_an_environment_that_is_not_gymnasiums_is_looked_at_too(step, lie):
    config, value = Config("dqn", "corridor", **FIELDS), next(iter(lie.values()))
    with pytest.raises(UserError, match=f"env: corridor, step {step}: observation {value}, exp"):
        train(config, environment=Corridor(**lie), watcher=Watcher())


def compiled(space, truth, part=None, lie=None):
    """The liar in JAX: a counter of steps is its state."""

    def reset(key):
        return jnp.int32(0), jnp.asarray(truth, space.dtype)

    def step(key, count, action):
        count, seen = count + 1, jnp.asarray(truth, space.dtype)
        ended = count % LENGTH == 0
        parts = {"observation": seen, "next_observation": seen, "reward": jnp.float32(1)}
        if part is not None:
            honest = parts[part]
            parts[part] = jnp.where(count == AT, jnp.full_like(honest, lie), honest)
        return count, JaxOutcome(**parts, terminated=ended, truncated=jnp.zeros_like(ended))

    return JaxEnvironment(Spaces(space, 2), reset, step)


BOX, KINDS = ObservationSpace((2,), "float32"), ObservationSpace((), "int32", 4, 2)


@pytest.mark.parametrize(
    ("space", "truth", "part", "lie", "step", "says"),
    [
        (BOX, [0, 0], "reward", NAN, AT, "reward nan, expected a finite float32 number"),
        (BOX, [0, 0], "reward", -INF, AT, "reward -inf"),
        (BOX, [0, 0], "next_observation", NAN, AT, "observation nan, expected a finite"),
        (BOX, [0, 0], "observation", INF, AT + 1, "observation inf"),
        (KINDS, 3, "next_observation", 7, AT, "observation 7, expected a category in 2..5"),
        (KINDS, 3, "observation", 1, AT + 1, "observation 1, expected a category in 2..5"),
    ],
    ids=str,
)
def test_a_lie_in_compiled_code_is_named_too(space, truth, part, lie, step, says):
    config = Config("dqn", "liar", **FIELDS)
    with pytest.raises(UserError, match=re.escape(f"env: liar, step {step}: {says}")):
        train_seeds(
            config,
            [0, 1],
            environment=compiled(space, truth, part, lie),
            watcher=Watcher(),
        )


def test_the_truth_in_compiled_code_and_a_clipped_infinite_reward_are_trained_on():
    config = Config("dqn", "liar", reward_clip=1.0, **FIELDS)
    for part, lie in ((None, None), ("reward", INF)):
        run = train(config, environment=compiled(BOX, [0, 0], part, lie), watcher=Watcher())
        assert (run.status, run.metrics[-1]["updates"]) == ("finished", 40)
    run = train(config, environment=compiled(KINDS, 3), watcher=Watcher())
    assert (run.status, run.metrics[-1]["updates"]) == ("finished", 40)
