"""Evaluation: whole episodes, raw returns, a policy that is greedy but for a small ε."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from movi.agents.agent import Agent
from movi.agents.exploration import drawn, epsilon_greedy
from movi.envs.interface import Environment
from movi.training.draws import env_seeds

EVALUATION = 1  # the purpose of the seeds: never those of training


class Evaluation(NamedTuple):
    """The returns of some episodes."""

    returns: list[float]
    lengths: list[int]

    @property
    def mean(self) -> float:
        """Their mean."""
        return float(np.mean(self.returns))

    @property
    def std(self) -> float:
        """Their standard deviation (of these episodes, not an estimate from them)."""
        return float(np.std(self.returns))

    def to_json(self) -> dict[str, object]:
        """A dictionary of JSON's types."""
        return {
            "episodes": len(self.returns),
            "mean": self.mean,
            "std": self.std,
            "returns": self.returns,
            "lengths": self.lengths,
        }


def evaluate(
    agent: Agent,
    environment: Environment,
    episodes: int,
    *,
    epsilon: float = 0.001,
    seed: int = 0,
    at: int | None = None,
    on_step: Callable[[int], None] = lambda done: None,
) -> Evaluation:
    """Plays whole episodes.

    Each environment plays a share of them that is fixed beforehand: taking the first to end
    instead would favour short ones.

    Args:
      agent: who plays.
      environment: where; its n environments step together.
      episodes: how many, at least one.
      epsilon: the probability of a random action.
      seed: of the environments and the random actions.
      at: the agent step, if it is one of several evaluations of a run: each has its own seeds.
      on_step: called after every step with the number of episodes that have ended.
    """
    n = environment.num_envs
    share = [episodes // n + (i < episodes % n) for i in range(n)]
    seeds = env_seeds(seed, n + 1, EVALUATION, *([] if at is None else [at]))
    rng = np.random.default_rng(seeds[n])
    played: list[list[tuple[float, int]]] = [[] for _ in range(n)]
    total, length = np.zeros(n), np.zeros(n, int)
    observation = environment.reset(seeds[:n])
    while any(len(played[i]) < share[i] for i in range(n)):
        exploration = drawn(rng, n, epsilon, environment.spaces)
        outcome = environment.step(epsilon_greedy(exploration, partial(agent.actions, observation)))
        observation = outcome.observation
        total += outcome.reward * outcome.valid
        length += outcome.valid
        for i in np.flatnonzero(outcome.terminated | outcome.truncated):
            if len(played[i]) < share[i]:
                played[i].append((float(total[i]), int(length[i])))
            total[i], length[i] = 0, 0
        on_step(sum(map(len, played)))
    ended = [episode for episodes_of_one in played for episode in episodes_of_one]
    return Evaluation([score for score, _ in ended], [steps for _, steps in ended])
