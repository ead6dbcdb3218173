"""Averaging afterwards: the last copies of the network that acts, and who plays by their mean.

Copies are taken while a run trains, so many agent steps apart; training does not read them.

    values      argmax_a mean_i q(s, a; θ_i)
    parameters  argmax_a q(s, a; mean_i θ_i)
"""

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from momentum_rl.agents.agent import Agent
from momentum_rl.agents.method import Greedy, Networks
from momentum_rl.core.values import ValueKind
from momentum_rl.errors import UserError
from momentum_rl.plumbing.trees import arrays_of, tree_of
from momentum_rl.runs.config import Config
from momentum_rl.training.checkpoint import Saved

PREFIX = "copies"
"""Of their arrays in a checkpoint."""


@dataclass(frozen=True)
class GreedyInTheMean:
    """The policy that is greedy for the mean of several networks' expected values."""

    names: tuple[str, ...]
    kind: ValueKind

    def __call__(self, networks: Networks, observations: jax.Array, key: Any) -> jax.Array:
        """The actions of observations [n, ...]; nothing in them is random."""
        del key
        values = [
            self.kind.expectation(self.kind.read(networks.online[name](observations)))
            for name in self.names
        ]
        return jnp.argmax(sum(values), axis=-1)


@dataclass(frozen=True)
class Copies:
    """The last copies of a run's acting network, oldest first, and when each was taken."""

    most: int
    every: int
    steps: tuple[int, ...] = ()
    parameters: tuple[Any, ...] = ()

    @classmethod
    def of(cls, config: Config) -> "Copies":
        """None yet, of a run that begins."""
        return cls(config.average, config.average_every)

    def next(self, step: int) -> int:
        """The first step after this one at which a copy is due."""
        return (step // self.every + 1) * self.every

    def is_due(self, step: int) -> bool:
        """Whether a copy is due at this step."""
        last = self.steps[-1] if self.steps else 0
        return bool(self.most) and step // self.every > last // self.every

    def with_one_of(self, agent: Agent, step: int) -> "Copies":
        """These and a copy of the agent's network, taken at this step."""
        return replace(
            self,
            steps=(*self.steps, step)[-self.most :],
            parameters=(*self.parameters, agent.params[agent.acts_on])[-self.most :],
        )

    def players(self, agent: Agent) -> dict[str, Agent]:
        """Who plays by the mean of the copies; nobody before there are enough of them."""
        if not self.most or len(self.steps) < self.most:
            return {}
        name, policy = agent.acts_on, agent.policy
        assert isinstance(policy, Greedy)
        names = tuple(f"{name}{i}" for i in range(self.most))
        means = jax.tree.map(
            lambda *leaves: np.mean(leaves, axis=0, dtype=float).astype(leaves[0].dtype),
            *self.parameters,
        )
        values = Agent(
            agent.networks[name],
            dict(zip(names, self.parameters)),
            agent.spaces,
            policy=GreedyInTheMean(names, policy.kind),
            acts_on=names[0],
        )
        parameters = Agent(
            agent.networks[name], {name: means}, agent.spaces, policy=policy, acts_on=name
        )
        return {"values": values, "parameters": parameters}

    def saved_with(self, saved: Saved) -> Saved:
        """A checkpoint's content with the copies."""
        if not self.most:
            return saved
        arrays = arrays_of(self.parameters, PREFIX)
        return Saved({**saved.arrays, **arrays}, {**saved.state, PREFIX: list(self.steps)})

    def restored(self, saved: Saved, agent: Agent) -> "Copies":
        """The copies of a checkpoint; ``agent`` says what their parameters look like."""
        if not self.most:
            return self
        steps = tuple(int(step) for step in saved.state[PREFIX])
        like = (agent.params[agent.acts_on],) * len(steps)
        copies = jax.tree.map(np.asarray, tree_of(like, saved.arrays, PREFIX))
        return replace(self, steps=steps, parameters=copies)


def check_average(config: Config, policy: Any) -> None:
    """Raises if a run keeps copies whose mean says nothing about actions."""
    if config.average and not isinstance(policy, Greedy):
        raise UserError(
            f"average: {config.average}, but {config.algorithm} does not act greedily by values; "
            "expected 0"
        )
