"""A maze-like MDP from a function, matrix-free: matrix_free.py SIDE DISCOUNT TOLERANCE SWEEPS.

SIDE × SIDE cells, slippery, 1 in 8 of them walls by a hash of their number; SWEEPS 0 for as many as
it takes. Prints JSON: sweeps, seconds, sweeps per minute, the bound and the peak memory.
"""

import json
import resource
import sys
import time


def main(side: str, discount: str, tolerance: str, sweeps: str) -> None:
    import jax.numpy as jnp

    import momentum_rl

    n = int(side)
    moves = jnp.array([[-1, 0], [0, 1], [1, 0], [0, -1]])

    def wall(cell):
        mixed = (cell.astype(jnp.uint32) * jnp.uint32(2654435761)) >> 16
        return (mixed % 8 == 0) & (cell != n * n - 1)

    def successors(s, a):
        def to(a):
            i, j = s // n + moves[a % 4, 0], s % n + moves[a % 4, 1]
            cell = i * n + j
            open_ = (i >= 0) & (i < n) & (j >= 0) & (j < n) & ~wall(cell)
            return jnp.where(open_, cell, s)

        end = s == n * n - 1
        there = jnp.stack([to(a), to(a + 3), to(a + 1)])
        return jnp.where(end, s, there), jnp.array([0.8, 0.1, 0.1]), jnp.where(end, 0.0, -1.0)

    mdp = momentum_rl.FiniteMDP.from_function(n * n, 4, successors, float(discount), store=False)
    began = time.perf_counter()
    found = mdp.solve(tolerance=float(tolerance), iterations=int(sweeps) or None)
    seconds = time.perf_counter() - began
    print(
        json.dumps(
            {
                "states": n * n,
                "sweeps": found.iterations,
                "seconds": seconds,
                "sweeps_per_minute": 60 * found.iterations / seconds,
                "bound": found.bound,
                "converged": found.converged,
                "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
            }
        )
    )


main(*sys.argv[1:])
