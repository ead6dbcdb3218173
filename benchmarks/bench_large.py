"""MDPs near the machine's limits: 10⁷ states.

    python benchmarks/bench_large.py [--states 10000000] [--repetitions 1] [--folder DIR]

Nothing is compared with a peer here, but with what was promised: a Garnet of 4 actions and 4
successors at γ = .99 is read and solved to 1e-6 within 2.2 times the bytes of its own arrays. The
sweeps' bandwidth is compared with the machine's own limits for copies and random gathers. Each
program runs in a process of its own, which measures its own time and peak memory. Prints JSON.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import peers
from bench_solve import ACTIONS, BRANCHING, DISCOUNT, TOLERANCE, sweep_bytes
from processes import ProgramFailed, medians, program, repetition, say, stage

TIMES_THE_MODEL = 2.2


def model_bytes(states: int) -> int:
    """Successors of 4 bytes and probabilities of 8 for every branch, a reward for every pair."""
    return states * ACTIONS * (BRANCHING * (4 + 8) + 8)


def stored(states: int, repetitions: int, folder: Path | None) -> dict[str, Any]:
    """The Garnet in a file, solved as `movi solve` would, and by plain sweeps of value iteration.

    The first is what a user waits for; the second makes all its sweeps alike, so that its time
    tells the bandwidth of one.
    """
    size, runs = f"{states:,} states stored", []
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        file, answer = Path(scratch) / "garnet.npz", Path(scratch) / "v.npy"
        with stage("large", size, "the Garnet"):
            program(sys.executable, "write_garnet", file, states, ACTIONS, BRANCHING, DISCOUNT, 0)
        for number in range(repetitions):
            facts = {}
            for method in ("auto", "avi"):
                words = (method, file, TOLERANCE, 0, answer)
                with stage("large", size, repetition(number, repetitions), method):
                    facts[method] = program(sys.executable, "solve_movi", *words)
                if not facts[method]["converged"]:
                    raise ProgramFailed(f"{size}: proven to {facts[method]['bound']:.2g} only")
            runs.append(facts)
    figures = ("first", "load", "whole", "peak_first_mb", "sweeps")
    median = {name: medians([run[name] for run in runs], figures) for name in ("auto", "avi")}
    seconds = median["avi"]["first"] / (median["avi"]["sweeps"] + 1)  # one more proves the bound
    return {
        "states": states,
        "model_gb": model_bytes(states) / 1e9,
        "peak_gb": max(m["peak_first_mb"] for m in median.values()) * 2**20 / 1e9,
        "how": runs[0]["auto"]["how"],
        "median": median,
        "seconds_per_sweep": seconds,
        "gb_s": sweep_bytes(states) / seconds / 1e9,
        "gathers_m_s": states * ACTIONS * BRANCHING / seconds / 1e6,
        "repetitions": runs,
    }


def row(work: str, unit: str, ours: float, peer: str, theirs: float, **more: Any) -> dict[str, Any]:
    """A row for the table; ``more`` has the ratio and what it has to reach."""
    return {
        "work": work,
        "unit": unit,
        "movi": ours,
        "peer": peer,
        "peer_figure": theirs,
        "to_reach": None,
        **more,
    }


def comparisons(garnet: dict[str, Any], limits: dict[str, Any] | None) -> list[dict[str, Any]]:
    """What was promised, and the machine's limits if they could be measured."""
    at = f"{garnet['states']:,} states stored"
    allowed = TIMES_THE_MODEL * garnet["model_gb"]
    rows = [
        row(
            f"{at}, peak memory",
            "GB",
            garnet["peak_gb"],
            f"{TIMES_THE_MODEL:g} × the model",
            allowed,
            ratio=allowed / garnet["peak_gb"],
            to_reach=1.0,
        ),
    ]
    for figure, unit, name in (("gb_s", "GB/s", "copies"), ("gathers_m_s", "M/s", "gathers")):
        if limits is not None:
            limit = limits["copy_gb_s" if figure == "gb_s" else figure]
            ours, peer = garnet[figure], f"the machine's {name}"
            rows.append(row(f"{at}, a sweep", unit, ours, peer, limit, ratio=ours / limit))
    return rows


def remarks(garnet: dict[str, Any]) -> list[str]:
    """In words, what has no other figure beside it."""
    auto, sweeps = garnet["median"]["auto"], garnet["median"]["avi"]
    return [
        f"{garnet['states']:,} states stored ({garnet['model_gb']:.3g} GB): read in "
        f"{auto['load']:.3g} s, solved by {garnet['how']} in {auto['first']:.3g} s, by "
        f"{sweeps['sweeps']:.0f} plain sweeps in {sweeps['first']:.3g} s, compilation included; "
        f"a sweep takes {garnet['seconds_per_sweep']:.3g} s.",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--states", type=int, default=10_000_000, help="of the stored Garnet")
    parser.add_argument("--repetitions", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=None, help="for scratch files (2.3 GB)")
    options = parser.parse_args()
    limits, record = None, {"benchmark": "large"}
    try:
        peers.set_up()
        garnet = stored(options.states, options.repetitions, options.folder)
    except (peers.PeerMissing, ProgramFailed) as reason:
        sys.exit(f"large: {reason}")
    try:
        with stage("large", "the machine's limits"):
            limits = program(peers.PYTHON, "machine_limits", options.states)
    except ProgramFailed as reason:
        record["limits_failed"] = str(reason)
        say(f"large, the machine's limits: {reason}")
    record |= {
        "work": f"a Garnet, {ACTIONS} actions, {BRANCHING} successors, discount {DISCOUNT}, to "
        f"{TOLERANCE:g}",
        "limits": limits,
        "stored": garnet,
        "comparisons": comparisons(garnet, limits),
        "remarks": remarks(garnet),
    }
    print(json.dumps(record, indent=2))


if __name__ == "__main__":
    main()
