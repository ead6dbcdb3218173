"""Agent steps per second of a peer's SAC while it learns: sb3|sbx WARM STEPS THREADS."""

import sys
import time

import torch
from stable_baselines3.common.callbacks import BaseCallback

who, warm, steps, threads = sys.argv[1], *map(int, sys.argv[2:5])
if threads:
    torch.set_num_threads(threads)
if who == "sbx":
    from sbx import SAC
else:
    from stable_baselines3 import SAC


class Clock(BaseCallback):
    def _on_step(self):
        if self.num_timesteps == warm:
            self.start = time.perf_counter()
        elif self.num_timesteps == warm + steps:
            self.seconds = time.perf_counter() - self.start
        return True


clock = Clock()
model = SAC(
    "MlpPolicy",
    "Pendulum-v1",
    learning_rate=1e-3,
    batch_size=256,
    buffer_size=20_000,
    learning_starts=100,
    train_freq=1,
    gradient_steps=1,
    policy_kwargs={"net_arch": [256, 256]},
    seed=0,
    device="cpu",
)
model.learn(warm + steps, callback=clock, log_interval=None)
print(steps / clock.seconds)
