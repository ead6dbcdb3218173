"""The paper's comparison (4 schemes × 100 Garnets × 10,000 iterations), against NumPy.

    python benchmarks/bench_compare.py [--repetitions 3] [--full]

Both measure the exact error of the greedy policy at every iteration. The other side is
`programs/numpy_compare.py`, vectorised over the Garnets. It takes minutes, the same for every
iteration, so it runs a tenth of the iterations and its time is multiplied by ten; `--full` runs all
of them. Both are checked against each other first: on Garnets with one successor, where sampling
has no choice, they must agree to rounding; on the paper's, statistically. Prints JSON.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from processes import ProgramFailed, medians, program, repetition, say, stage

STATES, ACTIONS, BRANCHING, DISCOUNT, GARNETS = 30, 4, 4, 0.9, 100
SCHEMES = ("avi", "movi", "sql", "dpp")


def errors(name: str, file: Path, iterations: int, again: int = 0) -> tuple[Any, dict[str, Any]]:
    """‖q* − q_{π_k}‖ ([schemes, K, M], 1-norm and ∞), and what it took."""
    out = file.with_suffix(".out.npz")
    facts = program(sys.executable, name, file, iterations, again, out, timeout=3_600)
    with np.load(out, allow_pickle=False) as arrays:
        return (arrays["l1"], arrays["sup"]), facts


def same_when_nothing_is_random(folder: Path, iterations: int = 300) -> float:
    """The largest difference of an error on 20 Garnets whose transitions are deterministic."""
    file = folder / "deterministic.npz"
    program(sys.executable, "write_garnet", file, STATES, ACTIONS, 1, DISCOUNT, 20)
    ours, theirs = (errors(name, file, iterations)[0] for name in ("movi_compare", "numpy_compare"))
    difference = max(float(np.abs(a - b).max()) for a, b in zip(ours, theirs))
    if difference > 1e-9:
        raise ProgramFailed(f"the two disagree by {difference:.2g} on deterministic Garnets")
    return difference


def standard_errors(ours: np.ndarray, theirs: np.ndarray) -> dict[str, float]:
    """Per scheme, how far apart the two are: the error over the second half of the iterations.

    Same Garnets, other samples: a paired difference per Garnet, its mean in standard errors.
    """
    iterations = theirs.shape[1]
    late = slice(iterations // 2, iterations)
    difference = ours[:, late].mean(1) - theirs[:, late].mean(1)
    z = difference.mean(-1) / (difference.std(-1, ddof=1) / np.sqrt(difference.shape[-1]))
    apart = dict(zip(SCHEMES, map(float, z)))
    if max(map(abs, apart.values())) > 5:
        raise ProgramFailed(f"the two disagree, in standard errors: {apart}")
    return apart


def run(repetitions: int = 3, iterations: int = 10_000, full: bool = False) -> dict[str, Any]:
    """All repetitions, the two in turns."""
    fewer = iterations if full else max(1, iterations // 10)
    runs: dict[str, list[dict[str, Any]]] = {"movi": [], "NumPy": []}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        with stage("compare", "both on deterministic Garnets"):
            exact = same_when_nothing_is_random(folder)
        file = folder / "garnets.npz"
        shape = (STATES, ACTIONS, BRANCHING)
        program(sys.executable, "write_garnet", file, *shape, DISCOUNT, GARNETS)
        for number in range(repetitions):
            with stage("compare", repetition(number, repetitions), "movi"):
                (ours, _), facts = errors("movi_compare", file, iterations, again=1)
            facts["compiled"] = facts.pop("again")[0]
            runs["movi"].append(facts)
            say(f"compare, movi: {facts['compiled']:.2f} s (first {facts['first']:.2f} s)")
            with stage("compare", repetition(number, repetitions), "NumPy"):
                (theirs, _), facts = errors("numpy_compare", file, fewer)
            del facts["again"]
            facts["measured_iterations"] = fewer
            facts["compiled"] = facts["first"] * iterations / fewer  # there is nothing to compile
            runs["NumPy"].append(facts)
            say(f"compare, NumPy: {facts['first']:.2f} s for {fewer:,} iterations")
        apart = standard_errors(ours, theirs)
    median = {name: medians(each, ("compiled", "first", "peak_mb")) for name, each in runs.items()}
    theirs_scaled = median["NumPy"]["compiled"]
    scaled = "" if full else " (scaled)"
    work = f"compare, 4 schemes × {GARNETS} Garnets × {iterations:,} iterations"

    def row(what: str, figure: str, peer_figure: float, unit: str, reach: float | None) -> dict:
        mine = median["movi"][figure]
        return {
            "work": f"compare, {what}",
            "unit": unit,
            "movi": mine,
            "peer": f"NumPy{scaled}" if unit == "s" else "NumPy",
            "peer_figure": peer_figure,
            "ratio": peer_figure / mine,
            "to_reach": reach,
        }

    return {
        "benchmark": "compare",
        "work": f"{work}, the exact error at every iteration",
        "notes": f"medians; NumPy ran {fewer:,} iterations and is scaled to {iterations:,}",
        "agreement": {"deterministic": exact, "standard_errors": apart},
        "median": median,
        "repetitions": runs,
        "comparisons": [
            row("compiled", "compiled", theirs_scaled, "s", 10.0),
            row("first call", "first", theirs_scaled, "s", None),
            row("peak memory", "peak_mb", median["NumPy"]["peak_mb"], "MB", None),
        ],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--iterations", type=int, default=10_000)
    parser.add_argument("--full", action="store_true", help="NumPy runs every iteration as well")
    options = parser.parse_args()
    try:
        print(json.dumps(run(options.repetitions, options.iterations, options.full), indent=2))
    except ProgramFailed as reason:
        sys.exit(f"compare: {reason}")


if __name__ == "__main__":
    main()
