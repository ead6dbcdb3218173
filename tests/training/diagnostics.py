"""Tiny environments whose values are known in closed form, and scripted ones for episode ends."""

from typing import ClassVar

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from momentum_rl.envs.gym_vector import GymnasiumVector


class Diagnostic(gym.Env):
    """One or two steps; observation in [−1, 1]; two actions."""

    metadata: ClassVar[dict] = {}
    observation_space = gym.spaces.Box(-1, 1, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)
    length = 1

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        self.x = self.first()
        return np.array([self.x], np.float32), {}

    def step(self, action):
        reward = self.reward(action)
        self.t += 1
        self.x = float(self.t)
        return np.array([self.x], np.float32), reward, self.t == self.length, False, {}

    def first(self):
        return 0.0

    def coin(self):
        return float(self.np_random.choice([-1, 1]))


class ConstantReward(Diagnostic):
    """Every action gives 1 and ends: q = 1."""

    def reward(self, action):
        return 1.0


class ObservationReward(Diagnostic):
    """The reward is the observation, −1 or 1: q(x, ·) = x."""

    def first(self):
        return self.coin()

    def reward(self, action):
        return self.x


class TwoSteps(Diagnostic):
    """Observations 0 then 1, reward 1 at the end: q(0) = γ, q(1) = 1."""

    length = 2

    def reward(self, action):
        return float(self.t == 1)


class ActionReward(Diagnostic):
    """Action 1 gives 1, action 0 gives −1."""

    def reward(self, action):
        return 1.0 if action == 1 else -1.0


class BothReward(Diagnostic):
    """1 if the action matches the sign of the observation, else −1."""

    def first(self):
        return self.coin()

    def reward(self, action):
        return 1.0 if (action == 1) == (self.x > 0) else -1.0


class RandomReturn(Diagnostic):
    """Observations 0 then 1; at the end 1 or −1, of each action in turn: either of ½."""

    length = 2

    def __init__(self):
        self.last = [-1.0, -1.0]

    def reward(self, action):
        if self.t == 0:
            return 0.0
        self.last[action] *= -1
        return self.last[action]


GAMMA = 0.9
# environment, observations, q* at each
DIAGNOSTICS = [
    (ConstantReward, [0.0], [[1, 1]]),
    (ObservationReward, [-1.0, 1.0], [[-1, -1], [1, 1]]),
    (TwoSteps, [0.0, 1.0], [[GAMMA, GAMMA], [1, 1]]),
    (ActionReward, [0.0], [[-1, 1]]),
    (BothReward, [-1.0, 1.0], [[1, -1], [-1, 1]]),
]


class OneState(gym.Env):
    """One state, reward 1 for ever; cut or ended after ``length`` steps."""

    metadata: ClassVar[dict] = {}
    observation_space = gym.spaces.Box(-1, 1, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, length, truncate):
        self.length, self.truncate = length, truncate

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.t += 1
        end = self.t == self.length
        return np.zeros(1, np.float32), 1.0, end and not self.truncate, end and self.truncate, {}


class Scripted(gym.Env):
    """Episodes of random lengths and ends; the observation is [environment, episode, t].

    Rewards are different powers of ten by time, so that a sum says which steps it is of.
    """

    metadata: ClassVar[dict] = {}
    observation_space = gym.spaces.Box(0, 10**6, (3,), np.int32)
    action_space = gym.spaces.Discrete(3, start=5)

    def __init__(self, number):
        self.number, self.episode = number, -1

    def observation(self):
        return np.array([self.number, self.episode, self.t], np.int32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.episode += 1
        self.t = 0
        rng = np.random.default_rng([self.number, self.episode])
        self.length, self.kind = int(rng.integers(1, 6)), str(rng.choice(["end", "cut", "both"]))
        return self.observation(), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        assert self.t < self.length, "stepped beyond the end of an episode"
        self.t += 1
        last = self.t == self.length
        terminated = last and self.kind in ("end", "both")
        truncated = last and self.kind in ("cut", "both")
        return self.observation(), float(10 ** (self.t - 1)), terminated, truncated, {}


def vector(makers):
    return GymnasiumVector(SyncVectorEnv(makers, autoreset_mode=AutoresetMode.DISABLED))


def scripted(n):
    return vector([lambda i=i: Scripted(i) for i in range(n)])
