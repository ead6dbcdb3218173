"""The optimisers that a config can name; the API takes any optax transformation."""

from typing import Literal

import optax

from momentum_rl.errors import UserError

OptimiserName = Literal["rmsprop", "adam", "sgd"]


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
