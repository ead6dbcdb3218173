"""One progress bar: drawn on a terminal, silent anywhere else."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(
    description: str, total: int, *, show: bool = True
) -> Iterator[Callable[[int], None]]:
    """Yield ``advance(steps)``; on a terminal it moves a bar with speed and time left.

    If the work ends before its total, the bar ends there too.
    """
    if not (show and sys.stderr.isatty()):
        yield lambda steps: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(description, total=total)
        yield lambda steps: progress.advance(task, steps)
        progress.update(task, total=progress.tasks[0].completed)
