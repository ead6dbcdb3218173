"""When a run makes a checkpoint."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from momentum_rl.errors import Interrupted, Unwritable, UserError
from momentum_rl.training.checkpoint import KEPT, Checkpoints, Saved
from momentum_rl.training.run_directory import RunDirectory
from momentum_rl.training.stopping import Stop

Headroom = Callable[[Mapping[str, Any]], int]
"""Agent steps until the replay's files overwrite what this snapshot of theirs refers to."""


class Checkpointer:
    """Makes the checkpoints of runs that are in one loop (one, or one per seed).

    One is due every so many agent steps; at the end of the run; when somebody asks to stop; and
    before the replay would overwrite what the older of the last two checkpoints needs.
    """

    def __init__(
        self,
        directories: Sequence[RunDirectory],
        every: int,
        stop: Stop,
        *,
        margin: int,
        headroom: Headroom,
    ) -> None:
        """Of the runs in these directories, if there are any.

        Args:
          directories: of the runs; empty for none.
          every: agent steps between two checkpoints; 0 for none.
          stop: whether somebody asks to stop.
          margin: agent steps that may pass between two calls of ``check``.
          headroom: of the replay.
        """
        self._directories = directories
        self._checkpoints = [Checkpoints(directory.path) for directory in directories if every]
        self._every, self._stop = every, stop
        self._margin, self._headroom = margin, headroom
        self._replays: list[Mapping[str, Any]] = []  # their snapshots in the last checkpoints
        self.step = 0

    def begin(self, step: int) -> None:
        """Starts at this step, and notes what the checkpoints on disk need of the replay."""
        self.step = step
        for old in self._checkpoints[0].steps() if self._checkpoints else ():
            with suppress(Exception):  # one that makes no sense needs nothing
                replay = self._checkpoints[0].read(old).state["replay"]
                self._headroom(replay)
                self._replays.append(replay)

    def steps_left(self, step: int) -> int:
        """Agent steps until a checkpoint is due, as far as is known now."""
        if not self._checkpoints:
            return sys.maxsize
        return min([self.step + self._every - step, *map(self._headroom, self._replays[-KEPT:])])

    def check(self, step: int, last: bool, content: Callable[[], Sequence[Saved]]) -> None:
        """Makes a checkpoint if one is due; raises ``Interrupted`` if somebody asks to stop.

        Args:
          step: the runs' agent step, where the loop can be saved.
          last: whether it is their last one.
          content: the runs' content.
        """
        signal = self._stop()
        due = last or signal is not None or self.steps_left(step) < self._margin
        if due and self._checkpoints and step > self.step:
            self.save(step, content())
        if signal is not None:
            raise Interrupted(f"interrupted at step {step:,}", signal)

    def save(self, step: int, contents: Sequence[Saved]) -> None:
        """Makes a checkpoint of every run."""
        for directory, checkpoints, saved in zip(self._directories, self._checkpoints, contents):
            state = {**saved.state, "written": directory.written()}
            checkpoints.write(step, Saved(saved.arrays, state))
        self.step = step
        self._replays = [*self._replays, contents[0].state["replay"]][-KEPT:]


@contextmanager
def status_on_error(
    of_all: Sequence[RunDirectory],
    step: Callable[[], int],
    ended: Callable[[int], bool] = lambda i: False,
) -> Iterator[None]:
    """Writes what stops runs into their status; the error's line then says how to resume them."""
    try:
        yield
    except BaseException as error:
        directories = [directory for i, directory in enumerate(of_all) if not ended(i)]
        stopped = isinstance(error, KeyboardInterrupt | Interrupted)
        for directory in directories:
            with suppress(UserError):  # a full disk: the status stays "running"
                if stopped:
                    directory.status("interrupted", step(), f"interrupted at step {step()}")
                else:
                    directory.status("failed", step(), repr(error))
        if directories and isinstance(error, Interrupted | Unwritable):
            line = f"{error}; {_how_to_resume(of_all)}"
            if isinstance(error, Interrupted):
                raise Interrupted(line, error.signal) from None
            raise Unwritable(line) from None
        raise


def _how_to_resume(directories: Sequence[RunDirectory]) -> str:
    paths = [directory.path for directory in directories]
    where = paths[0].parent if len(paths) > 1 else paths[0]
    steps = set.intersection(*(set(Checkpoints(path).steps()) for path in paths))
    since = f"from its checkpoint of step {max(steps):,}" if steps else "from the beginning"
    return f"`movi resume {where}` goes on {since}"
