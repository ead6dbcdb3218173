"""Soft actor-critic, and momentum in it: losses and a policy over networks, continuous actions.

SAC (Haarnoja et al. 2018), with a' ~ π(·|s'), a ~ π(·|s) and the temperature α:

    y = r + γ (min_i Q_i⁻(s', a') − α ln π(a'|s'))
    critics      Q_i(s, b) → y                            b: the action that was taken
    actor        minimises α ln π(a|s) − min_i Q_i(s, a)
    temperature  minimises −α (ln π(a|s) + H̄)             H̄: the entropy that is wanted

Momentum (the paper's conclusion): the actor improves against an average of what is evaluated, H,
which has as many critics as Q, with the same minimum,

    H_i(s, b) → β H_i⁻(s, b) + (1 − β) y,    the actor minimises α ln π(a|s) − min_i H_i(s, a)

With an exact actor π_{k+1} ∝ exp(h_k/α), and h_k = β h_{k−1} + (1 − β) q_k makes this
π_{k+1} ∝ π_k^β exp((1 − β) q_k/α): the policy that is greedy for q_k − λ KL(π‖π_k) + α H(π) with
λ = α β/(1 − β). The KL is in that greedy step alone; "with regularised evaluation" it is in y too,
which has −λ (ln π(a'|s') − ln π⁻(a'|s')) beside the entropy, π⁻ the lagged actor.

All networks move at once, from the same parameters: the actor climbs the critics as they were
before their step.
"""

import math
from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

import chex
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from momentum_rl.agents.method import (
    LOSSES,
    Context,
    Diagnostics,
    Loss,
    Method,
    Networks,
    TargetCopies,
)
from momentum_rl.agents.networks import MLP, NetworkSpec, check_weights, encode, glorot
from momentum_rl.agents.sac import SAC, MomentumSAC
from momentum_rl.core.soft import Real
from momentum_rl.errors import UserError
from momentum_rl.spaces import Box, ObservationSpace, Spaces, Transition


class Gaussian(NamedTuple):
    """Independent normal distributions of u [..., d]; an action is tanh u."""

    mean: Array
    log_std: Array

    def drawn(self, key: Array) -> tuple[Array, Array]:
        """u, differentiable in the distribution's parameters, and the log-density of its action."""
        noise = jax.random.normal(key, self.mean.shape, self.mean.dtype)
        u = self.mean + jnp.exp(self.log_std) * noise
        return u, self._log_density(u, noise)

    def log_density(self, u: Array) -> Array:
        """ln of the density of the action tanh u, [...]."""
        return self._log_density(u, (u - self.mean) * jnp.exp(-self.log_std))

    def _log_density(self, u: Array, noise: Array) -> Array:
        """The same by u = mean + σ · noise: of a small σ, u alone would not tell the noise.

        The change of variables subtracts ln(1 − tanh² u) = 2 (ln 2 − u − softplus(−2u)), which in
        this form is finite for every u.
        """
        normal = -0.5 * jnp.square(noise) - self.log_std
        change = 2 * (math.log(2) - u - jax.nn.softplus(-2 * u))
        return jnp.sum(normal - 0.5 * math.log(2 * math.pi) - change, axis=-1)


class Actor(nn.Module):
    """The distribution of the next action."""

    space: ObservationSpace
    hidden: tuple[int, ...]
    size: int
    low: float
    high: float
    bounding: Literal["clip", "tanh"]

    @nn.compact
    def __call__(self, observation: Array) -> Gaussian:
        """Observations [B, ...] to means and ln σ, [B, size] each."""
        features = MLP(self.hidden)(encode(observation, self.space))
        mean = nn.Dense(self.size, kernel_init=glorot, name="mean")(features)
        log_std = nn.Dense(self.size, kernel_init=glorot, name="log_std")(features)
        if self.bounding == "clip":
            return Gaussian(mean, jnp.clip(log_std, self.low, self.high))
        return Gaussian(mean, self.low + (self.high - self.low) * (jnp.tanh(log_std) + 1) / 2)


class Critics(nn.Module):
    """Values of (s, a) by several networks, the critics."""

    space: ObservationSpace
    hidden: tuple[int, ...]
    count: int

    @nn.compact
    def __call__(self, observation: Array, action: Array) -> Array:
        """Observations [B, ...] and actions [B, d] to values [B, count]."""
        seen = encode(observation, self.space)
        x = jnp.concatenate([seen.reshape(len(seen), -1), action], axis=-1)
        values = [
            nn.Dense(1, kernel_init=glorot)(MLP(self.hidden)(x))[:, 0] for _ in range(self.count)
        ]
        return jnp.stack(values, axis=-1)


class Temperature(nn.Module):
    """α, by its logarithm; 1 at the beginning."""

    @nn.compact
    def __call__(self) -> Array:
        """α."""
        return jnp.exp(self.param("log", nn.initializers.zeros, ()))


def squashed(networks: Networks, observations: Array, key: Array | None) -> Array:
    """The policy: an action in [−1, 1] that is drawn, or without a key that of the mean."""
    policy: Gaussian = networks.online["actor"](observations)
    return jnp.tanh(policy.mean if key is None else policy.drawn(key)[0])


def soft_actor_critic(options: SAC, loss: Loss, reward_clip: float | None) -> Method:
    """SAC, or with its options momentum in it; the equations are in the module's text.

    Args:
      options: SAC's, or Momentum-SAC's.
      loss: of the critics' errors.
      reward_clip: learn from rewards clipped to ± this.
    """
    momentum = options if isinstance(options, MomentumSAC) else None
    if loss not in LOSSES:
        raise UserError(f"loss: {loss!r}, expected one of {', '.join(LOSSES)}")
    rates = {"actor": options.actor_rate, "temperature": options.temperature_rate}
    following = TargetCopies(1, options.polyak)
    regularised = momentum is not None and momentum.regularised
    networks = {"q": following, "actor": following if regularised else TargetCopies(0)}
    if momentum is not None:
        networks["h"] = following
    if options.temperature is None:
        networks["temperature"] = TargetCopies(0)

    def build(spec: NetworkSpec, spaces: Spaces) -> Mapping[str, nn.Module]:
        return {key: _build(options, spec, spaces)[key] for key in networks}

    return Method(
        "sac" if momentum is None else "momentum-sac",
        networks,
        _losses(options, momentum, LOSSES[loss], reward_clip),
        squashed,
        build,
        inputs={**dict.fromkeys(("q", "h"), _pair), "temperature": lambda spaces: ()},
        minibatches=1 if momentum is None or momentum.shared_batch else 2,
        shown=("alpha", "entropy", *(f"mean_{key}" for key in ("q", "h") if key in networks)),
        uses_beta=momentum is not None,
        acts_on="actor",
        actions="box",
        rates={network: rate for network, rate in rates.items() if rate is not None},
    )


def _pair(spaces: Spaces) -> tuple[np.ndarray, np.ndarray]:
    """What a critic takes."""
    return spaces.observation.zeros(1), np.zeros((1, *spaces.action.shape), spaces.action.dtype)


def _build(options: SAC, spec: NetworkSpec, spaces: Spaces) -> Mapping[str, nn.Module]:
    if spec.kind != "mlp":
        raise UserError(f"network: {spec.kind!r}, expected mlp: critics take flat observations")
    assert isinstance(spaces.actions, Box)
    space, size = spaces.observation, spaces.actions.size
    check_weights(spec, space, size, 2 * size)
    low, high = options.log_std_min, options.log_std_max
    critics = Critics(space, spec.hidden, 2)
    return {
        "q": critics,
        "h": critics,
        "actor": Actor(space, spec.hidden, size, low, high, options.log_std),
        "temperature": Temperature(),
    }


def _losses(
    options: SAC,
    momentum: MomentumSAC | None,
    loss_of: Callable[[Array], Array],
    reward_clip: float | None,
) -> Callable[[Networks, Transition, Context], tuple[dict[str, Array], Diagnostics]]:
    """The losses of one update, by network."""

    def losses(
        networks: Networks, batches: Transition, context: Context
    ) -> tuple[dict[str, Array], Diagnostics]:
        assert context.key is not None
        for_next, for_actor = jax.random.split(context.key)
        fixed = options.temperature
        alpha: Real = networks.frozen["temperature"]() if fixed is None else fixed
        scaled = batches._replace(reward=_learned(batches.reward, reward_clip, options))
        y = _targets(networks, scaled, alpha, context.beta, momentum, for_next)
        s, taken = batches.observation[0], batches.action[0]
        values = networks.online["q"](s, taken)
        by_network = {"q": jnp.sum(loss_of(values - y[0][:, None]), axis=-1)}
        shown = {"mean_q": jnp.mean(values, axis=-1)}
        if momentum is not None:
            by_network["h"], shown["mean_h"] = _averaged(
                networks, batches, y, context.beta, loss_of
            )

        policy: Gaussian = networks.online["actor"](s)
        u, log_density = policy.drawn(for_actor)
        critic = networks.frozen["q" if momentum is None else "h"]
        by_network["actor"] = alpha * log_density - jnp.min(critic(s, jnp.tanh(u)), axis=-1)
        if fixed is None:
            wanted = options.target_entropy
            wanted = options.entropy_each * taken.shape[-1] if wanted is None else wanted
            excess = jax.lax.stop_gradient(log_density) + wanted
            by_network["temperature"] = -networks.online["temperature"]() * excess
        return by_network, {
            **shown,
            "entropy": -log_density,
            "alpha": jnp.asarray(alpha, jnp.float32),
        }

    return losses


def _learned(reward: Array, clip: float | None, options: SAC) -> Array:
    """The rewards that are learned from: clipped, then scaled."""
    reward = reward.astype(jnp.float32)
    if clip is not None:
        reward = jnp.clip(reward, -clip, clip)
    return reward if options.reward_scale == 1 else options.reward_scale * reward


def _targets(
    networks: Networks,
    batches: Transition,
    alpha: Real,
    beta: Array,
    momentum: MomentumSAC | None,
    key: Array,
) -> Array:
    """y of all minibatches, [M, B]; no gradient flows into it."""
    chex.assert_rank([batches.action, batches.reward, batches.discount], [3, 2, 2])
    m, b = batches.reward.shape
    # All minibatches' next states in one go: one large product instead of several small ones.
    successors = batches.next_observation.reshape(m * b, *batches.next_observation.shape[2:])
    policy: Gaussian = networks.frozen["actor"](successors)
    u, log_density = policy.drawn(key)
    soft = jnp.min(networks.lagged["q"][0](successors, jnp.tanh(u)), axis=-1) - alpha * log_density
    if momentum is not None and momentum.regularised:
        before: Gaussian = networks.lagged["actor"][0](successors)
        soft -= alpha * beta / (1 - beta) * (log_density - before.log_density(u))
    return jax.lax.stop_gradient(batches.reward + batches.discount * soft.reshape(m, b))


def _averaged(
    networks: Networks,
    batches: Transition,
    y: Array,
    beta: Array,
    loss_of: Callable[[Array], Array],
) -> tuple[Array, Array]:
    """The loss of H on its minibatch, the last, and its values; [B] each."""
    s, taken = batches.observation[-1], batches.action[-1]
    values = networks.online["h"](s, taken)
    target = beta * networks.lagged["h"][0](s, taken) + (1 - beta) * y[-1][:, None]
    loss = jnp.sum(loss_of(values - jax.lax.stop_gradient(target)), axis=-1)
    return loss, jnp.mean(values, axis=-1)
