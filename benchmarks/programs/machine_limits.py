"""What the machine can do, with as many threads as cores: machine_limits.py STATES.

- copy: GB/s, read and written, of arrays far larger than the caches;
- gathers: millions/s of v[i] at random i, v having STATES entries, i streaming from memory: the
  part of a sweep that no implementation can avoid.
"""

import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
from stopwatch import report


@numba.njit(nogil=True, fastmath=True)
def gathered(v, index):
    total = 0.0
    for i in index:
        total += v[i]
    return total


def best(work, parts, repetitions=7) -> float:
    """The least seconds that the parts took side by side."""
    with ThreadPoolExecutor(len(parts)) as pool:
        times = []
        for _ in range(repetitions):
            begin = time.perf_counter()
            list(pool.map(work, parts))
            times.append(time.perf_counter() - begin)
    return min(times)


def main(states: int) -> None:
    threads = os.cpu_count() or 1
    source = np.ones(1 << 27)  # 1 GB
    target = np.zeros_like(source)
    halves = list(zip(np.array_split(source, threads), np.array_split(target, threads)))
    copy = 2 * source.nbytes / best(lambda pair: np.copyto(pair[1], pair[0]), halves) / 1e9
    del source, target, halves
    rng = np.random.default_rng(0)
    v = rng.random(states)
    index = rng.integers(0, states, 1 << 25, dtype=np.int32)
    gathered(v, index[:1])
    gathers = index.size / best(lambda i: gathered(v, i), np.array_split(index, threads)) / 1e6
    report({"threads": threads, "copy_gb_s": copy, "gathers_m_s": gathers})


main(int(sys.argv[1]))
