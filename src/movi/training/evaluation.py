"""Evaluation: whole episodes, raw returns, a policy that is greedy but for a small ε."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from typing import Any, NamedTuple

import jax
import numpy as np

from movi.agents.agent import Agent
from movi.agents.exploration import Exploration, drawn, epsilon_greedy
from movi.compilation import shared
from movi.envs.interface import Environment
from movi.envs.jax_env import HostedEnvironment
from movi.errors import UserError
from movi.training.draws import env_seeds

EVALUATION = 1  # the purpose of the seeds: never those of training
AT_ONCE = 100  # steps that a compiled loop plays before somebody looks whether all have ended


class _Step(NamedTuple):
    """What counts of one step of n environments, each [n]."""

    reward: np.ndarray
    ended: np.ndarray
    valid: np.ndarray


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
    explorations = (drawn(rng, n, epsilon, environment.spaces) for _ in count())
    # One that steps or acts in another way is stepped.
    if type(environment) is HostedEnvironment and type(agent) is Agent:
        steps = _compiled_steps(agent, environment, explorations)
    else:
        steps = _steps(agent, environment, explorations, observation)
    while any(len(played[i]) < share[i] for i in range(n)):
        step = next(steps)
        total += step.reward * step.valid
        length += step.valid
        for i in np.flatnonzero(step.ended):
            if len(played[i]) < share[i]:
                played[i].append((float(total[i]), int(length[i])))
            total[i], length[i] = 0, 0
        on_step(sum(map(len, played)))
    ended = [episode for episodes_of_one in played for episode in episodes_of_one]
    return Evaluation([score for score, _ in ended], [steps for _, steps in ended])


def _steps(
    agent: Agent,
    environment: Environment,
    explorations: Iterator[Exploration[np.ndarray]],
    observation: np.ndarray,
) -> Iterator[_Step]:
    """The steps of an episode and those after it, one by one."""
    for exploration in explorations:
        outcome = environment.step(epsilon_greedy(exploration, partial(agent.actions, observation)))
        observation = outcome.observation
        yield _Step(outcome.reward, outcome.terminated | outcome.truncated, outcome.valid)


def _compiled_steps(
    agent: Agent,
    environment: HostedEnvironment,
    explorations: Iterator[Exploration[np.ndarray]],
) -> Iterator[_Step]:
    """The same by a compiled loop, of which some steps after the last that counts are lost."""
    seen, expected = environment.spaces.observation, agent.spaces.observation
    if seen.shape != expected.shape:
        raise UserError(f"observation: shape {seen.shape}, expected {expected.shape}")
    act, valid = _acting(agent.acting, expected.dtype), np.ones(environment.num_envs, bool)
    while True:
        chunk = [next(explorations) for _ in range(AT_ONCE)]
        played = environment.play(act, agent.params, jax.tree.map(lambda *x: np.stack(x), *chunk))
        for reward, terminated, truncated in zip(*played):
            yield _Step(reward.astype(float), terminated | truncated, valid)


@shared
def _acting(policy: Callable[..., Any], dtype: str) -> Callable[..., Any]:
    """``act(params, observations, exploration)``: ε-greedy actions."""
    return lambda params, observations, exploration: epsilon_greedy(
        exploration, lambda: policy(params, observations.astype(dtype), None)
    )
