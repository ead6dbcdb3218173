"""A training run on the terminal: a bar with score, speed and time left; silent elsewhere."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from movi.training.loop import Loop, Watcher


class _Bar(Watcher):
    """Moves the bar ten times a second at most."""

    def __init__(self, progress: Any, task: Any) -> None:
        self._progress, self._task = progress, task
        self._score, self._next = "–", 0.0
        self._start, self._first = time.monotonic(), 0

    def announce(self, line: str) -> None:
        self._progress.console.print(line, style="dim", markup=False)

    def progress(self, loop: Loop) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + 0.1
        if self._first == 0 and loop.updates:  # the first call of each function compiles it
            self._start, self._first = now, loop.step
        speed = (loop.step - self._first) / max(now - self._start, 1e-9)
        self._progress.update(
            self._task, completed=loop.step, score=self._score, speed=f"{speed:,.0f}"
        )

    def row(self, row: dict[str, Any]) -> None:
        if row["score"] is not None:
            self._score = f"{row['score']:,.1f}"


@contextmanager
def progress_bar(description: str, total: int) -> Iterator[Watcher]:
    """A watcher that draws on the terminal, or ignores everything if there is none."""
    if not sys.stderr.isatty():
        yield Watcher()
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    with Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("score {task.fields[score]}"),
        TextColumn("{task.fields[speed]} steps/s"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    ) as progress:
        task = progress.add_task(description, total=total, score="–", speed="–")
        watcher = _Bar(progress, task)
        yield watcher
        progress.update(task, refresh=True)
