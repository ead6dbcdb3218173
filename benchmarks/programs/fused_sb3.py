"""Agent steps per second of stable-baselines3's DQN while it learns: TASK WARM STEPS."""

import sys
import time

import gymnasium as gym
import numpy as np
import torch
from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

task, warm, steps = sys.argv[1], *map(int, sys.argv[2:4])


class Clock(BaseCallback):
    def _on_step(self):
        if self.num_timesteps == warm:
            self.start = time.perf_counter()
        elif self.num_timesteps == warm + steps:
            self.seconds = time.perf_counter() - self.start
        return True


class MinAtar(gym.Env):
    """The original game as stable-baselines3 wants it: channels first."""

    def __init__(self):
        from minatar import Environment

        self.game = Environment("breakout")
        shape = tuple(np.roll(self.game.state_shape(), 1))
        self.observation_space = gym.spaces.Box(0, 1, shape, np.uint8)
        self.action_space = gym.spaces.Discrete(6)

    def seen(self):
        return self.game.state().transpose(2, 0, 1).astype(np.uint8)

    def reset(self, *, seed=None, options=None):
        self.game.reset()
        return self.seen(), {}

    def step(self, action):
        reward, terminated = self.game.act(action)
        return self.seen(), float(reward), bool(terminated), False, {}


class Torso(BaseFeaturesExtractor):
    """conv 16@3×3, dense 128."""

    def __init__(self, space):
        super().__init__(space, 128)
        self.layers = torch.nn.Sequential(
            torch.nn.Conv2d(space.shape[0], 16, 3),
            torch.nn.ReLU(),
            torch.nn.Flatten(),
            torch.nn.Linear(1024, 128),
            torch.nn.ReLU(),
        )

    def forward(self, x):
        return self.layers(x)


common = {"learning_starts": 1_000, "gradient_steps": 1, "device": "cpu", "seed": 0}
if task == "minatar":
    policy = {"features_extractor_class": Torso, "net_arch": [], "normalize_images": False}
    model = DQN(
        "MlpPolicy",
        MinAtar(),
        batch_size=32,
        train_freq=4,
        target_update_interval=1_000,
        buffer_size=100_000,
        policy_kwargs=policy,
        **common,
    )
else:
    model = DQN(
        "MlpPolicy",
        "CartPole-v1",
        batch_size=64,
        train_freq=1,
        target_update_interval=500,
        buffer_size=50_000,
        policy_kwargs={"net_arch": [64, 64]},
        **common,
    )
clock = Clock()
model.learn(warm + steps, callback=clock, log_interval=None)
print(steps / clock.seconds)
