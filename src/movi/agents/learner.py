"""The one learner: DQN's machinery with the targets of any ``Algorithm`` in it.

A learner is four pure functions. Each network of the algorithm (q; or q and h) has an online copy,
L lagged copies and an optimiser state of its own; each update moves every online network one
optimiser step towards its own target, evaluated on the lagged copies only:

    θ_i ← θ_i − optimiser(∇ mean_B loss(network_i(s; θ_i)[a] − target_i(lagged, s, a, r, s', β)))

Every algorithm of the paper is this with other targets: there is no other update in the package.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax

from movi.errors import UserError
from movi.schedules import Schedule
from movi.spaces import ObservationSpace
from movi.targets import Algorithm
from movi.transitions import Transition

Array = Any
Params = Any
Loss = Literal["huber", "squared"]


class LearnerState(NamedTuple):
    """Everything that learning needs to continue, by network name.

    Attributes:
      online: the parameters that are trained.
      lagged: the parameters that targets read, each leaf [L, ...], newest first.
      optimiser: one optimiser state per network.
      updates: the number of updates so far.
      diverged_at: the step of the first update that was not finite; 0 before it. From then on the
        state stands still, so that it keeps the last finite parameters.
    """

    online: dict[str, Params]
    lagged: dict[str, Params]
    optimiser: dict[str, optax.OptState]
    updates: Array
    diverged_at: Array


class Learner(NamedTuple):
    """An algorithm made learnable; each function is pure and maps over seeds.

    Attributes:
      init: ``init(key) -> state``.
      update: ``update(state, batches, step) -> (state, metrics)``. ``batches`` is a ``Transition``
        of arrays [M, B, ...] with M = ``minibatches``; ``step`` is the agent step, for β.
        ``metrics`` has each network's loss and mean value of the actions taken.
      sync: ``sync(state) -> state``: the online networks become the newest lagged copies, and each
        older copy moves back by one.
      act: ``act(state, observations [n, ...]) -> actions [n]``, greedy.
      values: ``values(state, observations [n, ...]) -> {name: [n, A]}`` of the online networks.
      minibatches: how many minibatches an update takes: one per network, or one shared.
    """

    init: Callable[[Array], LearnerState]
    update: Callable[[LearnerState, Transition, Array], tuple[LearnerState, dict[str, Array]]]
    sync: Callable[[LearnerState], LearnerState]
    act: Callable[[LearnerState, Array], Array]
    values: Callable[[LearnerState, Array], dict[str, Array]]
    minibatches: int


def huber(error: Array) -> Array:
    """½ e² for |e| ≤ 1, |e| − ½ beyond: its gradient is clipped at 1."""
    return optax.losses.huber_loss(error, delta=1.0)


def squared(error: Array) -> Array:
    """e², without ½."""
    return jnp.square(error)


LOSSES: Mapping[str, Callable[[Array], Array]] = {"huber": huber, "squared": squared}


def make_learner(
    algorithm: Algorithm,
    network: nn.Module,
    optimiser: optax.GradientTransformation,
    space: ObservationSpace,
    *,
    beta: Schedule,
    loss: Loss | Callable[[Array], Array] = "huber",
    shared_batch: bool = False,
    reward_clip: float | None = None,
) -> Learner:
    """A learner of this algorithm.

    Args:
      algorithm: the networks, their targets, which one acts, how many lagged copies there are.
      network: any flax module from observations [B, ...] in their own dtype to values [B, A]. All
        networks of the algorithm have this structure; each is initialised by a key of its own.
      optimiser: any optax transformation; each network has its own state of it.
      space: what one observation is.
      beta: β as a function of the agent step.
      loss: of the error, "huber" or "squared" or a function of arrays; the mean over the minibatch
        is minimised.
      shared_batch: one minibatch for all networks instead of one for each.
      reward_clip: learn from rewards clipped to ± this.
    """
    if isinstance(loss, str) and loss not in LOSSES:
        raise UserError(f"loss: {loss!r}, expected one of {', '.join(LOSSES)}")
    loss_of = LOSSES[loss] if isinstance(loss, str) else loss
    names = tuple(algorithm.targets)
    minibatches = 1 if shared_batch else len(names)

    def apply(params: Params, observation: Array) -> Array:
        return network.apply({"params": params}, observation)

    def lagged_rows(params: Params, observation: Array) -> Array:
        """The values of all lagged copies, [B, L, A]."""
        copies = [jax.tree.map(lambda p, i=i: p[i], params) for i in range(algorithm.lags)]
        return jnp.stack([apply(copy, observation) for copy in copies], axis=1)

    def init(key: Array) -> LearnerState:
        example = space.zeros(1)
        online, lagged, states = {}, {}, {}
        for name, k in zip(names, jax.random.split(key, len(names))):
            variables = network.init(k, example)
            if set(variables) != {"params"}:
                raise UserError(
                    f"network: has variables {sorted(variables)}, expected parameters only"
                )
            online[name] = variables["params"]
            lagged[name] = jax.tree.map(
                lambda p: jnp.stack([p] * algorithm.lags), variables["params"]
            )
            states[name] = optimiser.init(variables["params"])
        return LearnerState(online, lagged, states, jnp.int32(0), jnp.int32(0))

    def targets(lagged: dict[str, Params], batches: Transition, step: Array) -> list[Array]:
        """Each network's targets, [B], on its own minibatch."""
        m, b = batches.action.shape
        # All minibatches' next states in one go: one large product instead of several small ones.
        flat = batches.next_observation.reshape(m * b, *batches.next_observation.shape[2:])
        next_rows = {
            name: lagged_rows(lagged[name], flat).reshape(m, b, algorithm.lags, -1)
            for name in names
        }
        # What no target reads of these is never computed: it is dead code to the compiler.
        rows = [
            {name: lagged_rows(lagged[name], batches.observation[j]) for name in names}
            for j in range(m)
        ]
        reward = batches.reward.astype(jnp.float32)
        if reward_clip is not None:
            reward = jnp.clip(reward, -reward_clip, reward_clip)
        mixture = jnp.asarray(beta(step), jnp.float32)
        result = []
        for i, name in enumerate(names):
            j = i % m
            result.append(
                jax.vmap(algorithm.targets[name].__call__, in_axes=(0, 0, 0, 0, 0, None))(
                    rows[j],
                    batches.action[j],
                    reward[j],
                    batches.discount[j],
                    {other: next_rows[other][j] for other in names},
                    mixture,
                )
            )
        return result

    def move(
        online: dict[str, Params], states: dict[str, Any], gradients: dict[str, Params]
    ) -> tuple[dict[str, Params], dict[str, Any]]:
        """One optimiser step of each network."""
        moved = {}
        for name in names:
            change, state = optimiser.update(gradients[name], states[name], online[name])
            moved[name] = optax.apply_updates(online[name], change), state
        return {name: moved[name][0] for name in names}, {name: moved[name][1] for name in names}

    def mended(online: dict[str, Params], lagged: dict[str, Params]) -> dict[str, Params]:
        """What is not finite, replaced by the newest lagged copy."""
        return jax.tree.map(
            lambda new, old: jnp.where(jnp.isfinite(new), new, old[0]), online, lagged
        )

    def update(
        state: LearnerState, batches: Transition, step: Array
    ) -> tuple[LearnerState, dict[str, Array]]:
        gradients, metrics = {}, {}
        finite = state.diverged_at == 0
        regressions = zip(names, targets(state.lagged, batches, step))
        for i, (name, target) in enumerate(regressions):
            j = i % minibatches

            def objective(
                params: Params, j: int = j, target: Array = target
            ) -> tuple[Array, Array]:
                values = apply(params, batches.observation[j])
                taken = jnp.take_along_axis(values, batches.action[j][:, None], axis=1)[:, 0]
                return jnp.mean(loss_of(taken - jax.lax.stop_gradient(target))), jnp.mean(taken)

            (cost, value), gradients[name] = jax.value_and_grad(objective, has_aux=True)(
                state.online[name]
            )
            finite &= jnp.isfinite(cost) & _all_finite(gradients[name])
            metrics[f"loss_{name}"], metrics[f"mean_{name}"] = cost, value
        # A branch moves the parameters in place; a choice between the old and the new ones would
        # copy all of them, at a third of an update's time.
        online, states = jax.lax.cond(
            finite,
            move,
            lambda online, states, _: (online, states),
            state.online,
            state.optimiser,
            gradients,
        )
        finite &= _all_finite(online)  # an optimiser can spoil finite gradients
        # A loop of at most one round: a branch would copy the parameters on the usual way too.
        online, _ = jax.lax.while_loop(
            lambda carry: carry[1],
            lambda carry: (mended(carry[0], state.lagged), jnp.zeros_like(carry[1])),
            (online, ~finite & (state.diverged_at == 0)),
        )
        return LearnerState(
            online=online,
            lagged=state.lagged,
            optimiser=states,
            updates=state.updates + finite,
            diverged_at=jnp.where(
                finite | (state.diverged_at > 0), state.diverged_at, jnp.asarray(step, jnp.int32)
            ),
        ), metrics

    def sync(state: LearnerState) -> LearnerState:
        lagged = jax.tree.map(
            lambda new, old: jnp.concatenate([new[None], old[:-1]]), state.online, state.lagged
        )
        return state._replace(lagged=lagged)

    def act(state: LearnerState, observation: Array) -> Array:
        return jnp.argmax(apply(state.online[algorithm.acts_on], observation), axis=-1)

    def values(state: LearnerState, observation: Array) -> dict[str, Array]:
        return {name: apply(state.online[name], observation) for name in names}

    return Learner(init, update, sync, act, values, minibatches)


def _all_finite(tree: Any) -> Array:
    # One matrix product for each leaf reads it at the memory's speed. Weights this small keep the
    # sum of finite entries finite.
    leaves = [leaf.reshape(-1, *leaf.shape[-1:]) for leaf in jax.tree.leaves(tree)]
    sums = [jnp.full(leaf.shape[0], 2.0**-32, leaf.dtype) @ leaf for leaf in leaves]
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(sum)) for sum in sums]))


def compiled(learner: Learner) -> Learner:
    """The same learner, compiled; ``update`` and ``sync`` take the state's buffers over."""
    return learner._replace(
        init=jax.jit(learner.init),
        update=jax.jit(learner.update, donate_argnums=0),
        sync=jax.jit(learner.sync, donate_argnums=0),
        act=jax.jit(learner.act),
        values=jax.jit(learner.values),
    )
