"""Any Gymnasium vector environment with discrete actions, in all its autoreset modes."""

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode

from movi.envs.interface import Outcome
from movi.errors import UserError
from movi.spaces import ObservationSpace, Spaces

SUPPORTED = "supported are Box, Discrete and MultiBinary observations and Discrete actions"


def spaces_of(observation: gym.Space, action: gym.Space, name: str) -> Spaces:
    """The spaces as plain data, or an error that says what is supported."""
    if not isinstance(action, gym.spaces.Discrete):
        raise UserError(f"env: {name} has {_kind(action)} actions; {SUPPORTED}")
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
    return Spaces(seen, int(action.n), int(action.start))


def _kind(space: gym.Space) -> str:
    return type(space).__name__


class GymnasiumVector:
    """Turns the three autoreset modes into one stream of outcomes.

    One environment whose episode ends with t2, and what its calls return (o: observation):

        call:       1    2                 3          4
        NEXT_STEP   t1   t2                u0 (fake)  u1     the third call is no decision
        SAME_STEP   t1   u0, final_obs t2  u1         u2
        DISABLED    t1   t2; reset: u0     u1         u2     the adapter resets

    Where every environment has just ended under NEXT_STEP there is nothing to decide, so the fake
    step is taken at once: a single environment gives the same outcomes in every mode.
    """

    def __init__(self, env: Any) -> None:
        """Wraps a ``gymnasium.vector.VectorEnv``; its mode is read from its metadata."""
        self._env = env
        self._name = _name(env)
        self.spaces = spaces_of(env.single_observation_space, env.single_action_space, self._name)
        self.num_envs = int(env.num_envs)
        mode = env.metadata.get("autoreset_mode")
        try:
            self._mode = AutoresetMode(mode)
        except ValueError:
            raise UserError(
                f"env: {self._name} has metadata autoreset_mode {mode!r}, "
                f"expected one of {', '.join(str(m) for m in AutoresetMode)}"
            ) from None
        self._resetting = np.zeros(self.num_envs, bool)
        self._any_resetting = False
        self._all = np.ones(self.num_envs, bool)

    def reset(self, seeds: Sequence[int]) -> np.ndarray:
        """Starts an episode in each environment, each with its own seed."""
        observation, _ = self._env.reset(seed=[int(seed) for seed in seeds])
        self._resetting = np.zeros(self.num_envs, bool)
        self._any_resetting = False
        return self._own(observation)

    def step(self, actions: np.ndarray) -> Outcome:
        """Takes the actions, counted from 0."""
        raw, reward, terminated, truncated, info = self._env.step(
            np.asarray(actions, np.int64) + self.spaces.first_action
        )
        observation = self._own(raw)
        reward = np.asarray(reward, np.float64)
        valid = ~self._resetting if self._any_resetting else self._all
        ended = (terminated | truncated) & valid
        next_observation = observation
        self._any_resetting = False
        if ended.any():
            if self._mode == AutoresetMode.NEXT_STEP:
                if ended.all():
                    observation = self._own(self._env.step(self._dummy())[0])
                else:
                    self._resetting, self._any_resetting = ended, True
            elif self._mode == AutoresetMode.SAME_STEP:
                next_observation = observation.copy()
                for i in np.flatnonzero(ended).tolist():
                    next_observation[i] = self._final(info, i)
            else:
                next_observation = observation.copy()
                observation = self._own(self._env.reset(options={"reset_mask": ended})[0])
        return Outcome(
            observation, next_observation, reward, terminated & valid, truncated & valid, valid
        )

    def close(self) -> None:
        """Closes the environment."""
        self._env.close()

    def _own(self, observation: Any) -> np.ndarray:
        """A copy that the environment will not write to, in the space's dtype."""
        return np.array(observation, dtype=self.spaces.observation.dtype)

    def _dummy(self) -> np.ndarray:
        return np.full(self.num_envs, self.spaces.first_action, np.int64)

    def _final(self, info: dict[str, Any], i: int) -> np.ndarray:
        if "final_obs" not in info:
            raise UserError(f"env: {self._name} ended an episode without info['final_obs']")
        return info["final_obs"][i]


def _name(env: Any) -> str:
    spec = getattr(env, "spec", None)
    if spec is None and getattr(env, "envs", None):
        spec = env.envs[0].spec
    return str(getattr(spec, "id", None) or type(env).__name__)


def make_gymnasium(
    env_id: str, num_envs: int = 1, *, vectorisation: str = "sync", **kwargs: Any
) -> GymnasiumVector:
    """n environments of a Gymnasium id, in this process (sync) or one process each (async).

    Episodes end and restart in the same step, so every step is a decision.
    """
    vector: dict[str, Any] = {"autoreset_mode": AutoresetMode.SAME_STEP}
    if vectorisation == "sync":
        vector["copy"] = False
    elif vectorisation == "async":
        vector["context"] = "spawn"  # a fork of a process with JAX's threads can deadlock
    else:
        raise UserError(f"vectorisation: {vectorisation!r}, expected 'sync' or 'async'")
    check_env(env_id, **kwargs)
    return GymnasiumVector(
        gym.make_vec(
            env_id, num_envs, vectorization_mode=vectorisation, vector_kwargs=vector, **kwargs
        )
    )


def check_env(env_id: str, **kwargs: Any) -> None:
    """Builds one environment and closes it: its id exists and its spaces are supported."""
    env = make_single(env_id, **kwargs)
    try:
        spaces_of(env.observation_space, env.action_space, env_id)
    finally:
        env.close()


def make_single(env_id: str, **kwargs: Any) -> gym.Env:
    """One plain environment of a Gymnasium id."""
    try:
        return gym.make(env_id, **kwargs)
    except (gym.error.Error, ModuleNotFoundError, TypeError) as error:
        line = " ".join(str(error).split())
        raise UserError(f"env: {env_id!r} cannot be made: {line}") from None
