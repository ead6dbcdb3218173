"""How networks are: the size of their next step, and how many of their units are dormant."""

from collections.abc import Mapping
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from jax import Array

from momentum_rl.agents.networks import ACTIVATIONS

DORMANT = 0.025  # of a layer's mean activity, at most (Sokar et al. 2023, arXiv:2302.12902)


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
