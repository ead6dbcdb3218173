"""The one learner: a method's networks, their lagged copies and optimisers, moved step by step.

A learner is a few pure functions. Each network has an online copy, lagged copies and an optimiser
state of its own; each update moves every online network one optimiser step down its own loss.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from momentum_rl.agents.method import (
    Apply,
    Context,
    Loss,
    Method,
    Networks,
    inputs_of,
    regression,
)
from momentum_rl.agents.networks import ACTIVATIONS
from momentum_rl.agents.sac import SAC
from momentum_rl.agents.soft_actor_critic import soft_actor_critic
from momentum_rl.core.options import Options
from momentum_rl.core.schedules import Schedule
from momentum_rl.core.soft import Real
from momentum_rl.core.values import NUMBER
from momentum_rl.errors import UserError
from momentum_rl.spaces import Spaces, Transition

Params = Any
OptimiserName = Literal["rmsprop", "adam", "sgd"]
DORMANT = 0.025  # of a layer's mean activity, at most (Sokar et al. 2023, arXiv:2302.12902)


def method_of(options: Options, loss: Loss, reward_clip: float | None) -> Method:
    """How networks learn the algorithm that these options mean.

    A dataclass of options that has a ``method(loss, reward_clip)`` gives its own.
    """
    if isinstance(options, SAC):
        return soft_actor_critic(options, loss, reward_clip)
    if hasattr(options, "method"):
        method: Method = options.method(loss, reward_clip)
        return method
    return regression(
        options.algorithm(),
        loss=loss,
        shared_batch=getattr(options, "shared_batch", False),
        tie=getattr(options, "tie", False),
        reward_clip=reward_clip,
    )


def make_optimiser(
    name: OptimiserName, learning_rate: float, epsilon: float
) -> optax.GradientTransformation:
    """An optimiser by name.

    ``rmsprop`` is TensorFlow's centred RMSProp as Dopamine's 2019 DQN used it: with the gradient g,
    n ← .95 n + .05 g², m ← .95 m + .05 g, θ ← θ − lr · g / √(n − m² + ε), from n = 1 and m = 0.
    """
    if name == "rmsprop":
        return optax.rmsprop(
            learning_rate,
            decay=0.95,
            eps=epsilon,
            initial_scale=1.0,
            eps_in_sqrt=True,
            centered=True,
        )
    if name == "adam":
        return optax.adam(learning_rate, eps=epsilon)
    if name == "sgd":
        return optax.sgd(learning_rate)
    raise UserError(f"optimiser: {name!r}, expected 'rmsprop', 'adam' or 'sgd'")


class LearnerState(NamedTuple):
    """Everything that learning needs to continue, by network name."""

    online: dict[str, Params]
    """The parameters that are trained."""
    lagged: dict[str, Params]
    """The parameters that targets read, each leaf [L, ...], newest first."""
    optimiser: dict[str, optax.OptState]
    """One optimiser state per network."""
    updates: Array
    """The number of updates so far."""
    diverged_at: Array
    """The step of the first update that was not finite; 0 before it. From then on the state stands
    still, so that it keeps the last finite parameters."""


@dataclass(frozen=True, eq=False)
class Learner:
    """A method made learnable; each function is pure and maps over seeds."""

    method: Method
    """The losses, the policy and the lagged copies."""
    modules: Mapping[str, nn.Module]
    """By network."""
    optimisers: Mapping[str, optax.GradientTransformation]
    """By network."""
    spaces: Spaces
    """What is seen and done."""
    beta: Schedule | None
    """β as a function of the agent step; None where nothing depends on it."""
    rates: Mapping[str, float]
    """The learning rate of each network, where it is known."""

    @property
    def minibatches(self) -> int:
        """How many minibatches an update takes."""
        return self.method.minibatches

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of an update's metrics, in order."""
        return tuple(
            sorted([*(f"loss_{name}" for name in self.method.networks), *self.method.shown])
        )

    def init(self, key: Array) -> LearnerState:
        """A new state."""
        online: dict[str, Params] = {}
        lagged, states = {}, {}
        networks = self.method.networks
        inputs = inputs_of(self.method.inputs, networks, self.spaces)
        for (name, following), own_key in zip(
            networks.items(), jax.random.split(key, len(networks))
        ):
            outputs, variables = self.modules[name].init_with_output(own_key, *inputs[name])
            if self.method.gives_values:
                kind, shape = self.method.kinds.get(name, NUMBER), getattr(outputs, "shape", None)
                if shape != (expected := (1, self.spaces.numbered, *kind.shape)):
                    raise UserError(
                        f"network: {name} gives {shape} for one state, expected {expected}"
                    )
            if set(variables) != {"params"}:
                raise UserError(
                    f"network: has variables {sorted(variables)}, expected parameters only"
                )
            first = self.method.starts_as.get(name)
            online[name] = variables["params"] if first is None else online[first]
            if following.copies:
                lagged[name] = jax.tree.map(
                    lambda p, n=following.copies: jnp.stack([p] * n), online[name]
                )
            states[name] = self.optimisers[name].init(online[name])
        return LearnerState(online, lagged, states, jnp.int32(0), jnp.int32(0))

    def update(
        self, state: LearnerState, batches: Transition, step: Array, key: Array | None = None
    ) -> tuple[LearnerState, dict[str, Array]]:
        """The state after an update of batches [M, B, ...] at an agent step, and its metrics.

        The metrics are each network's loss, and what the method shows.
        """
        context = self._context(step, key)
        gradients, costs, shown = self._gradients(state, batches, context)
        finite = state.diverged_at == 0
        for name, cost in costs.items():
            finite &= jnp.isfinite(cost) & _all_finite(gradients[name])
        # A branch moves the parameters in place; a choice between the old and the new ones would
        # copy all of them, at a third of an update's time.
        online, states = jax.lax.cond(
            finite,
            self._move,
            lambda online, states, _: (online, states),
            state.online,
            state.optimiser,
            gradients,
        )
        finite &= _all_finite(online)  # an optimiser can spoil finite gradients
        # A loop of at most one round: a branch would copy the parameters on the usual way too.
        online, _ = jax.lax.while_loop(
            lambda carry: carry[1],
            lambda carry: (_replace_nonfinite(carry[0], state.lagged), jnp.zeros_like(carry[1])),
            (online, ~finite & (state.diverged_at == 0)),
        )
        moved = LearnerState(
            online=online,
            lagged=self._polyak_updated(online, state.lagged, finite),
            optimiser=states,
            updates=state.updates + finite,
            diverged_at=jnp.where(
                finite | (state.diverged_at > 0), state.diverged_at, jnp.asarray(step, jnp.int32)
            ),
        )
        return moved, {**{f"loss_{name}": cost for name, cost in costs.items()}, **shown}

    def sync(self, state: LearnerState) -> LearnerState:
        """The online networks become the newest lagged copies; each older copy moves back by one.

        Copies that follow by Polyak averaging stay as they are.
        """
        lagged = {
            name: jax.tree.map(
                lambda new, old: jnp.concatenate([new[None], old[:-1]]), state.online[name], copies
            )
            if self.method.networks[name].polyak is None
            else copies
            for name, copies in state.lagged.items()
        }
        return state._replace(lagged=lagged)

    def act(self, state: LearnerState, observation: Array, key: Array | None = None) -> Array:
        """The actions for observations [n, ...]; without a key the best ones."""
        networks = networks_of(self.modules, state.online, state.online, state.lagged)
        return self.method.policy(networks, observation, key)

    def inspect(
        self,
        state: LearnerState,
        batches: Transition,
        seen: Array,
        step: Array,
        key: Array | None = None,
    ) -> dict[str, Array]:
        """How an update would move each network, in units of its learning rate where it is known,
        and how much of the network that acts is dormant on what is seen [n, ...].
        """
        context = self._context(step, key)
        gradients, _, _ = self._gradients(state, batches, context)
        health = {}
        for name, rate in self.rates.items():
            size = update_size(
                self.optimisers[name], gradients[name], state.optimiser[name], state.online[name]
            )
            health[f"rms_update_{name}"] = size / rate
        acting = self.method.acts_on
        if acting not in self.method.inputs:
            health |= dormant(self.modules[acting], state.online[acting], seen)
        return health

    def _gradients(
        self, state: LearnerState, batches: Transition, context: Context
    ) -> tuple[dict[str, Params], dict[str, Array], dict[str, Array]]:
        """Each network's gradient and loss, and what the method shows."""

        def objective(online: dict[str, Params]) -> tuple[Real, Any]:
            networks = networks_of(self.modules, online, state.online, state.lagged)
            losses, shown = self.method.losses(networks, batches, context)
            costs = {name: jnp.mean(losses[name]) for name in self.method.networks}
            # Each loss has a gradient for its own network alone: others enter it frozen or lagged.
            return sum(costs.values()), (costs, {name: jnp.mean(x) for name, x in shown.items()})

        gradients, (costs, shown) = jax.grad(objective, has_aux=True)(state.online)
        return gradients, costs, shown

    def _move(
        self, online: dict[str, Params], states: dict[str, Any], gradients: dict[str, Params]
    ) -> tuple[dict[str, Params], dict[str, Any]]:
        """One optimiser step of each network."""
        moved, moved_states = {}, {}
        for name, optimiser in self.optimisers.items():
            change, moved_states[name] = optimiser.update(
                gradients[name], states[name], online[name]
            )
            moved[name] = optax.apply_updates(online[name], change)
        return moved, moved_states

    def _context(self, step: Array, key: Array | None) -> Context:
        beta = 0.0 if self.beta is None else self.beta(step)
        return Context(jnp.asarray(beta, jnp.float32), step, key)

    def _polyak_updated(
        self, online: dict[str, Params], lagged: dict[str, Params], finite: Array
    ) -> dict[str, Params]:
        """The lagged copies after an update: those that follow by Polyak averaging have moved."""
        result = dict(lagged)
        for name, following in self.method.networks.items():
            if following.polyak is not None:
                share = jnp.where(finite, following.polyak, 0.0)
                result[name] = jax.tree.map(
                    lambda new, old, share=share: old + share * (new[None] - old),
                    online[name],
                    lagged[name],
                )
        return result


def make_learner(
    method: Method,
    network: nn.Module | Mapping[str, nn.Module],
    optimiser: optax.GradientTransformation | Mapping[str, optax.GradientTransformation],
    spaces: Spaces,
    *,
    beta: Schedule | None,
    rates: Mapping[str, float] | None = None,
) -> Learner:
    """A learner of this method.

    Args:
      method: what is learned.
      network: any flax module from observations [B, ...] in their own dtype to outputs [B, A, …],
        for all networks, or one for each by name; each is initialised by a key of its own.
      optimiser: any optax transformation, or one for each network by name; each network has its own
        state of it.
      spaces: what is seen and done.
      beta: β as a function of the agent step.
      rates: the learning rate of each network by name.
    """
    names = tuple(method.networks)
    modules = network if isinstance(network, Mapping) else dict.fromkeys(names, network)
    optimisers = optimiser if isinstance(optimiser, Mapping) else dict.fromkeys(names, optimiser)
    return Learner(method, modules, optimisers, spaces, beta, rates or {})


def networks_of(
    modules: Mapping[str, nn.Module],
    online: Mapping[str, Params],
    frozen: Mapping[str, Params],
    lagged: Mapping[str, Params],
) -> Networks:
    """The networks with their parameters; lagged leaves are [L, ...]."""

    def applied(name: str, params: Params) -> Apply:
        return lambda *inputs: modules[name].apply({"params": params}, *inputs)

    def copies(name: str, params: Params) -> tuple[Apply, ...]:
        count = len(jax.tree.leaves(params)[0])
        return tuple(applied(name, jax.tree.map(lambda p, i=i: p[i], params)) for i in range(count))

    return Networks(
        {name: applied(name, params) for name, params in online.items()},
        {name: applied(name, params) for name, params in frozen.items()},
        {name: copies(name, params) for name, params in lagged.items()},
    )


def _replace_nonfinite(online: dict[str, Params], lagged: dict[str, Params]) -> dict[str, Params]:
    """What is not finite, replaced by the newest lagged copy (by 0 where there is none)."""

    def finite(name: str, params: Params) -> Params:
        if name not in lagged:
            return jax.tree.map(lambda new: jnp.where(jnp.isfinite(new), new, 0), params)
        return jax.tree.map(
            lambda new, old: jnp.where(jnp.isfinite(new), new, old[0]), params, lagged[name]
        )

    return {name: finite(name, params) for name, params in online.items()}


def update_size(
    optimiser: optax.GradientTransformation, gradients: Any, state: Any, params: Any
) -> Array:
    """The root mean square of what an optimiser would add to the parameters."""
    leaves = jax.tree.leaves(optimiser.update(gradients, state, params)[0])
    squares = jnp.stack([jnp.sum(jnp.square(leaf)) for leaf in leaves])
    return jnp.sqrt(jnp.sum(squares) / sum(leaf.size for leaf in leaves))


def dormant(module: nn.Module, params: Any, seen: Array) -> Mapping[str, Array]:
    """The share of dormant units in the hidden layer that has most of them.

    A channel of a convolution is one unit. A network that notes no activations has no share.
    """
    _, noted = module.apply({"params": params}, seen, mutable=["intermediates"])
    shares = []
    for path, layer in jax.tree_util.tree_leaves_with_path(noted.get("intermediates", {})):
        if any(getattr(entry, "key", None) == ACTIVATIONS for entry in path):
            activity = jnp.mean(jnp.abs(layer), axis=tuple(range(layer.ndim - 1)))
            shares.append(jnp.mean(activity <= DORMANT * jnp.mean(activity)))
    return {"dormant": jnp.max(jnp.stack(shares))} if shares else {}


def _all_finite(tree: Any) -> Array:
    # One matrix product for each leaf reads it at the memory's speed. Weights this small keep the
    # sum of finite entries finite.
    leaves = [leaf.reshape(-1, *leaf.shape[-1:]) for leaf in jax.tree.leaves(tree)]
    sums = [jnp.full(leaf.shape[0], 2.0**-32, leaf.dtype) @ leaf for leaf in leaves]
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(sum)) for sum in sums]))


def fingerprint(learner: Learner, spaces: Spaces) -> str:
    """A digest of what updating and acting compute: losses, networks, optimisers, β, the policy.

    Two learners with the same digest train alike. It is of their trace, so that it can be compared
    only where this package and JAX are the same: the first part is of this package's source.
    """
    shape, dtype = spaces.observation.shape, spaces.observation.dtype
    m, b = learner.minibatches, 2
    seen = jax.ShapeDtypeStruct((m, b, *shape), dtype)
    number = jax.ShapeDtypeStruct((m, b), jnp.float32)
    action = jax.ShapeDtypeStruct((m, b, *spaces.action.shape), spaces.action.dtype)
    batches = Transition(seen, action, number, number, seen)
    key = jax.eval_shape(lambda: jax.random.key(0))
    state = jax.eval_shape(learner.init, key)
    step = jax.ShapeDtypeStruct((), jnp.int32)
    digest = hashlib.sha256()
    for traced in (
        jax.make_jaxpr(learner.update)(state, batches, step, key),
        jax.make_jaxpr(learner.act)(state, jax.ShapeDtypeStruct((b, *shape), dtype), key),
    ):
        text = traced.pretty_print(use_color=False)  # str colours it in a terminal or a notebook
        text = re.sub(r" at 0x[0-9a-fX]+", "", text)  # where a function lies in memory
        digest.update(text.encode())
        for constant in _constants(traced):
            digest.update(np.asarray(constant).tobytes())
    return f"{_source()}-{digest.hexdigest()}"


def comparable(one: str, other: str) -> bool:
    """Whether two fingerprints are of the same source of this package."""
    return bool(one) and one.partition("-")[0] == other.partition("-")[0]


@cache
def _source() -> str:
    """A digest of what this package traces: its agents, and what algorithms are made of."""
    digest, package = hashlib.sha256(), Path(__file__).parents[1]
    for file in sorted([*package.glob("agents/*.py"), *package.glob("core/*.py")]):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _constants(traced: Any) -> Iterator[Any]:
    """The arrays in a trace, those of functions inside it too."""
    yield from traced.consts
    for equation in traced.jaxpr.eqns:
        for parameter in jax.tree.leaves(
            list(equation.params.values()), is_leaf=lambda x: hasattr(x, "consts")
        ):
            if hasattr(parameter, "consts") and hasattr(parameter, "jaxpr"):
                yield from _constants(parameter)
