"""The best agent of a run that is evaluated on its way.

It is the one with the highest finite mean; of several, the first. A checkpoint holds its file, so
that a run that goes on from it has the best agent of that moment, and not one of a future that may
turn out otherwise.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import flax.linen as nn
import numpy as np

from momentum_rl.agents.agent import BEST_FILE, Agent, encoded, load
from momentum_rl.plumbing.reading import without_infinite
from momentum_rl.training.checkpoint import Saved
from momentum_rl.training.evaluation import Evaluation
from momentum_rl.training.run_directory import RunDirectory

ARRAY = "best"
"""Its name in a checkpoint: the bytes of the agent's file."""


@dataclass(frozen=True)
class Best:
    """The highest evaluation of a run so far, and whose it was; nobody's before the first."""

    score: float = -math.inf
    agent: Agent | None = None
    content: bytes | None = None
    """The bytes of the agent's file."""

    def after(self, agent: Agent, evaluation: Evaluation) -> "Best":
        """The best after one more evaluation: itself, or that agent if it is better than all."""
        mean = without_infinite(evaluation.mean)  # as the rows have it
        if mean is None or mean <= self.score:
            return self
        agent.about["evaluation"] = {
            "episodes": len(evaluation.returns),
            "mean": evaluation.mean,
            "std": evaluation.std,
        }
        return Best(evaluation.mean, agent, encoded(agent))

    def saved_with(self, saved: Saved) -> Saved:
        """A checkpoint's content with the best agent's file."""
        if self.content is None:
            return saved
        return Saved({**saved.arrays, ARRAY: np.frombuffer(self.content, np.uint8)}, saved.state)


def content_of(saved: Saved) -> bytes | None:
    """The best agent's file in a checkpoint; None if there is none."""
    return saved.arrays[ARRAY].tobytes() if ARRAY in saved.arrays else None


def restored(
    directory: RunDirectory, content: bytes | None, networks: Mapping[str, nn.Module]
) -> Best:
    """The best of a run that goes on from a checkpoint, in a directory that has begun there.

    A run that was begun by a version that kept none has one as soon as an agent is better than all
    of which there are rows.
    """
    score = max((r.mean for r in directory.evaluations if r.mean is not None), default=-math.inf)
    agent = None if content is None else load(directory.path / BEST_FILE, networks)
    return Best(score, agent, content)
