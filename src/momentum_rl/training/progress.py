"""The progress of a training run, with its score and speed."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property
from typing import Any

from momentum_rl.plumbing.progress import Display, display
from momentum_rl.training.loop import Loop, Watcher


class _Bar(Watcher):
    """Moves the bar ten times a second at most; there is none until there is something to say."""

    def __init__(self, description: str, total: int, stack: ExitStack) -> None:
        self._description, self._total, self._stack = description, total, stack
        self._score, self._next = "–", 0.0
        self._loop: Loop | None = None
        self._start, self._first = 0.0, 0

    @cached_property
    def _display(self) -> Display:
        return self._stack.enter_context(display(self._description, self._total))

    def announce(self, line: str) -> None:
        self._display.say(line)

    def progress(self, loop: Loop) -> None:
        now = time.monotonic()
        if self._loop is not loop:  # the first, or the next of several seeds
            self.show()
            self._loop, self._start, self._first, self._next = loop, now, 0, now
        if now >= self._next:
            self._next = now + 0.1
            self.show()

    def show(self) -> None:
        """Shows how far the run is, if there is one yet."""
        if self._loop is None:
            return
        now, step = time.monotonic(), self._loop.step
        if self._first == 0 and self._loop.updates:  # the first call of each function compiles it
            self._start, self._first = now, step
        speed = (step - self._first) / max(now - self._start, 1e-9)
        self._display.update(step, f"score {self._score}, {speed:,.0f} steps/s")

    def row(self, row: dict[str, Any]) -> None:
        if row["score"] is not None:
            self._score = f"{row['score']:,.1f}"


@contextmanager
def progress_bar(description: str, total: int) -> Iterator[Watcher]:
    """A watcher that shows progress where there is something to show it on, and says notices."""
    with ExitStack() as stack:
        bar = _Bar(description, total, stack)
        yield bar
        bar.show()
