"""Agent steps per second: SAC on Pendulum-v1 against its peers, C51 on MinAtar against DQN.

SAC, this package, stable-baselines3 and SBX: two layers of 256, two critics, batch 256, one update
of every network per step, one environment, learning from step 100 on. stable-baselines3 runs with
PyTorch's own number of threads and with one, and the ratio is to the faster of the two. The host
loop plays Gymnasium's Pendulum, as the peers do; the fused loop gymnax's. C51 and DQN: MinAtar
Breakout with Adam and squared errors, the fused loop. Timed: the same number of steps after
learning has started and everything is compiled. All alternate, repetition by repetition, in
processes of their own.

    python benchmarks/bench_sac.py [--repetitions 3] [--steps 2000] [--peer PYTHON]

``--peer`` is the interpreter of an environment that has both peers; without it one is made in
``.venv-sac`` (pinned below). The result is printed as JSON.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path

from processes import program, repetition, stage

ROOT = Path(__file__).resolve().parents[1]
# Installed in this order: torch by its exact pin first.
PINS = (
    ("torch==2.13.0",),
    ("torch==2.13.0", "stable-baselines3==2.9.2", "sbx-rl==0.28.0", "gymnasium==1.3.0"),
)
WARM = 1_500
UNIT = "agent steps per second while learning"
SAC = "SAC, Pendulum-v1, 2x256, batch 256, an update per step"
ROWS = (
    (f"{SAC}, host loop", "movi host", ("sb3", "sb3, one thread"), 2.0),
    (f"{SAC}, host loop", "movi host", ("sbx",), None),
    (f"{SAC}, fused loop", "movi fused", ("sb3", "sb3, one thread"), 10.0),
    (f"{SAC}, fused loop", "movi fused", ("sbx",), None),
    ("C51 in place of DQN, MinAtar Breakout, fused loop", "movi c51", ("movi dqn",), 0.5),
)
TITLES = {"sb3": "stable-baselines3", "sbx": "SBX", "movi dqn": "movi dqn"}


def peer_python(given: str | None) -> str:
    """The interpreter that has the peers, made if need be."""
    if given:
        return given
    home = ROOT / ".venv-sac"
    python = home / "bin" / "python"
    if not (home / ".ready").exists():
        with stage("sac", f"setting up {home.name}"):
            subprocess.run([sys.executable, "-m", "venv", home], check=True)
            for pins in PINS:
                subprocess.run([python, "-m", "pip", "install", "-q", *pins], check=True)
            (home / ".ready").touch()
    return str(python)


def run(repetitions: int, steps: int, peer: str | None = None) -> dict:
    """All repetitions, the medians and the ratios."""
    other = peer_python(peer)
    programs = {
        "movi host": (sys.executable, "sac_movi", "host", WARM, steps),
        "sb3": (other, "sac_peer", "sb3", WARM, steps, 0),
        "sb3, one thread": (other, "sac_peer", "sb3", WARM, steps, 1),
        "sbx": (other, "sac_peer", "sbx", WARM, steps, 0),
        "movi fused": (sys.executable, "sac_movi", "fused", WARM, 2 * steps),
        "movi c51": (sys.executable, "sac_movi", "c51", WARM, 4 * steps),
        "movi dqn": (sys.executable, "sac_movi", "dqn", WARM, 4 * steps),
    }
    speeds: dict[str, list[float]] = {name: [] for name in programs}
    for number in range(repetitions):
        for name, words in programs.items():
            with stage("sac", repetition(number, repetitions), name):
                speeds[name].append(float(program(*words)))
    medians = {name: round(statistics.median(values), 1) for name, values in speeds.items()}
    rows = []
    for work, ours, peers, reach in ROWS:
        best = max(peers, key=medians.__getitem__)
        rows.append(
            {
                "work": work,
                "unit": UNIT,
                "movi": medians[ours],
                "peer": TITLES[peers[0]],
                "peer_figure": medians[best],
                "ratio": round(medians[ours] / medians[best], 2),
                "to_reach": reach,
            }
        )
    return {
        "benchmark": "sac",
        "comparisons": rows,
        "median": medians,
        "repetitions": {name: [round(v, 1) for v in values] for name, values in speeds.items()},
        "peers": PINS[-1],
        "machine": {
            "cores": os.cpu_count(),
            "processor": platform.processor(),
            "load": [round(x, 1) for x in os.getloadavg()],
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--steps", type=int, default=2_000)
    parser.add_argument("--peer", default=None)
    options = parser.parse_args()
    print(json.dumps(run(options.repetitions, options.steps, options.peer), indent=2))


if __name__ == "__main__":
    main()
