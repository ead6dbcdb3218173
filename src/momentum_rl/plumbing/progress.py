"""Progress of something long, shown where it can be: a bar that never gets into a file.

On a terminal it is a bar of rich's; in a notebook, and for a command that a notebook runs
(`!movi …`), whose terminal is none, plain lines; anywhere else nothing. Notices are said
everywhere.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

Surface = Literal["terminal", "lines", "nothing"]

LINES = 10
"""Lines that tell of the whole way."""


def surface() -> Surface:
    """Where this process can show progress."""
    ipython: Any = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if getattr(shell, "kernel", None) is not None:
        return "lines"
    if sys.stderr is None or not sys.stderr.isatty():
        return "nothing"
    inline = os.environ.get("MPLBACKEND", "").endswith("backend_inline")  # set by every kernel
    return "lines" if inline or "JPY_PARENT_PID" in os.environ else "terminal"


@contextmanager
def display(description: str, total: int, *, show: bool = True) -> Iterator["Display"]:
    """Shows progress towards a total; if the work ends before, the bar ends there too."""
    kinds = {"terminal": _Bar, "lines": _Lines, "nothing": Display}
    shown = kinds[surface() if show else "nothing"](description, total)
    try:
        yield shown
    finally:
        shown.close()


class Display:
    """Shows how far something is; this one to nobody: it only says what there is to know."""

    def __init__(self, description: str, total: int) -> None:
        self.description, self.total = description, total
        self.done, self.note = 0, ""

    def update(self, done: int, note: str = "") -> None:
        """This much of the total is done; and what else there is to say of it."""
        self.done, self.note = done, note

    def advance(self, steps: int = 1) -> None:
        """So much more is done."""
        self.update(self.done + steps)

    def say(self, line: str) -> None:
        """Something to know, wherever that is said."""
        if sys.stderr is not None:  # as in a process without a console
            print(line, file=sys.stderr, flush=True)

    def close(self) -> None:
        """The work has ended, here or before."""

    def line(self) -> str:
        """How far it is."""
        more = f", {self.note}" if self.note else ""
        return f"{self.description}: {self.done:,} of {self.total:,}{more}"


class _Bar(Display):
    """A bar of rich's."""

    def __init__(self, description: str, total: int) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        super().__init__(description, total)
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}", markup=False),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self._task = self._progress.add_task(description, total=total, note="")
        self._progress.start()

    def update(self, done: int, note: str = "") -> None:
        super().update(done, note)
        self._progress.update(self._task, completed=done, note=note)

    def say(self, line: str) -> None:
        self._progress.console.print(line, style="dim", markup=False)

    def close(self) -> None:
        self._progress.update(self._task, total=self.done, refresh=True)
        self._progress.stop()


class _Lines(Display):
    """A line for each tenth of the way."""

    tenth = 0

    def update(self, done: int, note: str = "") -> None:
        super().update(done, note)
        tenth = LINES * done // max(self.total, 1)
        if tenth != self.tenth:  # smaller when the next of several begins
            self.tenth = tenth
            self.say(self.line())
