"""The agents that a run keeps beside its last: the best one, and copies to average afterwards.

Both are in every checkpoint, so that a run that goes on from it has the agents of that moment, and
not those of a future that may turn out otherwise.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from momentum_rl.agents.agent import Agent, encoded
from momentum_rl.agents.method import Greedy, Networks
from momentum_rl.core.values import ValueKind
from momentum_rl.plumbing.reading import without_infinite
from momentum_rl.plumbing.trees import arrays_of, tree_of
from momentum_rl.training.evaluation import Evaluation
from momentum_rl.training.run_directory import Saved

BEST, COPIES = "best", "copies"
"""Their names in a checkpoint: the bytes of the best agent's file, and the copies' parameters."""


@dataclass(frozen=True)
class Best:
    """The highest finite mean of a run's evaluations so far (of several the first), and whose."""

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
        return Saved({**saved.arrays, BEST: np.frombuffer(self.content, np.uint8)}, saved.state)


def best_in(saved: Saved) -> bytes | None:
    """The best agent's file in a checkpoint; None if there is none."""
    return saved.arrays[BEST].tobytes() if BEST in saved.arrays else None


# Averaging afterwards ----------------------------------------------------------------------------


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
    """The last copies of a run's acting network, oldest first, and when each was taken.

    They are taken so many agent steps apart; training does not read them. Who plays by their mean:

        values      argmax_a mean_i q(s, a; θ_i)
        parameters  argmax_a q(s, a; mean_i θ_i)
    """

    most: int
    every: int
    steps: tuple[int, ...] = ()
    parameters: tuple[Any, ...] = ()

    def next(self, step: int) -> int:
        """The first step after this one at which a copy is due."""
        return (step // self.every + 1) * self.every

    def is_due(self, step: int) -> bool:
        """Whether a copy is due at this step."""
        last = self.steps[-1] if self.steps else 0
        return step // self.every > last // self.every

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
        network, spaces = agent.networks[name], agent.spaces
        in_the_mean = GreedyInTheMean(names, policy.kind)
        copies = dict(zip(names, self.parameters))
        return {
            "values": Agent(network, copies, spaces, policy=in_the_mean, acts_on=names[0]),
            "parameters": Agent(network, {name: means}, spaces, policy=policy, acts_on=name),
        }

    def saved_with(self, saved: Saved) -> Saved:
        """A checkpoint's content with the copies."""
        if not self.most:
            return saved
        arrays = arrays_of(self.parameters, COPIES)
        return Saved({**saved.arrays, **arrays}, {**saved.state, COPIES: list(self.steps)})

    def restored(self, saved: Saved, agent: Agent) -> "Copies":
        """The copies of a checkpoint; ``agent`` says what their parameters look like."""
        if not self.most:
            return self
        steps = tuple(int(step) for step in saved.state[COPIES])
        like = (agent.params[agent.acts_on],) * len(steps)
        copies = jax.tree.map(np.asarray, tree_of(like, saved.arrays, COPIES))
        return replace(self, steps=steps, parameters=copies)
