"""Agent steps per second of DQN in compiled loops: this package, rejax and stable-baselines3.

Two tasks, one seed, the same network, batch and update period for all, learning from step 1,000 on:

    minatar   Breakout, conv 16@3×3 + dense 128, batch 32, one update every 4 steps
    cartpole  CartPole-v1, two layers of 64, batch 64, one update per step

Timed: the same number of steps after learning has started and everything is compiled. The programs
alternate, repetition by repetition, in processes of their own. Then this package's MinAtar update
alone against the matrix-multiply peak, both on the one thread that the loop has. What differs by
nature: rejax makes one update per step of all its environments, so that an update every 4 steps
means 4 environments; it and movi play gymnax's games, stable-baselines3 the originals.

    python benchmarks/bench_fused.py [--repetitions 3] [--rejax PYTHON] [--sb3 PYTHON]

``--rejax`` and ``--sb3`` are interpreters that have the peers; without them environments are made
(``.venv-fused-rejax``, ``.venv-fused-sb3``, pinned below). The result is printed as JSON.
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
PROGRAMS = ROOT / "benchmarks" / "programs"
# Installed in this order: torch by its exact pin first.
PINS = {
    "rejax": (("rejax==0.1.3", "gymnax==0.0.9", "jax==0.10.2"),),
    "sb3": (
        ("torch==2.13.0",),
        ("torch==2.13.0", "stable-baselines3==2.9.2", "gymnasium==1.3.0", "minatar==1.0.15"),
    ),
}
WARM = 2_000
STEPS = {"movi": 40_000, "rejax": 10_000, "sb3": 4_000}
TO_REACH = {("minatar", "rejax"): 3.0, ("minatar", "sb3"): 8.0, ("cartpole", "rejax"): 2.0}
WORK = {
    "minatar": "DQN, MinAtar Breakout, conv 16 + dense 128, batch 32, an update every 4 steps",
    "cartpole": "DQN, CartPole-v1, 2x64, batch 64, an update per step",
}
UNIT = "agent steps per second while learning"


def peer_python(name: str, given: str | None) -> str:
    """The interpreter that has a peer, made if need be."""
    if given:
        return given
    home = ROOT / f".venv-fused-{name}"
    python = home / "bin" / "python"
    if not (home / ".ready").exists():
        with stage("fused", f"setting up {home.name}"):
            subprocess.run([sys.executable, "-m", "venv", home], check=True)
            for pins in PINS[name]:
                subprocess.run([python, "-m", "pip", "install", "-q", *pins], check=True)
            (home / ".ready").touch()
    return str(python)


def figures(python: str, program: str, *arguments: object) -> list[float]:
    """The figures that a program prints last."""
    words = [python, str(PROGRAMS / f"fused_{program}.py"), *map(str, arguments)]
    path = {"PYTHONPATH": str(ROOT / "src")} if program in ("movi", "update") else {}
    done = subprocess.run(
        words,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env={**os.environ, **path},
        timeout=900,
    )
    return [float(word) for word in done.stdout.splitlines()[-1].split()]


def run(repetitions: int, rejax: str | None = None, sb3: str | None = None) -> dict:
    """All repetitions, the medians and the ratios."""
    pythons = {
        "movi": sys.executable,
        "rejax": peer_python("rejax", rejax),
        "sb3": peer_python("sb3", sb3),
    }
    speeds: dict[str, list[float]] = {}

    def measure(number: int, name: str, python: str, who: str, *arguments: object) -> None:
        with stage("fused", repetition(number, repetitions), name):
            (speed,) = figures(python, who, *arguments)
        speeds.setdefault(name, []).append(speed)

    for number in range(repetitions):
        for task in WORK:
            for who, python in pythons.items():
                measure(number, f"{task} {who}", python, who, task, WARM, STEPS[who])
    medians = {name: round(statistics.median(values), 1) for name, values in speeds.items()}
    with stage("fused", "the update alone"):
        update, peak, seconds = figures(sys.executable, "update")
    rows = [
        {
            "work": WORK[task],
            "unit": UNIT,
            "movi": medians[f"{task} movi"],
            "peer": {"sb3": "stable-baselines3"}.get(who, who),
            "peer_figure": medians[f"{task} {who}"],
            "ratio": round(medians[f"{task} movi"] / medians[f"{task} {who}"], 2),
            "to_reach": TO_REACH.get((task, who)),
        }
        for task in WORK
        for who in ("rejax", "sb3")
    ]
    return {
        "benchmark": "fused",
        "comparisons": rows,
        "median": medians,
        "repetitions": {name: [round(v, 1) for v in values] for name, values in speeds.items()},
        "update": {
            "work": "MinAtar DQN update in a compiled loop, one thread",
            "milliseconds": round(1e3 * seconds, 3),
            "gflops": round(update, 1),
            "matrix_multiply_gflops": round(peak, 1),
            "share": round(update / peak, 3),
        },
        "peers": PINS,
        "machine": {
            "cores": os.cpu_count(),
            "processor": platform.processor(),
            "load": [round(x, 1) for x in os.getloadavg()],
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--rejax", default=None)
    parser.add_argument("--sb3", default=None)
    options = parser.parse_args()
    print(json.dumps(run(options.repetitions, options.rejax, options.sb3), indent=2))


if __name__ == "__main__":
    main()
