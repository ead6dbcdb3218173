"""Scores of training episodes, and the row of metrics of an iteration."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from momentum_rl.envs.interface import Outcome
from momentum_rl.plumbing.reading import without_infinite
from momentum_rl.runs.config import Config


class Scores:
    """Adds each environment's raw rewards up to the end of its episode."""

    def __init__(self, num_envs: int) -> None:
        self._return = [0.0] * num_envs
        self._length = [0] * num_envs
        self._ended: list[tuple[float, int]] = []
        self._largest = 0.0
        self.episodes = 0

    def add(self, outcome: Outcome, i: int) -> bool:
        """Counts the step of environment i; whether its episode ended."""
        ended = bool(outcome.terminated[i] or outcome.truncated[i])
        self.count(i, float(outcome.reward[i]), ended)
        return ended

    def count(self, i: int, reward: float, ended: bool) -> None:
        """Counts a step of environment i."""
        self._return[i] += reward
        self._length[i] += 1
        self._largest = max(self._largest, abs(reward))
        if ended:
            self._ended.append((self._return[i], self._length[i]))
            self.episodes += 1
            self._return[i], self._length[i] = 0.0, 0

    def take(self) -> dict[str, float | int | None]:
        """The episodes that ended since the last call: how many, their mean score and length; and
        the largest |reward| of a step since then."""
        ended, self._ended = self._ended, []
        largest, self._largest = self._largest, 0.0
        steps = {"largest_reward": largest}
        if not ended:
            return {"episodes": 0, "score": None, "score_std": None, "length": None, **steps}
        scores, lengths = np.array(ended).T
        return {
            "episodes": len(ended),
            "score": float(scores.mean()),
            "score_std": float(scores.std()),
            "length": float(lengths.mean()),
            **steps,
        }

    def snapshot(self) -> dict[str, Any]:
        """All that ``restore`` needs, of JSON's types."""
        return {
            "return": list(self._return),
            "length": list(self._length),
            "ended": [list(episode) for episode in self._ended],
            "largest": self._largest,
            "episodes": self.episodes,
        }

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Continues from a snapshot."""
        self._return = np.array(snapshot["return"], float).tolist()  # null is NaN
        self._length = [int(value) for value in snapshot["length"]]
        ended = np.array(snapshot["ended"], float).reshape(-1, 2).tolist()
        self._ended = [(score, int(length)) for score, length in ended]
        self._largest = float(np.array(snapshot.get("largest", 0.0), float))
        self.episodes = int(snapshot["episodes"])


def metrics_row(
    config: Config,
    iteration: int,
    step: int,
    scores: Scores,
    means: Mapping[str, float | None],
    health: Mapping[str, float],
    counts: Mapping[str, int],
) -> dict[str, Any]:
    """The metrics of an iteration that ended at this step; see ``Loop.row``."""
    beta = config.beta_of
    return without_infinite(
        {
            "iteration": iteration,
            "step": step,
            **scores.take(),
            **means,
            **health,
            **({} if beta is None else {"beta": float(beta(step))}),
            "epsilon": float(config.epsilon_schedule(step)),
            **counts,
        }
    )
