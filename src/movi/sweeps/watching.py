"""A job's runs, told to its log and its progress file."""

from movi.sweeps.progress import Progress
from movi.training.loop import Loop, Watcher


class JobWatcher(Watcher):
    """Prints what a run announces, and notes its steps."""

    def __init__(self, progress: Progress) -> None:
        """Of the job."""
        self._progress = progress

    def announce(self, line: str) -> None:
        """Goes to the log."""
        print(line, flush=True)

    def tick(self, loop: Loop) -> None:
        """Goes to the progress file."""
        self._progress.reach(loop.step)
