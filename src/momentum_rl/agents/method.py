"""How networks learn an algorithm: losses over its networks, and a policy that acts.

Underneath, a deep algorithm is a ``Method``. ``regression`` makes one of any ``Algorithm``: each
network regresses to its target, and the policy is greedy. What does not fit that form (an actor,
a temperature) gives losses and a policy of its own.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import chex
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from momentum_rl.agents.networks import NetworkSpec, make_network
from momentum_rl.core.targets import Algorithm
from momentum_rl.core.values import Categorical, ValueKind
from momentum_rl.errors import UserError
from momentum_rl.spaces import Spaces, Transition

Apply = Callable[..., Any]  # a network with its parameters: inputs to outputs, an array or a tree
Loss = Literal["huber", "squared"]


class Networks(NamedTuple):
    """The networks of a method at some step, by name."""

    online: Mapping[str, Apply]
    """As they are now; gradients flow into their parameters."""
    frozen: Mapping[str, Apply]
    """The same, but no gradient flows into their parameters."""
    lagged: Mapping[str, tuple[Apply, ...]]
    """Their lagged copies, newest first; no gradient flows into their parameters."""


class Context(NamedTuple):
    """What an update knows beside its data: β, the agent step, and a key of its own."""

    beta: Array
    step: Array
    key: Array | None


Diagnostics = dict[str, Array]
Losses = Callable[[Networks, Transition, Context], tuple[dict[str, Array], Diagnostics]]
Policy = Callable[[Networks, Array, Array | None], Array]
Inputs = Mapping[str, tuple[np.ndarray, ...]]


class TargetCopies(NamedTuple):
    """How the lagged copies of a network follow it."""

    copies: int = 1
    """How many copies there are; none of a network that no target reads."""
    polyak: float | None = None
    """The share of the network that enters its copy at every update; None: the copy is the network
    as it was at the last synchronisation, and each older copy the one before."""


@dataclass(frozen=True, eq=False)
class Method:
    """A deep algorithm."""

    name: str
    """The name of the algorithm."""
    networks: Mapping[str, TargetCopies]
    """Its networks, and how their lagged copies follow them."""
    losses: Losses
    """``losses(networks, batches, context) -> (by network, shown)``: per-example losses, whose
    means are minimised, each by its own network; and per-example numbers whose means are logged, by
    the names in ``shown``. ``batches`` is a ``Transition`` of arrays [M, B, ...] with M =
    ``minibatches``."""
    policy: Policy
    """``policy(networks, observations [n, ...], key) -> actions [n, ...]``, drawn by the key;
    without one (None) the policy's best actions, which an evaluation takes. A trained agent has no
    lagged networks."""
    build: Callable[[NetworkSpec, Spaces], Mapping[str, nn.Module]]
    """The modules of its networks, by name."""
    inputs: Mapping[str, Callable[[Spaces], tuple[np.ndarray, ...]]] = field(default_factory=dict)
    """The inputs of networks that do not take observations, by name: arrays of zeros."""
    minibatches: int = 1
    """How many minibatches an update takes."""
    shown: tuple[str, ...] = ()
    """The names of what is logged beside the losses."""
    uses_beta: bool = False
    """Whether anything depends on β."""
    acts_on: str = "q"
    """The network that the policy reads."""
    kinds: Mapping[str, ValueKind] = field(default_factory=dict)
    """What the values of the networks are, by name; numbers if it is not named."""
    actions: Literal["discrete", "box"] = "discrete"
    """What actions the policy takes: "discrete" ones, counted from 0, or those of a "box", vectors
    in [−1, 1]."""
    rates: Mapping[str, float] = field(default_factory=dict)
    """The step sizes of networks that have their own, by name."""
    starts_as: Mapping[str, str] = field(default_factory=dict)
    """The networks that begin as a copy of another one, by name."""
    gives_values: bool = False
    """Whether every network gives the values of all actions, [n, A, …]."""
    values_are_returns: bool = False
    """Whether the values of the network that acts estimate discounted returns."""

    def __post_init__(self) -> None:
        if self.acts_on not in self.networks:
            known = ", ".join(self.networks)
            raise UserError(f"acts_on: {self.acts_on!r}, expected one of the networks {known}")


def inputs_of(
    given: Mapping[str, Callable[[Spaces], tuple[np.ndarray, ...]]],
    names: Iterable[str],
    spaces: Spaces,
) -> Inputs:
    """What each network takes, as arrays of zeros: observations, where it is not said otherwise."""
    usual = (spaces.observation.zeros(1),)
    return {name: given[name](spaces) if name in given else usual for name in names}


def huber(error: Array) -> Array:
    """½ e² for |e| ≤ 1, |e| − ½ beyond: its gradient is clipped at 1."""
    return optax.losses.huber_loss(error, delta=1.0)


def squared(error: Array) -> Array:
    """e², without ½."""
    return jnp.square(error)


LOSSES: Mapping[str, Callable[[Array], Array]] = {"huber": huber, "squared": squared}


@dataclass(frozen=True)
class Greedy:
    """The policy that is greedy for a network's expected values."""

    name: str
    kind: ValueKind

    def __call__(self, networks: Networks, observations: Array, key: Array | None) -> Array:
        """The actions of observations [n, ...]; nothing in them is random."""
        del key
        values = self.kind.read(networks.online[self.name](observations))
        return jnp.argmax(self.kind.expectation(values), axis=-1)


def regression(
    algorithm: Algorithm,
    *,
    loss: Loss | Callable[[Array], Array] = "huber",
    shared_batch: bool = False,
    tie: bool = False,
    reward_clip: float | None = None,
) -> Method:
    """The method by which each network of an algorithm regresses to its target:

        θ_i ← θ_i − optimiser(∇ mean_B distance(network_i(s; θ_i)[a], target_i(s, a, r, s', β)))

    Args:
      algorithm: the networks, their targets, what the policy is read from, how many lagged copies.
      loss: of the error, "huber" or "squared" or a function of arrays.
      shared_batch: one minibatch for all networks instead of one for each.
      tie: all networks begin as a copy of the value's, and share their minibatch.
      reward_clip: learn from rewards clipped to ± this.
    """
    if isinstance(loss, str) and loss not in LOSSES:
        raise UserError(f"loss: {loss!r}, expected one of {', '.join(LOSSES)}")
    loss_of = LOSSES[loss] if isinstance(loss, str) else loss
    names, value = tuple(algorithm.targets), algorithm.value_table

    def losses(
        networks: Networks, batches: Transition, context: Context
    ) -> tuple[dict[str, Array], Diagnostics]:
        targets = targets_of(algorithm, networks, batches, context.beta, reward_clip)
        by_network, shown = {}, {}
        for i, (name, target) in enumerate(targets.items()):
            j, kind = i % len(batches.reward), algorithm.kind(name)
            outputs = _taken(networks.online[name](batches.observation[j]), batches.action[j])
            by_network[name] = kind.distance(outputs, jax.lax.stop_gradient(target.value), loss_of)
            shown[f"mean_{name}"] = kind.expectation(kind.read(outputs))
            if target.clipped is not None:
                shown[f"clipped_{name}"] = target.clipped
        return by_network, shown

    def build(spec: NetworkSpec, spaces: Spaces) -> Mapping[str, nn.Module]:
        return {name: make_network(spec, spaces, algorithm.kind(name)) for name in names}

    return Method(
        algorithm.name,
        {name: TargetCopies(algorithm.lags) for name in names},
        losses,
        Greedy(algorithm.preference, algorithm.kind(algorithm.preference)),
        build,
        minibatches=1 if shared_batch or tie else len(names),
        shown=(
            *(f"mean_{name}" for name in names),
            *([f"clipped_{value}"] if isinstance(algorithm.kind(value), Categorical) else []),
        ),
        uses_beta=algorithm.uses_beta,
        acts_on=algorithm.preference,
        kinds=algorithm.kinds,
        gives_values=True,
        starts_as={name: value for name in names if tie and name != value},
        values_are_returns=algorithm.values_are_returns,
    )


class Regression(NamedTuple):
    """What a network regresses to on its minibatch."""

    value: Array
    """The targets, [B, …]."""
    clipped: Array | None
    """The share of each target's mass that its support cannot hold, [B]; None where values have no
    ends."""


def targets_of(
    algorithm: Algorithm,
    networks: Networks,
    batches: Transition,
    beta: Array,
    reward_clip: float | None = None,
) -> dict[str, Regression]:
    """What each network regresses to, each on its own minibatch."""
    chex.assert_rank([batches.action, batches.reward, batches.discount, beta], [2, 2, 2, 0])
    m, b = batches.reward.shape

    def rows(observations: Array) -> dict[str, Array]:
        """The values of all lagged copies, [B, L, A, …]."""
        return {
            name: jnp.stack(
                [algorithm.kind(name).read(copy(observations)) for copy in copies], axis=1
            )
            for name, copies in networks.lagged.items()
        }

    def current(observations: Array) -> dict[str, Array] | None:
        if not algorithm.reads_current:
            return None
        return {
            name: algorithm.kind(name).read(network(observations))
            for name, network in networks.frozen.items()
        }

    # All minibatches' next states in one go: one large product instead of several small ones.
    flat = batches.next_observation.reshape(m * b, *batches.next_observation.shape[2:])
    after = jax.tree.map(lambda x: x.reshape(m, b, *x.shape[1:]), (rows(flat), current(flat)))
    # What no target reads of these is never computed: it is dead code to the compiler.
    here = [(rows(observation), current(observation)) for observation in batches.observation]
    reward = batches.reward.astype(jnp.float32)
    if reward_clip is not None:
        reward = jnp.clip(reward, -reward_clip, reward_clip)
    result = {}
    for i, name in enumerate(algorithm.targets):
        j = i % m

        def one(
            seen: Any, a: Array, r: Array, discount: Array, next_seen: Any, name: str = name
        ) -> Regression:
            values, next_values = algorithm.at(*seen), algorithm.at(*next_seen)
            y = algorithm.target(name, values, a, r, discount, next_values, beta)
            kind = algorithm.kind(name)
            if name != algorithm.value_table or not isinstance(kind, Categorical):
                return Regression(y, None)
            v = algorithm.targets[name].bootstrap(next_values)
            return Regression(y, kind.clipped(r, discount, v))

        result[name] = jax.vmap(one)(
            here[j],
            batches.action[j],
            reward[j],
            batches.discount[j],
            jax.tree.map(lambda x, j=j: x[j], after),
        )
    return result


def _taken(outputs: Array, actions: Array) -> Array:
    """The outputs [B, …] of the actions taken, of outputs [B, A, …]."""
    index = actions.reshape(-1, *[1] * (outputs.ndim - 1))
    return jnp.take_along_axis(outputs, index, axis=1)[:, 0]
