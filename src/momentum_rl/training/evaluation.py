"""Evaluation: whole episodes, raw returns, a policy that is greedy but for a small ε."""

import logging
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import count
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from momentum_rl.agents.agent import Agent
from momentum_rl.agents.method import Greedy
from momentum_rl.envs.jax_env import HostedEnvironment, Played
from momentum_rl.errors import UserError, check_fraction
from momentum_rl.plumbing.compilation import shared
from momentum_rl.spaces import LONGEST, Environment
from momentum_rl.training.loop import Exploration, drawn, env_seeds, epsilon_greedy

EVALUATION = 1  # the purpose of the seeds: never those of training
AT_ONCE = 100  # steps that a compiled loop plays before somebody looks whether all have ended


class Discounted(NamedTuple):
    """How an agent's values count rewards; without it no bias is measured."""

    gamma: float
    reward_clip: float | None = None


class Evaluation(NamedTuple):
    """The returns of some episodes."""

    returns: list[float]
    lengths: list[int]
    bias: float | None = None
    """The mean of the agent's value of what it did, less that of the discounted return from there
    on, over all steps of the episodes that terminated; None if it was not measured."""
    average: "Mapping[str, Evaluation]" = MappingProxyType({})
    """The same played by the mean of an agent's last copies, by what the mean is of."""

    @property
    def mean(self) -> float:
        """Their mean."""
        return float(np.mean(self.returns))

    @property
    def std(self) -> float:
        """Their standard deviation (of these episodes, not an estimate from them)."""
        return float(np.std(self.returns))

    def to_json(self) -> dict[str, object]:
        """A dictionary of JSON's types; the bias is in the metrics."""
        row: dict[str, object] = {
            "episodes": len(self.returns),
            "mean": self.mean,
            "std": self.std,
            "returns": self.returns,
            "lengths": self.lengths,
        }
        if self.average:
            row["average"] = {name: other.to_json() for name, other in self.average.items()}
        return row


def evaluate(
    agent: Agent,
    environment: Environment,
    episodes: int,
    *,
    epsilon: float = 0.001,
    seed: int = 0,
    at: int | None = None,
    discounted: Discounted | None = None,
    on_step: Callable[[int], None] = lambda done: None,
) -> Evaluation:
    """Plays whole episodes.

    Each environment plays a share of them that is fixed beforehand: taking the first to end
    instead would favour short ones. An episode that has not ended after ``LONGEST`` steps is cut
    there, which a warning says; what is left of its environment's share follows a reset of all.

    Args:
      agent: who plays.
      environment: where; its n environments step together.
      episodes: how many, at least one.
      epsilon: the probability of a random action.
      seed: of the environments and the random actions.
      at: the agent step, if it is one of several evaluations of a run: each has its own seeds.
      discounted: how rewards count in the agent's values, to measure their bias.
      on_step: called after every step with the number of episodes that have ended.
    """
    check_fraction("epsilon", epsilon)
    n = environment.num_envs
    share = [episodes // n + (i < episodes % n) for i in range(n)]
    purpose = (EVALUATION, *([] if at is None else [at]))
    seeds = env_seeds(seed, n + 1, *purpose)
    rng = np.random.default_rng(seeds[n])
    played: list[list[tuple[float, int]]] = [[] for _ in range(n)]
    bias, cut = _Bias(discounted), 0
    explorations = (drawn(rng, n, epsilon, environment.spaces) for _ in count())
    while sum(map(len, played)) < episodes:  # once, unless an episode is cut
        observation, bias.running = environment.reset(seeds[:n]), np.zeros(n)
        # One that steps or acts in another way is stepped.
        if type(environment) is HostedEnvironment and type(agent) is Agent:
            steps = _compiled_steps(agent, environment, explorations)
        else:
            steps = _steps(agent, environment, explorations, observation, discounted is not None)
        total, length, waits = np.zeros(n), np.zeros(n, int), np.zeros(n, bool)
        while any(len(played[i]) < share[i] and not waits[i] for i in range(n)):
            step = next(steps)
            total += step.reward
            bias.add(step, length)
            length += 1
            ended = step.terminated | step.truncated
            for i in np.flatnonzero(ended | (length >= LONGEST)).tolist():
                counts = len(played[i]) < share[i] and not waits[i]
                if counts:
                    played[i].append((float(total[i]), int(length[i])))
                bias.end(i, int(length[i]), counts and bool(step.terminated[i]))
                total[i], length[i] = 0, 0
                if not ended[i]:
                    waits[i], cut = True, cut + counts
            on_step(sum(map(len, played)))
        seeds = env_seeds(seed, n, *purpose, cut)
    if cut:
        logging.getLogger("movi").warning(
            f"movi: warning: evaluation: {cut} of {episodes} episodes had not ended after "
            f"{LONGEST:,} steps and were cut there"
        )
    every = [episode for episodes_of_one in played for episode in episodes_of_one]
    return Evaluation([score for score, _ in every], [steps for _, steps in every], bias.mean)


class _Bias:
    """Σ_t (value_t − G_t) over episodes, with G_t the discounted return from step t on.

    A reward r_t is in G_0, …, G_t, with the weights γ^t, …, 1: so Σ_t G_t is the sum of
    r_t (1 − γ^{t+1})/(1 − γ), and no episode has to be kept.
    """

    def __init__(self, discounted: Discounted | None) -> None:
        self.running = np.zeros(0)  # of the episodes under way
        self._discounted, self._sum, self._steps = discounted, 0.0, 0

    def add(self, step: Played, number: np.ndarray) -> None:
        """A step of every environment, of this number in its episode."""
        if self._discounted is None:
            return
        gamma, clip = self._discounted
        reward = step.reward if clip is None else np.clip(step.reward, -clip, clip)
        collected = reward * (1 - gamma ** (number + 1)) / (1 - gamma)
        self.running += step.value - collected

    def end(self, i: int, steps: int, counts: bool) -> None:
        """The end of an episode, which counts or not."""
        if counts:
            self._sum, self._steps = self._sum + float(self.running[i]), self._steps + steps
        self.running[i] = 0.0

    @property
    def mean(self) -> float | None:
        """Per step; None where no episode counted."""
        known = self._discounted is not None and self._steps and np.isfinite(self._sum)
        return self._sum / self._steps if known else None


def _steps(
    agent: Agent,
    environment: Environment,
    explorations: Iterator[Exploration[np.ndarray]],
    observation: np.ndarray,
    valued: bool,
) -> Iterator[Played]:
    """The steps of an episode and those after it, one by one."""
    for exploration in explorations:
        actions = epsilon_greedy(exploration, partial(agent.actions, observation))
        value = np.zeros(environment.num_envs)
        if valued:
            value = agent.values(observation)[np.arange(len(actions)), actions]
        outcome = environment.step(actions)
        observation = outcome.observation
        yield Played(outcome.reward, outcome.terminated, outcome.truncated, value)


def _compiled_steps(
    agent: Agent,
    environment: HostedEnvironment,
    explorations: Iterator[Exploration[np.ndarray]],
) -> Iterator[Played]:
    """The same by a compiled loop, of which some steps after the last that counts are lost."""
    seen, expected = environment.spaces.observation, agent.spaces.observation
    if seen.shape != expected.shape:
        raise UserError(f"observation: shape {seen.shape}, expected {expected.shape}")
    name = agent.acts_on
    act = _acting(agent.acting, agent.networks[name], agent.policy, name, expected.dtype)
    while True:
        chunk = [next(explorations) for _ in range(AT_ONCE)]
        played = environment.play(act, agent.params, jax.tree.map(lambda *x: np.stack(x), *chunk))
        for reward, terminated, truncated, value in zip(*played):
            yield Played(reward.astype(float), terminated, truncated, value)


@shared
def _acting(
    best: Callable[..., Any], network: Any, policy: Any, name: str, dtype: str
) -> Callable[..., Any]:
    """``act(params, observations, exploration)``: ε-greedy actions, and their values.

    ``best`` is the policy, compiled; the values are those of a greedy one's network, else zeros.
    """

    def act(params: Any, observations: Any, exploration: Any) -> tuple[Any, Any]:
        seen = observations.astype(dtype)
        actions = epsilon_greedy(exploration, lambda: best(params, seen, None))
        if not isinstance(policy, Greedy):
            return actions, jnp.zeros(len(seen))
        outputs = policy.kind.read(network.apply({"params": params[name]}, seen))
        values = policy.kind.expectation(outputs)
        return actions, jnp.take_along_axis(values, actions[:, None], 1)[:, 0]

    return act
