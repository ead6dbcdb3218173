"""SIGINT and SIGTERM are heard within seconds, at any moment of any command.

Python runs a handler only when the main thread is back from compiled code, which may be minutes
later: a large program compiles, a loop of XLA's runs. So a thread is told of every signal at once,
and ends the process if the command does not end, or say that it heard, in time. That is safe at any
moment: files are complete or absent, and a run that was killed goes on from its last checkpoint.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from movi.errors import Interrupted

ASKING = (signal.SIGINT, signal.SIGTERM)
PATIENCE = 5.0
"""Seconds that a command has to end in, or to say that it heard."""
SETTLING = 60.0
"""Seconds that a run under way has until its next settled moment."""
AGAIN = 0.05
"""Seconds after which a signal comes again whose exception went nowhere."""


class _Ear:
    """What the command and the thread tell each other."""

    def __init__(self) -> None:
        self.heard, self.over = threading.Event(), threading.Event()
        self.patience = PATIENCE

    def again(self, number: int) -> None:
        """Sends a signal once more, unless the command has ended."""
        if not self.over.is_set():
            os.kill(os.getpid(), number)


_ear = _Ear()


def heard() -> None:
    """The command has noticed a signal, and ends as soon as its work is safe."""
    _ear.heard.set()


def settling() -> None:
    """From now on a signal may wait for a settled moment: a run looks for signals there."""
    _ear.patience = SETTLING


@contextmanager
def listening() -> Iterator[None]:
    """While a command is under way; in the main thread of a process."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    global _ear
    _ear = _Ear()
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    number_before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    before = {number: signal.getsignal(number) for number in ASKING}
    for number, handler in before.items():
        if handler != signal.SIG_IGN:
            signal.signal(number, _interrupt)
    threading.Thread(target=_watch, args=(reader, _ear), daemon=True).start()
    hook_before, sys.unraisablehook = sys.unraisablehook, _hook(_ear, sys.unraisablehook)
    try:
        yield
    finally:
        _ear.heard.set()
        _ear.over.set()
        sys.unraisablehook = hook_before
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(number_before)
        os.close(writer)


def _interrupt(number: int, frame: FrameType | None) -> None:
    del frame
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise Interrupted("interrupted", number)


def _hook(ear: _Ear, otherwise: Callable[[Any], Any]) -> Callable[[Any], None]:
    """What Python is to do with exceptions that nobody can catch.

    A handler raises wherever the main thread is: also in what the collector of garbage calls, from
    where no exception comes out. Then the signal comes again, a moment later.
    """

    def hook(told: Any) -> None:
        if isinstance(told.exc_value, KeyboardInterrupt | Interrupted):
            number = getattr(told.exc_value, "signal", signal.SIGINT)
            threading.Timer(AGAIN, ear.again, (number,)).start()
        else:
            otherwise(told)

    return hook


def _watch(reader: int, ear: _Ear) -> None:
    """Reads the numbers of signals as they come, until the command has ended."""
    while numbers := os.read(reader, 1):
        if numbers[0] in ASKING and not ear.heard.wait(ear.patience):
            os.write(2, b"movi: interrupted\n")
            os._exit(128 + numbers[0])
    os.close(reader)
