"""Signals that ask a process to stop: a run makes a checkpoint first."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from momentum_rl.errors import Interrupted
from momentum_rl.plumbing.signals import allow_checkpoint, handled_by, heard

Stop = Callable[[], int | None]
"""The number of the signal that asked to stop, or None."""


def never() -> int | None:
    """Nobody asks to stop."""
    return None


@contextmanager
def stopping() -> Iterator[Stop]:
    """Yields ``stop``, to be given to ``train``; in the main thread of a process only.

    The first SIGINT or SIGTERM is remembered: the run stops as soon as it can make a checkpoint;
    before its first step, while environments are made, at once. The second signal ends the process,
    as if there were no handler.
    """
    asked: list[int] = []
    looks = 0

    def stop() -> int | None:
        nonlocal looks
        looks += 1
        if looks == 1:
            allow_checkpoint()
        if asked:
            heard()
        return asked[0] if asked else None

    def remember(number: int, frame: FrameType | None) -> None:
        del frame
        if not looks:
            raise Interrupted("interrupted before the first step", number)
        if asked:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        asked.append(number)

    with handled_by(remember):
        yield stop
