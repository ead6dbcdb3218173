"""DQN on an Atari game: this package against stable-baselines3, and the update by itself.

The same work on both sides: one environment, four frames per step, the Nature network with VALID
padding, batch 32, one update per four steps, target copied every 8,000 steps. Timed: the same
number of steps after learning has started and everything is compiled. The two alternate, repetition
by repetition, in processes of their own. Besides: the same with Dopamine's network (SAME padding);
the update alone against this machine's matrix-multiply peak, Momentum-DQN's against DQN's, sampling
against the update, all interleaved in one process; bytes per stored transition.

    python benchmarks/bench_atari.py [--repetitions 3] [--steps 400] [--game Pong] [--peer PYTHON]

``--peer`` is the interpreter of an environment that has stable-baselines3; without it one is made
in ``.venv-sb3`` (pinned below). Dopamine is not run: from PyPI it needs stubs to start (undeclared
``baselines``, missing gin files); the figure beside ours is its measured 38 steps/s on a machine of
this kind, which is no figure of this run.
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
PINS = (
    "torch==2.13.0",
    "stable-baselines3==2.9.2",
    "gymnasium==1.4.0",
    "numpy==2.4.6",
    "ale-py==0.12.1",
    "opencv-python-headless==5.0.0.93",
)
WARM, STARTS = 240, 200  # steps before the clock starts, and stored transitions before learning
DOPAMINE = 38.0  # agent steps per second, with the SAME network; see above

OURS = """
import sys, time
from dataclasses import replace
from momentum_rl.envs.atari import make_atari
from momentum_rl.replay.frames import FrameReplay
from momentum_rl.runs.config import Config
from momentum_rl.training.host_loop import HostLoop
from momentum_rl.runs.presets import preset_fields
from momentum_rl.training.build import configured_learner

game, warm, starts, steps, seed, algorithm, padding = sys.argv[1:8]
warm, starts, steps, seed = (int(word) for word in (warm, starts, steps, seed))
config = Config(algorithm, f"ALE/{game}-v5", **{
    **preset_fields("paper"), "seed": seed, "padding": padding, "learning_starts": starts,
    "replay_capacity": 10_000, "epsilon_warmup": starts, "epsilon_decay": 1})
environment = make_atari(config.env)
spaces = environment.spaces
loop = HostLoop(config, environment, configured_learner(config, spaces).learner,
                lambda slack: FrameReplay(config.replay_capacity, spaces.observation))
loop.begin()
loop.advance(warm)
assert loop.learner.diverged_at() is None  # waits for what is under way
start = time.perf_counter()
loop.advance(warm + steps)
assert loop.learner.diverged_at() is None
print(steps / (time.perf_counter() - start))
assert loop.updates == (warm + steps - starts) // 4
"""

THEIRS = """
import sys, time
import ale_py, gymnasium as gym
from stable_baselines3 import DQN
from stable_baselines3.common.atari_wrappers import MaxAndSkipEnv, WarpFrame
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack

gym.register_envs(ale_py)
game, warm, starts, steps, seed = sys.argv[1], *(int(word) for word in sys.argv[2:6])

class Clock(BaseCallback):
    def _on_step(self):
        if self.num_timesteps == warm:
            self.start = time.perf_counter()
        elif self.num_timesteps == warm + steps:
            self.seconds = time.perf_counter() - self.start
        return True

def make():
    env = gym.make(f"ALE/{game}-v5", frameskip=1, repeat_action_probability=0.25)
    return WarpFrame(MaxAndSkipEnv(env, 4))

clock = Clock()
model = DQN("CnnPolicy", VecFrameStack(DummyVecEnv([make]), 4), seed=seed, batch_size=32,
            train_freq=4, gradient_steps=1, learning_starts=starts, target_update_interval=8_000,
            buffer_size=10_000, device="cpu", exploration_fraction=1e-3,
            exploration_final_eps=0.01)
model.learn(warm + steps, callback=clock, log_interval=None)
print(steps / clock.seconds)
"""

UPDATES = """
import json, statistics, sys, time
import jax, jax.numpy as jnp, numpy as np
from momentum_rl.agents.learner import make_learner, make_optimiser
from momentum_rl.agents.method import regression
from momentum_rl.agents.networks import NetworkSpec, make_network
from momentum_rl.agents.registry import options_of
from momentum_rl.replay.frames import FrameReplay
from momentum_rl.core.schedules import RateUpdates
from momentum_rl.spaces import ObservationSpace, Spaces, Transition
from momentum_rl.training.host_loop import HostLearner

rounds = int(sys.argv[1])
SPACES = Spaces(ObservationSpace((4, 84, 84), "uint8"), 6)
rng = np.random.default_rng(0)
replay = FrameReplay(20_000, SPACES.observation)
frames = rng.integers(1, 256, (64, 84, 84), dtype=np.uint8)
stack = np.zeros((4, 84, 84), np.uint8)
for k in range(20_000):
    after = np.stack([*stack[1:], frames[k % 64]])
    replay.add(0, Transition(stack, k % 6, 1.0, 0.99, after), False)
    stack = after

class Case:
    def __init__(self, algorithm, padding, shared):
        learner = make_learner(
            regression(options_of(algorithm).algorithm(), shared_batch=shared, reward_clip=1.0),
            make_network(NetworkSpec("nature", padding=padding), SPACES),
            make_optimiser("rmsprop", 2.5e-4, 1e-5), SPACES, beta=RateUpdates(10**6))
        self.learner = HostLearner(learner, 0)
        words = rng.integers(2**32, size=(learner.minibatches, 32), dtype=np.uint32)
        self.batches = replay.sample(words)
        self.seconds = []

    def __call__(self):
        start = time.perf_counter()
        self.learner.update(self.batches, 5)
        jax.block_until_ready(self.learner.state)
        self.seconds.append(time.perf_counter() - start)

cases = {f"{name} {padding}{' shared' if shared else ''}": Case(name, padding, shared)
         for padding in ("SAME", "VALID")
         for name, shared in (("dqn", False), ("momentum-dqn", False), ("momentum-dqn", True))}
matrix = jnp.asarray(rng.normal(size=(2048, 2048)), jnp.float32)
multiply = jax.jit(lambda a: a @ a)
peak, sampling = [], []
for k in range(rounds + 2):
    start = time.perf_counter()
    multiply(matrix).block_until_ready()
    peak.append(time.perf_counter() - start)
    for case in cases.values():
        case()
    words = rng.integers(2**32, size=(1, 32), dtype=np.uint32)
    start = time.perf_counter()
    replay.sample(words)
    sampling.append(time.perf_counter() - start)
median = lambda seconds: 1e3 * statistics.median(seconds[2:])
print(json.dumps({
    "milliseconds": {name: round(median(case.seconds), 2) for name, case in cases.items()},
    "sampling_milliseconds": round(median(sampling), 3),
    "peak_gflops": round(2 * 2048**3 / median(peak) / 1e6, 1),
    "bytes_per_transition": round(replay.nbytes / replay.capacity, 1)}))
"""


def multiplications(padding: str) -> float:
    """Floating-point operations of one forward pass of one image, in 10⁹."""
    sizes = {"SAME": (21, 11, 11), "VALID": (20, 9, 7)}[padding]
    kernels = (8 * 8 * 4 * 32, 4 * 4 * 32 * 64, 3 * 3 * 64 * 64)
    convolutions = sum(n * n * k for n, k in zip(sizes, kernels))
    return 2 * (convolutions + sizes[-1] ** 2 * 64 * 512 + 512 * 6) / 1e9


def update_gflop(padding: str) -> float:
    """Of a DQN update: forward on s', forward on s, and twice that backward but for the image."""
    first = {"SAME": 21, "VALID": 20}[padding] ** 2 * 8 * 8 * 4 * 32 * 2 / 1e9
    return 32 * (4 * multiplications(padding) - first)


def peer_python(given: str | None) -> str:
    """The interpreter that has stable-baselines3, made if need be."""
    if given:
        return given
    python = ROOT / ".venv-sb3" / "bin" / "python"
    with stage("atari", "setting up .venv-sb3"):
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", ROOT / ".venv-sb3"], check=True)
        for pins in (PINS[:1], PINS):
            subprocess.run([python, "-m", "pip", "install", "-q", *pins], check=True)
    return str(python)


def output(python: str, script: str, *arguments: object) -> str:
    """The last line that a script prints."""
    words = [python, "-c", script, *map(str, arguments)]
    path = {} if script is THEIRS else {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        words, stdout=subprocess.PIPE, text=True, check=True, env={**os.environ, **path}
    )
    return done.stdout.strip().splitlines()[-1]


def run(
    repetitions: int = 3, steps: int = 400, game: str = "Pong", peer: str | None = None
) -> dict:
    """All repetitions, the medians and what they should reach."""
    other = peer_python(peer)
    figures: dict[str, list[float]] = {}
    for seed in range(repetitions):
        common = (game, WARM, STARTS, steps, seed)
        for name, python, script, more in (
            ("movi VALID", sys.executable, OURS, ("dqn", "VALID")),
            ("stable-baselines3", other, THEIRS, ()),
            ("movi SAME", sys.executable, OURS, ("dqn", "SAME")),
            ("movi momentum-dqn SAME", sys.executable, OURS, ("momentum-dqn", "SAME")),
        ):
            with stage("atari", repetition(seed, repetitions), name):
                figures.setdefault(name, []).append(float(output(python, script, *common, *more)))
    medians = {name: round(statistics.median(values), 1) for name, values in figures.items()}
    with stage("atari", "the update alone"):
        updates = json.loads(output(sys.executable, UPDATES, 10 * repetitions))
    return {
        "benchmark": "atari",
        "game": game,
        "steps": steps,
        "repetitions": {name: [round(v, 1) for v in values] for name, values in figures.items()},
        "median": medians,
        "updates": updates,
        "comparisons": comparisons(medians, updates),
        "peer": PINS,
        "machine": {"cores": os.cpu_count(), "processor": platform.processor()},
    }


def comparisons(medians: dict[str, float], updates: dict) -> list[dict]:
    """Rows of one form; a ratio above 1 is in this package's favour."""
    ms, peak = updates["milliseconds"], updates["peak_gflops"]
    steps = "agent steps/s while learning"

    def row(work: str, unit: str, ours: float, peer: str, theirs: float, reach: float) -> dict:
        ratio = theirs / ours if unit in ("times DQN's", "bytes", "ms") else ours / theirs
        return {
            "work": work,
            "unit": unit,
            "movi": round(ours, 2),
            "peer": peer,
            "peer_figure": round(theirs, 2),
            "ratio": round(ratio, 2),
            "to_reach": reach,
        }

    rows = [
        row("DQN, VALID", steps, medians["movi VALID"], "stable-baselines3",
            medians["stable-baselines3"], 1.3),
        row("DQN, SAME", steps, medians["movi SAME"], "Dopamine (not of this run)", DOPAMINE, 2.0),
        row("bytes per stored transition", "bytes", updates["bytes_per_transition"],
            "most allowed", 7300.0, 1.0),
        row("sampling a minibatch of 32", "ms", updates["sampling_milliseconds"],
            "a tenth of DQN's update, VALID", ms["dqn VALID"] / 10, 1.0),
    ]  # fmt: skip
    for padding in ("SAME", "VALID"):
        reached = update_gflop(padding) / ms[f"dqn {padding}"] * 1e3
        rows.append(
            row(f"DQN's update, {padding}", "GFLOP/s", reached, "matrix-multiply peak", peak, 0.5)
        )
        for kind, most in (("", 2.9), (" shared", 2.4)):
            times = ms[f"momentum-dqn {padding}{kind}"] / ms[f"dqn {padding}"]
            name = f"Momentum-DQN's update, {padding}{kind}"
            rows.append(row(name, "times DQN's", times, "most allowed", most, 1.0))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--game", default="Pong")
    parser.add_argument("--peer", default=None)
    options = parser.parse_args()
    result = run(options.repetitions, options.steps, options.game, options.peer)
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
