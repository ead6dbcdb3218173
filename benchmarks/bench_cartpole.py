"""Agent steps per second of DQN on CartPole-v1, this package against stable-baselines3.

Both: two layers of 64, batch 64, one update per step, target copied every 500 steps, one
environment, Adam, learning from step 1,000 on. Timed: the same number of steps after learning has
started and everything is compiled. stable-baselines3 runs with PyTorch's own number of threads and
with one, and the ratio is to the faster of the two. All alternate, repetition by repetition, in
processes of their own; each repetition's figure and the medians are printed as JSON.

    python benchmarks/bench_cartpole.py [--repetitions 5] [--steps 5000] [--peer PYTHON]

``--peer`` is the interpreter of an environment that has stable-baselines3; without it one is made
in ``.venv-sb3`` (pinned below).
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path

from processes import repetition, stage

ROOT = Path(__file__).resolve().parents[1]
PINS = ("torch==2.13.0", "stable-baselines3==2.9.2", "gymnasium==1.4.0", "numpy==2.4.6")
WARM = 2_000  # steps before the clock starts; learning starts at 1,000

OURS = """
import sys, time
from momentum_rl.envs.gym_vector import make_gymnasium
from momentum_rl.replay.uniform import UniformReplay
from momentum_rl.runs.config import Config
from momentum_rl.training.host_loop import HostLoop
from momentum_rl.training.build import configured_learner

warm, steps, seed, algorithm = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
config = Config(algorithm, "CartPole-v1", seed=seed, steps=warm + steps, hidden=(64, 64),
                batch_size=64, update_period=1, sync_period=500, learning_starts=1_000,
                loss="huber", optimiser="adam", learning_rate=1e-4, optimiser_epsilon=1e-8)
environment = make_gymnasium(config.env)
spaces = environment.spaces
loop = HostLoop(config, environment, configured_learner(config, spaces).learner,
                lambda slack: UniformReplay(config.replay_capacity, spaces.observation))
loop.begin()
loop.advance(warm)
start = time.perf_counter()
loop.advance(warm + steps)
print(steps / (time.perf_counter() - start))
assert loop.updates == warm + steps - 1_000
"""

THEIRS = """
import sys, time, torch
from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import BaseCallback

warm, steps, seed, threads = (int(word) for word in sys.argv[1:5])
if threads:
    torch.set_num_threads(threads)

class Clock(BaseCallback):
    def _on_step(self):
        if self.num_timesteps == warm:
            self.start = time.perf_counter()
        elif self.num_timesteps == warm + steps:
            self.seconds = time.perf_counter() - self.start
        return True

clock = Clock()
model = DQN("MlpPolicy", "CartPole-v1", seed=seed, batch_size=64, train_freq=1, gradient_steps=1,
            learning_starts=1_000, target_update_interval=500, buffer_size=50_000, device="cpu",
            exploration_fraction=0.2, exploration_final_eps=0.01,
            policy_kwargs={"net_arch": [64, 64]})
model.learn(warm + steps, callback=clock, log_interval=None)
print(steps / clock.seconds)
assert model._n_updates == warm + steps - 1_000
"""


def peer_python(given: str | None) -> str:
    """The interpreter that has stable-baselines3, made if need be."""
    if given:
        return given
    python = ROOT / ".venv-sb3" / "bin" / "python"
    if not python.exists():
        with stage("cartpole", "setting up .venv-sb3"):
            subprocess.run([sys.executable, "-m", "venv", ROOT / ".venv-sb3"], check=True)
            for pins in (PINS[:1], PINS):
                subprocess.run([python, "-m", "pip", "install", "-q", *pins], check=True)
    return str(python)


def speed(python: str, script: str, *arguments: object) -> float:
    """The script's figure."""
    words = [python, "-c", script, *map(str, arguments)]
    path = {"PYTHONPATH": str(ROOT / "src")} if script is OURS else {}
    done = subprocess.run(
        words, capture_output=True, text=True, check=True, env={**os.environ, **path}, timeout=600
    )
    return float(done.stdout.split()[-1])


def run(repetitions: int = 5, steps: int = 5_000, peer: str | None = None) -> dict:
    """All repetitions, and the medians."""
    other = peer_python(peer)
    peers = {"stable-baselines3": 0, "stable-baselines3, one thread": 1}
    programs = {
        "movi": (sys.executable, OURS, "dqn"),
        **{name: (other, THEIRS, threads) for name, threads in peers.items()},
        "movi momentum-dqn": (sys.executable, OURS, "momentum-dqn"),
    }
    figures: dict[str, list[float]] = {name: [] for name in programs}
    for seed in range(repetitions):
        for name, (python, script, last) in programs.items():
            with stage("cartpole", repetition(seed, repetitions), name):
                figures[name].append(speed(python, script, WARM, steps, seed, last))
    medians = {name: statistics.median(values) for name, values in figures.items()}
    return {
        "benchmark": "cartpole",
        "unit": "agent steps per second while learning",
        "work": "DQN, 2x64, batch 64, one update per step, one environment",
        "steps": steps,
        "repetitions": {name: [round(v, 1) for v in values] for name, values in figures.items()},
        "median": {name: round(value, 1) for name, value in medians.items()},
        "ratio": round(medians["movi"] / max(medians[name] for name in peers), 2),
        "to_reach": 3.0,
        "peer": PINS,
        "machine": {"cores": os.cpu_count(), "processor": platform.processor()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--steps", type=int, default=5_000)
    parser.add_argument("--peer", default=None)
    options = parser.parse_args()
    print(json.dumps(run(options.repetitions, options.steps, options.peer), indent=2))


if __name__ == "__main__":
    main()
