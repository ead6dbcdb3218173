"""mdpsolver on an MDP file: solve_mdpsolver.py METHOD FILE TOLERANCE AGAIN OUT; v* goes to OUT.

It takes Python lists only; making them is part of its "load", not of the time of its solver.
"""

import sys

from stopwatch import measure, report


def main(method: str, file: str, tolerance: str, again: str, out: str) -> None:
    import mdpsolver
    import numpy as np

    def load():
        with np.load(file, allow_pickle=False) as arrays:
            there = ~np.isneginf(arrays["rewards"])

            def by_state(name):
                return [rows[has].tolist() for rows, has in zip(arrays[name], there)]

            model = mdpsolver.model()
            model.mdp(
                discount=float(arrays["discount"]),
                rewards=by_state("rewards"),
                tranMatProbs=by_state("probabilities"),
                tranMatColumns=by_state("successors"),
            )
        return model

    def work(model):
        model.solve(algorithm=method, tolerance=float(tolerance))
        return model

    model, facts = measure(load, work, int(again))
    np.save(out, np.array(model.getValueVector()))
    report(facts)


main(*sys.argv[1:])
