"""`momentum_rl.solve` where sweeps are slow: mazes and inventories, γ close to 1, and peers.

    python benchmarks/bench_slow.py [--states 100000 1000000] [--discounts 0.999 0.9999]
                                    [--repetitions 1] [--patience 1.5]

To 1e-6 in the sup norm, measured against a certified answer. QuantEcon has its three methods and
counts with its best. A peer has the time in which its ratio would be the one to reach, times the
patience; one that has not ended then counts as that long, and the ratio is a lower bound. Each
program runs in a process of its own, which measures its own solve, when everything is compiled:
movi's second, QuantEcon's after one of two states (mdpsolver compiles nothing). Prints JSON.
"""

import argparse
import json
import math
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import momentum_rl
import peers
from families import Inventory
from momentum_rl.mdp.families import Maze
from processes import ProgramFailed, medians, program, repetition, say, stage

TOLERANCE = 1e-6
METHODS = {
    "QuantEcon vi": ("solve_quantecon", "vi", "quantecon"),
    "QuantEcon mpi": ("solve_quantecon", "mpi", "quantecon"),
    "QuantEcon pi": ("solve_quantecon", "pi", "quantecon"),
    "mdpsolver": ("solve_mdpsolver", "mpi", "mdpsolver"),
}
TO_REACH = {0.999: 3.0, 0.9999: 10.0}


def problem_of(family: str, states: int, discount: float) -> momentum_rl.FiniteMDP:
    """A maze with 30 % walls, or an inventory that counts in tens of money and is cheap to hold.

    So its values (7,400 at γ = .9999) are small enough for float64 to prove 1e-6.
    """
    if family == "maze":
        return Maze(size=math.isqrt(states), walls=0.3, discount=discount).mdp()
    return Inventory(
        size=states - 1,
        lot=3,
        orders=3,
        demand=4,
        price=0.4,
        unit=0.2,
        setup=0.3,
        holding=0.1 / states,
        discount=discount,
    ).mdp()


def measure(
    family: str, states: int, discount: float, options: argparse.Namespace, failed: dict[str, str]
) -> dict[str, Any]:
    """One problem, all programs."""
    at = f"{family}, {states:,} states, γ = {discount}"
    problem = {"family": family, "states": states, "discount": discount}
    with tempfile.TemporaryDirectory(dir=options.folder) as scratch:
        file, answer = Path(scratch) / "m.npz", Path(scratch) / "v.npy"
        momentum_rl.save_mdp(problem_of(family, states, discount), file)
        runs = []
        repetitions = options.repetitions
        for number in range(repetitions):
            with stage("slow", at, repetition(number, repetitions), "movi"):
                facts = program(sys.executable, "solve_movi", "auto", file, TOLERANCE, 1, answer)
            facts["solve"] = facts.pop("again")[0]
            if not facts["converged"]:  # no figure, and the other problems go on
                say(f"{at}: movi proved {facts['bound']:.2g} only")
                return {**problem, "missed": facts["bound"]}
            runs.append(facts)
        certified, ours = np.load(answer), medians(runs, ("solve", "first", "peak_mb"))
        patience = options.patience * TO_REACH.get(discount, 10.0) * ours["solve"]
        say(f"{at}: movi {ours['solve']:.1f} s by {runs[0]['how']}; peers have {patience:.0f} s")
        theirs: dict[str, Any] = {}
        for name, (file_of, method, peer) in METHODS.items():
            if peer in failed:
                theirs[name] = {"failed": failed[peer]}
                continue
            try:
                words = (method, file, TOLERANCE, 0, answer)
                facts = program(peers.PYTHON, file_of, *words, patience=patience)
                error = float(np.abs(np.load(answer) - certified).max())
                theirs[name] = {"solve": facts["first"], "error": error}
            except ProgramFailed as reason:
                theirs[name] = {"failed": str(reason), "solve": patience}
            say(f"{at}: {name}: {theirs[name]}")
    return {
        **problem,
        "movi": {**ours, "how": runs[0]["how"], "bound": runs[0]["bound"]},
        "peers": theirs,
    }


def comparison(result: dict[str, Any], peer: str) -> dict[str, Any] | None:
    """movi beside a peer at its best; those that did not end count as the patience."""
    work = f"{result['family']}, {result['states']:,} states, γ = {result['discount']}"
    if "missed" in result:
        return {
            "work": f"{work}: proven",
            "unit": "v",
            "movi": result["missed"],
            "peer": "the tolerance",
            "peer_figure": TOLERANCE,
            "ratio": TOLERANCE / result["missed"],
            "to_reach": 1.0,
        }
    own = [x for name, x in result["peers"].items() if name.startswith(peer) and "solve" in x]
    if not own:
        return None
    best = min(own, key=lambda x: x["solve"])
    ended = "failed" not in best
    return {
        "work": work if ended else f"{work} ({peer} did not end)",
        "unit": "s",
        "movi": result["movi"]["solve"],
        "peer": peer,
        "peer_figure": best["solve"],
        "ratio": best["solve"] / result["movi"]["solve"],
        "to_reach": TO_REACH.get(result["discount"]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--states", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--discounts", type=float, nargs="+", default=[0.999, 0.9999])
    parser.add_argument("--families", nargs="+", default=["maze", "inventory"])
    parser.add_argument("--repetitions", type=int, default=1)
    parser.add_argument("--patience", type=float, default=1.5, help="of a peer, in ratios to reach")
    parser.add_argument("--folder", type=Path, default=None, help="for scratch files (0.5 GB)")
    options = parser.parse_args()
    try:
        failed = peers.set_up()
        results = [
            measure(family, states, discount, options, failed)
            for family in options.families
            for states in options.states
            for discount in options.discounts
        ]
    except (peers.PeerMissing, ProgramFailed) as reason:
        sys.exit(f"slow: {reason}")
    rows = [
        comparison(one, peer)
        for one in results
        for peer in ("QuantEcon", "mdpsolver")[: 1 if "missed" in one else 2]
    ]
    record = {
        "benchmark": "slow",
        "work": f"mazes with 30 % walls and inventories, to {TOLERANCE:g} in the sup norm",
        "peers": peers.versions(),
        "problems": results,
        "comparisons": [row for row in rows if row],
    }
    print(json.dumps(record, indent=2))


if __name__ == "__main__":
    main()
