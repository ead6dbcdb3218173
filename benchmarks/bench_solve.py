"""`momentum_rl.solve` to 1e-6 at γ = .99 on large Garnets, against QuantEcon and mdpsolver.

    python benchmarks/bench_solve.py [--states 1000 100000 1000000] [--repetitions 5] [--folder DIR]

Every program reads the same file, written by `momentum_rl.save_mdp`. They take turns, repetition by
repetition, each time in a process of its own, which measures its own time and peak memory. What is
compared is the second solve in a process, when everything is compiled (mdpsolver, which compiles
nothing and would start its second solve from its first answer: the first); the first solve and the
whole program, imports and reading the file included, are reported as well. The command `movi solve`
on a small file, and the peers' programs, are timed from outside, too. Prints JSON.
"""

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import peers
from processes import ProgramFailed, medians, program, repetition, say, seconds, stage

ACTIONS, BRANCHING, DISCOUNT, TOLERANCE = 4, 4, 0.99, 1e-6
PATIENCE = 900.0  # seconds for one process
SMALL, LARGE = 1_000, 1_000_000
HERE = Path(__file__).resolve().parent


class Program(NamedTuple):
    """A file of ``programs/``, its method, and the peer that it needs."""

    file: str
    method: str
    peer: str | None = None
    compiles: bool = True
    at_most: int = 100  # repetitions at LARGE states and beyond


PROGRAMS = {
    "movi solve": Program("solve_movi", "avi"),
    "movi optimum": Program("solve_movi", "optimum"),
    "QuantEcon": Program("solve_quantecon", "mpi", "quantecon"),
    # By far the slowest at this size (minutes on a busy machine), so once: no median, no spread.
    "mdpsolver": Program("solve_mdpsolver", "mpi", "mdpsolver", compiles=False, at_most=1),
}


def sweep_bytes(states: int) -> int:
    """What one sweep of AVI has to move: the model and the old table in, the new table out.

    Per (s, a): B successors of 4 bytes and B probabilities of 8, a reward, q read and written;
    per state v written and read. The gathers of v are counted apart.
    """
    return states * ACTIONS * (BRANCHING * (4 + 8) + 8 + 2 * 8) + states * 2 * 8


def measure(states: int, repetitions: int, folder: Path, failed: dict[str, str]) -> dict[str, Any]:
    """All programs on a Garnet of this size."""
    file, answer = folder / f"garnet-{states}.npz", folder / "v.npy"
    reference, size = folder / "reference.npy", f"{states:,} states"
    with stage("solve", size, "the Garnet and its reference"):
        program(sys.executable, "write_garnet", file, states, ACTIONS, BRANCHING, DISCOUNT, 0)
        certified = program(sys.executable, "solve_movi", "optimum", file, 1e-11, 0, reference)
    if not certified["bound"] <= TOLERANCE / 100:  # float64 may forbid 1e-11, but not this
        raise ProgramFailed(f"the reference is only proven to {certified['bound']:.2g}")
    best = np.load(reference)
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in PROGRAMS}
    failures = {name: failed[p.peer] for name, p in PROGRAMS.items() if p.peer in failed}
    for number in range(repetitions):
        for name, chosen in PROGRAMS.items():
            if name in failures or (states >= LARGE and number >= chosen.at_most):
                continue
            python = peers.PYTHON if chosen.peer else sys.executable
            again = int(chosen.compiles)
            words = (chosen.method, file, TOLERANCE, again, answer)
            try:
                with stage("solve", size, repetition(number, repetitions), name):
                    facts = program(python, chosen.file, *words, timeout=PATIENCE)
            except ProgramFailed as reason:
                if chosen.peer is None:
                    raise  # without our own figure there is nothing to compare
                failures[name] = str(reason)
                say(f"solve, {states:,} states, {name}: {reason}")
                continue
            if not facts.pop("converged", True):
                raise ProgramFailed(f"{name} did not reach {TOLERANCE:g}")
            facts["error"] = float(np.abs(np.load(answer) - best).max())
            facts["solve"] = statistics.median(facts.pop("again") or [facts["first"]])
            runs[name].append(facts)
            say(
                f"solve, {states:,} states, {name}: {facts['solve']:.3f} s "
                f"(first {facts['first']:.2f} s), {facts['peak_first_mb']:.0f} MB"
            )
    figures = ("solve", "first", "load", "whole", "peak_first_mb", "peak_mb", "error")
    file.unlink()
    return {
        "states": states,
        "reference_bound": certified["bound"],
        "median": {name: medians(each, figures) for name, each in runs.items() if each},
        "repetitions": {name: each for name, each in runs.items() if each},
        "failed": failures,
    }


def bandwidth(size: dict[str, Any], limits: dict[str, Any]) -> dict[str, Any]:
    """How near our sweeps come to the machine's limits; the whole solve is counted as sweeps."""
    states, runs = size["states"], size["repetitions"]["movi solve"]
    sweeps = runs[0]["sweeps"] + 1  # one more proves the bound
    seconds = size["median"]["movi solve"]["solve"] / sweeps
    copied = sweep_bytes(states) / seconds / 1e9
    gathered = states * ACTIONS * BRANCHING / seconds / 1e6
    return {
        "sweeps": sweeps,
        "seconds_per_sweep": seconds,
        "bytes_per_sweep": sweep_bytes(states),
        "gb_s": copied,
        "of_copy": copied / limits["copy_gb_s"],
        "gathers_m_s": gathered,
        "of_gathers": gathered / limits["gathers_m_s"],
    }


def comparisons(size: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows for the table: time and memory against each peer."""
    states, medians_ = size["states"], size["median"]
    rows = []
    for ours in ("movi solve", "movi optimum"):
        for peer in ("QuantEcon", "mdpsolver")[: 2 if ours == "movi solve" else 1]:
            if peer not in medians_:
                continue
            aim = ours == "movi solve" and peer == "QuantEcon" and states == LARGE
            work = f"{ours}, {states:,} states"
            for figure, unit, what, reach in (
                ("solve", "s", "compiled", 2.0),
                ("whole", "s", "whole program", None),
                ("peak_first_mb", "MB", "peak memory, one solve", 1.0),
                ("peak_mb", "MB", "peak memory, solved twice", 1.0),
            ):
                a, b = medians_[ours][figure], medians_[peer][figure]
                rows.append(
                    {
                        "work": f"{work}, {what}",
                        "unit": unit,
                        "movi": a,
                        "peer": peer,
                        "peer_figure": b,
                        "ratio": b / a,
                        "to_reach": reach if aim else None,
                    }
                )
    return rows


def start_up(repetitions: int, folder: Path, failed: dict[str, str]) -> dict[str, Any]:
    """`movi solve FILE` on a small problem, from the start of its process to its end, and peers."""
    file, answer, size = folder / "small.npz", folder / "v.npy", f"{SMALL:,} states"
    program(sys.executable, "write_garnet", file, SMALL, ACTIONS, BRANCHING, DISCOUNT, 0)
    commands: dict[str, tuple[object, ...]] = {
        "movi solve": (sys.executable, "-m", "momentum_rl", "solve", file)
    }
    for name, chosen in PROGRAMS.items():
        if chosen.peer is not None and chosen.peer not in failed:
            words = (HERE / "programs" / f"{chosen.file}.py", chosen.method, file, TOLERANCE, 0)
            commands[name] = (peers.PYTHON, *words, answer)
    times: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(repetitions):
        for name, words in commands.items():
            try:
                with stage("solve", size, repetition(number, repetitions), f"{name}, start to end"):
                    times[name].append(seconds(*words))
            except ProgramFailed as reason:
                if name == "movi solve":
                    raise
                say(f"solve, {size}, {name}: {reason}")
    median = {name: statistics.median(each) for name, each in times.items() if each}
    return {"states": SMALL, "repetitions": times, "median": median}


def start_up_rows(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows for the table: as quick as QuantEcon from a standing start."""
    ours = found["median"]["movi solve"]
    return [
        {
            "work": f"the command movi solve, {found['states']:,} states, start to end",
            "unit": "s",
            "movi": ours,
            "peer": peer,
            "peer_figure": theirs,
            "ratio": theirs / ours,
            "to_reach": 1.0 if peer == "QuantEcon" else None,
        }
        for peer, theirs in found["median"].items()
        if peer != "movi solve"
    ]


def run(states: list[int], repetitions: int = 5, folder: Path | None = None) -> dict[str, Any]:
    """All sizes."""
    failed = peers.set_up()
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        begun = start_up(repetitions, Path(scratch), failed)
        sizes = [measure(n, repetitions, Path(scratch), failed) for n in states]
    result: dict[str, Any] = {
        "benchmark": "solve",
        "work": f"Garnets, {ACTIONS} actions, {BRANCHING} successors, discount {DISCOUNT}, "
        f"to {TOLERANCE:g} in the sup norm",
        "notes": "medians; 'compiled' is the second solve in a process (mdpsolver: the first); "
        "bytes per sweep are the model once, q twice and v twice",
        "peers": peers.versions(),
        "sizes": sizes,
        "start_up": begun,
        "comparisons": [*start_up_rows(begun), *(r for size in sizes for r in comparisons(size))],
    }
    try:
        for size in sizes:
            size["limits"] = program(peers.PYTHON, "machine_limits", size["states"])
            size["sweep"] = bandwidth(size, size["limits"])
    except ProgramFailed as reason:
        result["limits_failed"] = str(reason)
        say(f"solve, the machine's limits: {reason}")
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--states", type=int, nargs="+", default=[1_000, 100_000, LARGE])
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=None, help="for scratch files (0.3 GB)")
    options = parser.parse_args()
    try:
        print(json.dumps(run(options.states, options.repetitions, options.folder), indent=2))
    except (peers.PeerMissing, ProgramFailed) as reason:
        sys.exit(f"solve: {reason}")


if __name__ == "__main__":
    main()
