"""movi on an MDP file: solve_movi.py METHOD FILE TOLERANCE AGAIN OUT; v* goes to OUT.

METHOD is a scheme of `momentum_rl.solve`, "auto" for none, or "optimum".
"""

import sys

from stopwatch import measure, report


def main(method: str, file: str, tolerance: str, again: str, out: str) -> None:
    import numpy as np

    import momentum_rl

    def work(mdp):
        if method == "optimum":
            return momentum_rl.optimum(mdp, tolerance=float(tolerance))
        scheme = None if method == "auto" else method
        return momentum_rl.solve(mdp, scheme, tolerance=float(tolerance))

    result, facts = measure(lambda: momentum_rl.load_mdp(file), work, int(again))
    np.save(out, result.q.max(1))
    report(
        {
            **facts,
            "sweeps": getattr(result, "iterations", None),
            "how": getattr(result, "scheme", None),
            "evaluations": getattr(result, "evaluations", None),
            "bound": float(result.bound),
            "converged": bool(result.converged),
        }
    )


main(*sys.argv[1:])
