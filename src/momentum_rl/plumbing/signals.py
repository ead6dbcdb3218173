"""SIGINT and SIGTERM are heard within seconds, at any moment of any command.

Python runs a handler only when the main thread is back from compiled code, which may be minutes
later: a large program compiles, a loop of XLA's runs. So a thread hears of every signal at once,
and ends the process if the command neither ends nor acknowledges the signal in time. That is safe
at any moment: files are complete or absent, and a run that was killed continues from its last
checkpoint.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from momentum_rl.errors import Interrupted

ASKING = (signal.SIGINT, signal.SIGTERM)
PATIENCE = 5.0
"""Seconds that a command has to end, or to acknowledge the signal."""
CHECKPOINT_PATIENCE = 60.0
"""Seconds that a run under way has until it can make a checkpoint."""
AGAIN = 0.05
"""Seconds after which a signal is sent again that could not be raised, or was lost."""


class _Listener:
    """What the command and the thread share."""

    def __init__(self) -> None:
        self.heard, self.over = threading.Event(), threading.Event()
        self.patience = PATIENCE
        self.raised: int | None = None

    def again(self, number: int) -> None:
        """Sends a signal once more, unless the command has ended."""
        if not self.over.is_set():
            os.kill(os.getpid(), number)


_listener = _Listener()


def heard() -> None:
    """The command has noticed a signal, and ends as soon as its work is safe."""
    _listener.heard.set()


def raised() -> int | None:
    """The number of the signal that was raised as an exception in the last command, if any was.

    Whatever else comes out of the command then is its aftermath: compiled code that calls Python
    turns every exception into one of its own.
    """
    return _listener.raised


@contextmanager
def listening() -> Iterator[None]:
    """While a command is under way; in the main thread of a process."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    global _listener
    _listener = _Listener()
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    number_before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    before = {number: signal.getsignal(number) for number in ASKING}
    for number, handler in before.items():
        if handler != signal.SIG_IGN:
            signal.signal(number, _interrupt)
    threading.Thread(target=_watch, args=(reader, _listener), daemon=True).start()
    hook_before, sys.unraisablehook = sys.unraisablehook, _hook(_listener, sys.unraisablehook)
    try:
        yield
    finally:
        _listener.heard.set()
        _listener.over.set()
        sys.unraisablehook = hook_before
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(number_before)
        os.close(writer)


Stop = Callable[[], int | None]
"""The number of the signal that asked a run to stop, or None."""


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
            _listener.patience = CHECKPOINT_PATIENCE
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

    before = {number: signal.signal(number, remember) for number in ASKING}
    try:
        yield stop
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def _interrupt(number: int, frame: FrameType | None) -> None:
    if _importing(frame):
        threading.Timer(AGAIN, _listener.again, (number,)).start()
        return
    _listener.raised = number
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise Interrupted("interrupted", number)


def _importing(frame: FrameType | None) -> bool:
    """Whether a module is being imported: an exception amid a compiled one's set-up aborts."""
    while frame is not None and not frame.f_code.co_filename.startswith("<frozen importlib"):
        frame = frame.f_back
    return frame is not None


def _hook(listener: _Listener, otherwise: Callable[[Any], Any]) -> Callable[[Any], None]:
    """What Python is to do with exceptions that nobody can catch.

    A handler raises wherever the main thread is: also in what the garbage collector calls, where
    exceptions are lost. Then the signal is sent again, a moment later.
    """

    def hook(lost: Any) -> None:
        if isinstance(lost.exc_value, KeyboardInterrupt | Interrupted):
            number = getattr(lost.exc_value, "signal", signal.SIGINT)
            threading.Timer(AGAIN, listener.again, (number,)).start()
        else:
            otherwise(lost)

    return hook


def _watch(reader: int, listener: _Listener) -> None:
    """Reads the numbers of signals as they come, until the command has ended."""
    while numbers := os.read(reader, 1):
        if numbers[0] in ASKING and not listener.heard.wait(listener.patience):
            os.write(2, b"movi: interrupted\n")
            os._exit(128 + numbers[0])
    os.close(reader)
