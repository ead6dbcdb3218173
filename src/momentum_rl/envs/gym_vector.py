"""Any Gymnasium vector environment with Discrete or Box actions, reset by the adapter."""

import math
import re
import warnings
from array import array
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode

from momentum_rl.errors import MissingExtra, UserError
from momentum_rl.plumbing.modules import import_trusted, module_of
from momentum_rl.spaces import Box, ObservationSpace, Outcome, Spaces, same_bits

COLOUR = re.compile(r"\x1b\[[0-9;]*m")  # in which Gymnasium writes its warnings
SUPPORTED = (
    "supported are Box, Discrete and MultiBinary observations, Discrete actions and bounded Box "
    "actions of floats"
)


def spaces_of(observation: gym.Space, action: gym.Space, name: str) -> Spaces:
    """The spaces as plain data, or an error that says what is supported."""
    if isinstance(observation, gym.spaces.Discrete):
        seen = ObservationSpace(
            (), str(observation.dtype), int(observation.n), int(observation.start)
        )
    elif isinstance(observation, gym.spaces.Box | gym.spaces.MultiBinary):
        if observation.dtype is None or observation.dtype.kind not in "biuf":
            raise UserError(f"env: {name} has observations of {observation.dtype}; {SUPPORTED}")
        seen = ObservationSpace(tuple(observation.shape), str(observation.dtype))
    else:
        raise UserError(f"env: {name} has {_kind(observation)} observations; {SUPPORTED}")
    if isinstance(action, gym.spaces.Discrete):
        return Spaces(seen, int(action.n), int(action.start))
    if not isinstance(action, gym.spaces.Box):
        raise UserError(f"env: {name} has {_kind(action)} actions; {SUPPORTED}")
    if not action.is_bounded() or np.dtype(action.dtype).kind != "f":
        kind = "integer" if action.is_bounded() else "unbounded"
        raise UserError(f"env: {name} has {kind} Box actions; {SUPPORTED}")
    low, high = (tuple(map(float, bound.ravel())) for bound in (action.low, action.high))
    try:
        return Spaces(seen, Box(low, high, tuple(action.shape), str(action.dtype)))
    except UserError as error:
        raise UserError(f"env: {name} has {error}") from None


def _kind(space: gym.Space) -> str:
    return type(space).__name__


class GymnasiumVector:
    """A vector environment that resets nothing by itself, as one stream of outcomes.

    It gives every episode a seed of its own: a pure function of the environment's seed and the
    episode's number. The state of an environment is then that number and the actions since, and
    ``restore`` plays them again.
    """

    autoreset = AutoresetMode.DISABLED
    """The mode that the environment must be in."""
    seed_after = 0
    """A reset gives a new seed if at least this many steps were taken since the last one."""

    def __init__(self, env: Any) -> None:
        """Wraps a ``gymnasium.vector.VectorEnv``; its metadata says its mode."""
        self._env = env
        self._name = _name(env)
        self.spaces = spaces_of(env.single_observation_space, env.single_action_space, self._name)
        self.num_envs = int(env.num_envs)
        mode = env.metadata.get("autoreset_mode")
        if mode != self.autoreset:
            raise UserError(
                f"env: {self._name} has metadata autoreset_mode {mode!r}, expected {self.autoreset}"
            )
        self._all = np.ones(self.num_envs, bool)
        self._seeds = [0] * self.num_envs
        self._seeded = [0] * self.num_envs  # how many seeds each was given after its first
        # Actions since the last seed, as many numbers as each has.
        boxed = isinstance(self.spaces.actions, Box)
        self._taken = [array("f" if boxed else "i") for _ in range(self.num_envs)]
        self._note: Callable[[Any, Any], None] = array.extend if boxed else array.append
        self._width = math.prod(self.spaces.action.shape)
        self._rewards = np.zeros(self.num_envs)  # their sum
        self._observation = np.zeros(0)

    def reset(self, seeds: Sequence[int]) -> np.ndarray:
        """Starts an episode in each environment, each with its own seed."""
        self._seeds = [int(seed) for seed in seeds]
        self._seeded = [0] * self.num_envs
        self._rewards = np.zeros(self.num_envs)
        for taken in self._taken:
            del taken[:]
        self._observation = self._begin(self._all, self._seeds)
        return self._observation

    def step(self, actions: np.ndarray) -> Outcome:
        """Takes the actions, counted from 0 or in [−1, 1]."""
        after, reward, terminated, truncated = self._play(actions)
        for taken, action in zip(self._taken, actions.tolist()):
            self._note(taken, action)
        self._rewards += reward
        ended = terminated | truncated
        self._observation = self._next(ended) if ended.any() else after
        return Outcome(self._observation, after, reward, terminated, truncated)

    def snapshot(self) -> dict[str, np.ndarray]:
        """The seeds, the actions since, what they earned and what is seen now."""
        dtype, width = self.spaces.action.dtype, self._width
        return {
            "seeds": np.array(self._seeds, np.uint64),
            "seeded": np.array(self._seeded, np.int64),
            "lengths": np.array([len(taken) // width for taken in self._taken], np.int64),
            "actions": np.concatenate([np.array(taken, dtype) for taken in self._taken]),
            "rewards": self._rewards,
            "observation": self._observation,
        }

    def restore(self, snapshot: Mapping[str, np.ndarray]) -> np.ndarray:
        """Plays the actions again, and compares what is seen then with what was seen.

        Each environment begins so late that all arrive together; before, it takes any action:

            actions since the seed:  3 of the first, 1 of the second
            first:    seed  a0  a1        a2
            second:   any   …   …   seed  b0
        """
        self.reset(snapshot["seeds"].tolist())
        self._seeded = [int(count) for count in snapshot["seeded"]]
        lengths = snapshot["lengths"].astype(np.int64)
        taken = snapshot["actions"].reshape(-1, *self.spaces.action.shape)
        logs = np.split(taken, np.cumsum(lengths)[:-1])
        longest = int(np.max(lengths))
        wait = longest - lengths
        self._observation = self._begin(self._all, self._episode_seeds())
        for t in range(longest + 1):
            starting = wait == t
            if t > 0 and starting.any():
                self._observation = self._begin(starting, self._episode_seeds())
            if t == longest:
                break
            begun = wait <= t
            actions = np.zeros((self.num_envs, *taken.shape[1:]), taken.dtype)
            for i, (log, w) in enumerate(zip(logs, wait)):
                if t >= w:
                    actions[i] = log[t - w]
            self._observation, reward, terminated, truncated = self._play(actions)
            self._rewards += np.where(begun, reward, 0.0)
            ended = terminated | truncated
            for i in np.flatnonzero(begun).tolist():
                self._note(self._taken[i], actions[i].tolist())
            if ended.any():
                self._observation = self._begin(ended, None)
        known = same_bits(self._observation, snapshot["observation"])
        if not known or not same_bits(self._rewards, snapshot["rewards"]):
            raise UserError(
                f"env: {self._name} does not repeat itself from the same seed and actions, so its "
                "run cannot be continued from a checkpoint"
            )
        return self._observation

    def close(self) -> None:
        """Closes the environment."""
        self._env.close()

    def _play(self, actions: np.ndarray) -> tuple[Any, ...]:
        """One step of the vector environment, in our types."""
        raw, reward, terminated, truncated, _ = self._env.step(self.spaces.own(actions))
        return self._own(raw), np.asarray(reward, np.float64), terminated, truncated

    def _next(self, ended: np.ndarray) -> np.ndarray:
        """Starts the next episode where one ended, with a new seed if it is time for one."""
        least = max(1, self.seed_after) * self._width
        fresh = np.array([len(taken) >= least for taken in self._taken]) & ended
        observation = self._observation
        if (ended & ~fresh).any():
            observation = self._begin(ended & ~fresh, None)
        if fresh.any():
            for i in np.flatnonzero(fresh).tolist():
                self._seeded[i] += 1
                del self._taken[i][:]
            self._rewards[fresh] = 0.0
            observation = self._begin(fresh, self._episode_seeds())
        return observation

    def _begin(self, mask: np.ndarray, seeds: list[int] | None) -> np.ndarray:
        """Resets some; the observations of all."""
        options = {} if mask.all() else {"options": {"reset_mask": mask}}
        return self._own(self._env.reset(seed=seeds, **options)[0])

    def _episode_seeds(self) -> list[int]:
        return [episode_seed(seed, count) for seed, count in zip(self._seeds, self._seeded)]

    def _own(self, observation: Any) -> np.ndarray:
        """A copy that the environment will not write to, in the space's dtype."""
        return np.array(observation, dtype=self.spaces.observation.dtype)


class Honest(gym.Wrapper[Any, Any, Any, Any]):
    """Refuses what an environment cannot mean, by its own step.

    Gymnasium's vectors take None and "no" for numbers, or raise what names neither step nor value.
    """

    def __init__(self, env: gym.Env) -> None:
        super().__init__(env)
        self._name, self._steps = _name(env), 0
        self._space = spaces_of(env.observation_space, env.action_space, self._name).observation
        self._form = np.dtype(self._space.dtype), self._space.shape

    def reset(self, **given: Any) -> Any:
        """Starts an episode."""
        return self._checked(self.env.reset(**given), 2)

    def step(self, action: Any) -> Any:
        """Takes an action."""
        self._steps += 1
        return self._checked(self.env.step(action), 5)

    def _checked(self, given: Any, count: int) -> Any:
        whole = isinstance(given, tuple | list) and len(given) == count
        if not whole or not isinstance(given[-1], dict):
            raise self._refused("", given, f"{count} parts, the last a dictionary")
        for what, value in zip(("reward ", "terminated ", "truncated "), given[1:-1]):
            number = value if isinstance(value, float | int) else np.asarray(value)[()]
            known = isinstance(number, float | int | np.bool_ | np.integer | np.floating)
            if not known or number != number:
                raise self._refused(what, value, "a number")
        seen = given[0]
        if (getattr(seen, "dtype", None), getattr(seen, "shape", None)) != self._form:
            seen = self._space.checked([seen], "observation", self._name, self._steps)[0]
            if seen.shape != self._space.shape:
                raise self._refused("observation of shape ", seen.shape, str(self._space.shape))
        return np.asarray(seen), *given[1:]

    def _refused(self, what: str, value: Any, expected: str) -> UserError:
        where = f"env: {self._name}, step {self._steps}"
        return UserError(f"{where}: {what}{value!r}, expected {expected}")


def episode_seed(seed: int, count: int) -> int:
    """The seed that an environment is given after ``count`` others; the first is its own.

    >>> episode_seed(5, 0), episode_seed(5, 1) == episode_seed(5, 2)
    (5, False)
    """
    if count == 0:
        return seed
    return int(np.random.SeedSequence([seed, count]).generate_state(1)[0])


def _name(env: Any) -> str:
    spec = getattr(env, "spec", None)
    if spec is None and getattr(env, "envs", None):
        spec = env.envs[0].spec
    return str(getattr(spec, "id", None) or type(env).__name__)


def make_gymnasium(
    env_id: str,
    num_envs: int = 1,
    *,
    trust: Collection[str] = (),
    **kwargs: Any,
) -> GymnasiumVector:
    """n environments of a Gymnasium id, in this process.

    Every episode has a seed of its own, and every step is a decision. ``trust`` are the modules
    that an id may name: see ``make_single``.
    """
    vector = {"autoreset_mode": AutoresetMode.DISABLED, "copy": False}
    # One by itself first: its id exists and its spaces are supported, or there is one clear line.
    with closing(make_single(env_id, trust=trust, **kwargs)) as env:
        spaces_of(env.observation_space, env.action_space, env_id)
    with warnings.catch_warnings(action="ignore"):  # said by the one that was just made
        vectors = gym.make_vec(
            env_id, num_envs, "sync", vector_kwargs=vector, wrappers=[Honest], **kwargs
        )
    return GymnasiumVector(vectors)


def make_single(env_id: str, *, trust: Collection[str] = (), **kwargs: Any) -> gym.Env:
    """One plain environment of a Gymnasium id.

    An id of the form MODULE:NAME makes Gymnasium import the module, which runs whatever is in it.
    Ids come from files that others wrote (agents, configs, sweeps): so the module has to be among
    those in ``trust``, which only the command line or a program fills.
    """
    if module := module_of(env_id, "env"):
        import_trusted(module, trust, f"env: {env_id!r}")
    try:
        with warnings.catch_warnings(record=True) as messages:
            env = gym.make(env_id, **kwargs)
    except gym.error.DependencyNotInstalled as error:
        if "mujoco" in str(error):
            raise MissingExtra(f"env: {env_id!r}", "mujoco") from None
        raise UserError(f"env: {env_id!r} cannot be made: {error}") from None
    except (gym.error.Error, ImportError, TypeError) as error:
        line = " ".join(str(error).split())
        raise UserError(f"env: {env_id!r} cannot be made: {line}") from None
    for one in messages:
        plain = COLOUR.sub("", str(one.message))
        warnings.warn_explicit(plain, one.category, one.filename, one.lineno)
    return env
