"""Signals that ask a process to stop: a run makes a checkpoint first."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

Stop = Callable[[], int | None]
"""The number of the signal that asked to stop, or None."""

ASKING = (signal.SIGINT, signal.SIGTERM)


def never() -> int | None:
    """Nobody asks to stop."""
    return None


@contextmanager
def stopping() -> Iterator[Stop]:
    """Yields ``stop``, to be given to ``train``; in the main thread of a process only.

    The first SIGINT or SIGTERM is remembered: the run stops at its next settled moment. The second
    one ends the process at once, as if nobody had asked for it.
    """
    asked: list[int] = []

    def remember(number: int, frame: FrameType | None) -> None:
        del frame
        if asked:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        asked.append(number)

    before = {number: signal.signal(number, remember) for number in ASKING}
    try:
        yield lambda: asked[0] if asked else None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
