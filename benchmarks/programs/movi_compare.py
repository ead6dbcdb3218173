"""`momentum_rl.compare_schemes` on a file of Garnets: movi_compare.py FILE ITERATIONS AGAIN OUT."""

import sys

from stopwatch import measure, report


def main(file: str, iterations: str, again: str, out: str) -> None:
    import numpy as np

    import momentum_rl

    result, facts = measure(
        lambda: momentum_rl.load_mdp(file),
        lambda mdps: momentum_rl.compare_schemes(mdps, iterations=int(iterations)),
        int(again),
    )
    np.savez(out, l1=result.l1, sup=result.sup)
    report(facts)


main(*sys.argv[1:])
