"""Measured programs, each in a process of its own."""

import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PROGRAMS = Path(__file__).resolve().parent / "programs"


class ProgramFailed(Exception):
    """In one line, why there is no figure."""


def program(
    python: str | Path,
    name: str,
    *arguments: object,
    timeout: float = 1_800,
    patience: float | None = None,
) -> Any:
    """Run ``programs/NAME.py``; the JSON object in its last line of output.

    All of it has ``timeout`` seconds, and its first solve ``patience`` of them (see stopwatch.py).
    """
    words = [str(python), str(PROGRAMS / f"{name}.py"), *map(str, arguments)]
    # Nothing that a user's shell sets may decide how many threads a program has.
    hidden = (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "NUMBA_NUM_THREADS",
        "XLA_FLAGS",
        "PATIENCE",
    )
    environment = {key: value for key, value in os.environ.items() if key not in hidden}
    environment |= {} if patience is None else {"PATIENCE": str(patience)}
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=timeout, env=environment
        )
    except subprocess.TimeoutExpired:
        raise ProgramFailed(f"no result within {timeout:.0f} s") from None
    if done.returncode == -signal.SIGALRM:
        raise ProgramFailed(f"did not end within {patience:.0f} s")
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"status {done.returncode}, no message"]
        raise ProgramFailed(said[-1][:200])
    return json.loads(done.stdout.strip().splitlines()[-1])


def seconds(*words: object, timeout: float = 120) -> float:
    """How long a command takes as a whole, from the start of its process to its end."""
    began = time.perf_counter()
    try:
        subprocess.run(
            list(map(str, words)), capture_output=True, text=True, timeout=timeout, check=True
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        raise ProgramFailed(f"{Path(str(words[0])).name}: {error}"[:200]) from None
    return time.perf_counter() - began


def medians(runs: Iterable[dict[str, Any]], names: Iterable[str]) -> dict[str, float]:
    """The median over runs of each named figure."""
    runs = list(runs)
    return {name: statistics.median(run[name] for run in runs) for name in names}


def say(text: str) -> None:
    """Progress, beside the JSON."""
    print(text, file=sys.stderr, flush=True)


@contextmanager
def stage(*names: str) -> Iterator[None]:
    """Says what begins (benchmark, repetition, program) and, at its end, how long it took."""
    what = ", ".join(names)
    say(f"{what} …")
    start = time.monotonic()
    yield
    say(f"{what}: {time.monotonic() - start:.1f} s")


def repetition(number: int, of: int) -> str:
    """As people count: from 1."""
    return f"repetition {number + 1} of {of}"
