"""What both loops have in common with their driver: how a run ends, and who hears of it.

A loop trains one agent for each of its seeds, which take the same steps at the same time. The host
loop has one seed and steps environments on the host; the fused loop has any number and runs in
compiled chunks. The driver knows of both ``step`` and ``updates``; ``begin`` or ``restore``, then
``advance``; and of seed i ``row``, ``diverged``, ``parameters`` and ``snapshot``.
"""

from typing import Any, NamedTuple

from momentum_rl.agents.agent import Agent
from momentum_rl.runs.files import Status
from momentum_rl.training.evaluation import Evaluation

CHUNK = 1_000  # agent steps of a chunk in compiled code
CHECK_PERIOD = 1_000  # agent steps between two looks at whether the values are still finite


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

    def progress(self, loop: Any) -> None:
        """After every vector step; in the fused loop, after every chunk. ``loop.step`` and
        ``loop.updates`` are the agent steps and the updates of each seed so far."""

    def row(self, row: dict[str, Any]) -> None:
        """After every iteration of every seed."""

    def evaluated(self, step: int, evaluation: Evaluation) -> None:
        """After every evaluation during the run."""
