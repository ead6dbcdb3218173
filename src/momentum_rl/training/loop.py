"""What the driver asks of a loop, and what a watcher hears of it.

A loop trains one agent for each of its seeds. The host loop has one seed and steps environments on
the host; the fused loop has any number and runs in compiled chunks. The driver does not know which
of them it drives.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from momentum_rl.agents.agent import Agent
from momentum_rl.runs.files import Status
from momentum_rl.training.checkpoint import Saved
from momentum_rl.training.evaluation import Evaluation

CHUNK = 1_000  # agent steps of a chunk in compiled code
CHECK_PERIOD = 1_000  # agent steps between two looks at whether the values are still finite


class Loop(Protocol):
    """Runs in progress, one for each seed; they take the same steps at the same time."""

    step: int
    """Agent steps that every seed has taken."""

    @property
    def updates(self) -> int:
        """Updates of each seed so far."""

    def begin(self) -> None:
        """Starts a new run with an empty replay, in files if the run makes checkpoints."""

    def advance(
        self,
        until: int,
        on_progress: Callable[[Any], None] = lambda loop: None,
        on_saveable: Callable[[Any], None] = lambda loop: None,
        steps_left: Callable[[Any], int] = lambda loop: CHUNK,
    ) -> None:
        """Continues until every seed has reached agent step ``until`` or has diverged.

        ``on_progress`` is called as often as there is something to see, ``on_saveable`` whenever
        ``snapshot`` can be called; ``steps_left`` says how many agent steps may pass before that.
        """

    def diverged(self, i: int) -> int | None:
        """The step at which a seed's values stopped being finite, if they did."""

    def row(self, i: int, until: int, iteration: int) -> dict[str, Any]:
        """The metrics of a seed since its last row, up to agent step ``until`` at the most.

        ``score`` is the mean raw return of the episodes that ended in the iteration, ``loss_…`` and
        ``mean_…`` are the means of each network's loss and value of the actions taken, over the
        iteration's updates; the other fields are those of its last step.
        """

    def parameters(self, i: int) -> dict[str, Any]:
        """A copy of the online networks' parameters of a seed."""

    def snapshot(self, i: int) -> Saved:
        """All that ``restore`` needs of a seed; between two vector steps only."""

    def restore(self, saved: Sequence[Saved]) -> None:
        """Continues from snapshots of all seeds, exactly as if it had never stopped."""

    def headroom(self, snapshot: Mapping[str, Any]) -> int:
        """Agent steps until the replay's files overwrite what a snapshot of theirs refers to."""


class Result(NamedTuple):
    """How a run ended."""

    status: Status
    """finished or diverged; a run that is interrupted has no result."""
    step: int
    """The step at which it ended or diverged."""
    agent: Agent
    """The trained agent; of a run that diverged, with the last finite parameters."""
    metrics: list[dict[str, Any]]
    """The rows of ``metrics.jsonl``."""
    evaluation: Evaluation | None
    """The evaluation at the end, if there was one."""
    loop: Any
    """The loop as it ended; None if the run had ended before."""
    best: Agent | None = None
    """The agent with the highest evaluation during the run, if there were any; its ``about`` has
    the step and the evaluation."""


class Watcher:
    """Hears of runs as they go; this one ignores it all."""

    def announce(self, line: str) -> None:
        """Before and during the run: something to know about it."""

    def progress(self, loop: Loop) -> None:
        """After every vector step; in the fused loop, after every chunk."""

    def row(self, row: dict[str, Any]) -> None:
        """After every iteration of every seed."""

    def evaluated(self, step: int, evaluation: Evaluation) -> None:
        """After every evaluation during the run."""
