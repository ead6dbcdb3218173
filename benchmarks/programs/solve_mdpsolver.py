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
            ends = arrays["offsets"][1:-1] if "offsets" in arrays else None

            def by_state(name):
                array = arrays[name]
                return (
                    array.tolist() if ends is None else [x.tolist() for x in np.split(array, ends)]
                )

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
