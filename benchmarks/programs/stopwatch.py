"""What every measured program shares: what is timed, its peak memory, how it reports.

A program imports this before anything heavy, so that its imports count as well.
"""

import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

STARTED = time.perf_counter()


def measure(
    load: Callable[[], Any], work: Callable[[Any], Any], again: int
) -> tuple[Any, dict[str, Any]]:
    """Load, work once, and ``again`` times more; the last result, and what it took.

    ``first`` includes compilation, ``again`` does not; ``whole`` is all there is to wait for from
    the start of the program to its first result. ``peak_first_mb`` is the peak memory up to there,
    ``peak_mb`` that of the whole process. The first work has PATIENCE seconds, if that is set: then
    SIGALRM ends the process, in compiled code too.
    """
    begin = time.perf_counter()
    model = load()
    loaded = time.perf_counter()
    signal.setitimer(signal.ITIMER_REAL, float(os.environ.get("PATIENCE", 0)))
    result = work(model)
    signal.setitimer(signal.ITIMER_REAL, 0)
    done, peak = time.perf_counter(), peak_megabytes()
    times = []
    for _ in range(again):
        del result  # what an earlier repetition leaves behind is not part of the next one's memory
        start = time.perf_counter()
        result = work(model)
        times.append(time.perf_counter() - start)
    return result, {
        "load": loaded - begin,
        "first": done - loaded,
        "whole": done - STARTED,
        "again": times,
        "peak_first_mb": peak,
        "peak_mb": peak_megabytes(),
    }


def peak_megabytes() -> float:
    """The largest resident memory of this process so far.

    Linux lets a process inherit the peak of the one that started it, which has to be small.
    """
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def report(facts: dict[str, Any]) -> None:
    """As the last line of standard output."""
    print(json.dumps(facts), flush=True)
