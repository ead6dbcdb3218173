"""Action-value networks: observation in its own dtype in, one value per action out.

All kernels are Glorot-uniform and all biases zero, as in Dopamine.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array

from momentum_rl.agents.layers import SlicedConv, StridedConv, dot_general
from momentum_rl.core.values import NUMBER, ValueKind
from momentum_rl.errors import UserError
from momentum_rl.plumbing.sizes import require
from momentum_rl.spaces import ObservationSpace, Spaces

Kind = Literal["nature", "minatar", "mlp"]

DEEPEST = 100
COPIES = 6  # of the weights while they are trained: online, lagged, gradient, the optimiser's

ACTIVATIONS = "activations"  # of each hidden layer, kept where flax is asked for intermediates

glorot = nn.initializers.xavier_uniform()


@dataclass(frozen=True)
class NetworkSpec:
    """A network by name: what a config and an agent's file say about it."""

    kind: Kind
    """nature: the Nature CNN; minatar: conv 16@3×3 and dense 128; mlp: dense layers."""
    hidden: tuple[int, ...] = (64, 64)
    """The widths of an MLP's hidden layers."""
    padding: Literal["SAME", "VALID"] = "SAME"
    """The padding of the Nature CNN's convolutions (Dopamine: SAME; the paper does not say)."""


def channels_first(shape: tuple[int, ...]) -> bool:
    """Whether an image is [C, H, W]: its first axis is shorter than both others.

    >>> channels_first((4, 84, 84)), channels_first((210, 160, 3)), channels_first((10, 10, 4))
    (True, False, False)
    """
    return shape[0] < min(shape[1:])


def encode(observation: Array, space: ObservationSpace) -> Array:
    """Observations [B, ...] as float32: categories one-hot, uint8 divided by 255."""
    if space.categories is not None:
        return jax.nn.one_hot(observation - space.start, space.categories, dtype=jnp.float32)
    encoded = jnp.asarray(observation).astype(jnp.float32)
    return encoded / 255 if space.dtype == "uint8" else encoded


def _hidden(module: nn.Module, x: Array) -> Array:
    """The activations of a hidden layer, noted for whoever asks."""
    x = nn.relu(x)
    module.sow("intermediates", ACTIVATIONS, x)
    return x


def _image(x: Array) -> Array:
    return jnp.moveaxis(x, 1, -1) if channels_first(x.shape[1:]) else x


class Nature(nn.Module):
    """conv 32@8×8/4, 64@4×4/2, 64@3×3/1, dense 512 (the paper's table)."""

    padding: str = "SAME"

    @nn.compact
    def __call__(self, x: Array) -> Array:
        """Images [B, H, W, C] or [B, C, H, W] to features [B, 512]."""
        x = _image(x)
        layers = ((32, 8, 4), (64, 4, 2), (64, 3, 1))
        for i, (features, size, stride) in enumerate(layers):
            name = f"Conv_{i}"
            convolution = StridedConv(features, size, stride, self.padding, glorot, name=name)
            x = _hidden(self, convolution(x))
        return _hidden(self, nn.Dense(512, kernel_init=glorot)(x.reshape(x.shape[0], -1)))


class MinAtar(nn.Module):
    """conv 16@3×3 without padding, dense 128 (the network of MinAtar's authors)."""

    @nn.compact
    def __call__(self, x: Array) -> Array:
        """Images [B, H, W, C] or [B, C, H, W] to features [B, 128]."""
        convolution = SlicedConv(16, (3, 3), kernel_init=glorot, name="Conv_0")
        x = _hidden(self, convolution(_image(x)))
        dense = nn.Dense(128, kernel_init=glorot, dot_general=dot_general)
        return _hidden(self, dense(x.reshape(x.shape[0], -1)))


class MLP(nn.Module):
    """Dense layers with ReLU."""

    hidden: tuple[int, ...] = (64, 64)

    @nn.compact
    def __call__(self, x: Array) -> Array:
        """Anything [B, ...], flattened, to features [B, hidden[-1]]."""
        x = x.reshape(x.shape[0], -1)
        for width in self.hidden:
            x = _hidden(self, nn.Dense(width, kernel_init=glorot)(x))
        return x


class ActionValues(nn.Module):
    """Encodes the observation, applies a torso, and gives one value per action."""

    space: ObservationSpace
    torso: nn.Module
    actions: int
    shape: tuple[int, ...] = ()
    """The trailing axes of a value."""

    @nn.compact
    def __call__(self, observation: Array) -> Array:
        """Observations [B, ...] to outputs [B, A, *shape]."""
        features = self.torso(encode(observation, self.space))
        outputs = nn.Dense(self.actions * math.prod(self.shape), kernel_init=glorot)(features)
        return outputs.reshape(-1, self.actions, *self.shape) if self.shape else outputs


def choose_network(space: ObservationSpace) -> Kind:
    """Nature for images of at least 36×36, MinAtar for smaller ones, an MLP for the rest.

    >>> choose_network(ObservationSpace((4, 84, 84), "uint8"))
    'nature'
    >>> choose_network(ObservationSpace((10, 10, 4), "bool"))
    'minatar'
    >>> choose_network(ObservationSpace((4,), "float32"))
    'mlp'
    """
    if len(space.shape) != 3:
        return "mlp"
    height, width = space.shape[1:] if channels_first(space.shape) else space.shape[:2]
    if min(height, width) >= 36:
        return "nature"
    return "minatar" if min(height, width) >= 3 else "mlp"


def check_weights(spec: NetworkSpec, space: ObservationSpace, more: int, outputs: int) -> None:
    """Raises at once if an MLP cannot fit: its description may come from a file.

    It takes ``more`` numbers beside an observation.
    """
    if len(spec.hidden) > DEEPEST:
        raise UserError(f"hidden: {len(spec.hidden)} layers, expected at most {DEEPEST}")
    seen = space.categories or math.prod(space.shape)
    widths = (seen + more, *spec.hidden, outputs)
    weights = sum(a * b for a, b in itertools.pairwise(widths))
    require(f"network of {weights:,} weights", memory=COPIES * 4 * weights)


def make_network(spec: NetworkSpec, spaces: Spaces, value: ValueKind = NUMBER) -> nn.Module:
    """The network of this spec for these observations and actions, and values of this kind."""
    space = spaces.observation
    if spec.kind in ("nature", "minatar") and len(space.shape) != 3:
        raise UserError(
            f"network: {spec.kind!r} needs image observations of three axes, "
            f"found observations of shape {space.shape}"
        )
    if spec.kind == "mlp":
        check_weights(spec, space, 0, spaces.numbered * math.prod(value.shape))
    torsos: dict[str, Callable[[], nn.Module]] = {
        "nature": lambda: Nature(spec.padding),
        "minatar": MinAtar,
        "mlp": lambda: MLP(spec.hidden),
    }
    if spec.kind not in torsos:
        raise UserError(f"network: {spec.kind!r}, expected one of auto, {', '.join(torsos)}")
    return ActionValues(space, torsos[spec.kind](), spaces.numbered, value.shape)
