import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from movi.agents.convolution import SlicedConv
from movi.agents.networks import NetworkSpec, make_network
from movi.spaces import ObservationSpace, Spaces

X = jnp.asarray(np.random.default_rng(0).normal(size=(5, 10, 10, 4)), jnp.float32)
PLAIN = nn.Conv(16, (3, 3), padding="VALID")
SLICED = SlicedConv(16, (3, 3))


def test_parameters_have_the_names_shapes_and_initial_values_of_flax_conv():
    key = jax.random.key(0)
    jax.tree.map(np.testing.assert_array_equal, PLAIN.init(key, X), SLICED.init(key, X))


def test_values_and_gradients_are_those_of_flax_conv():
    params = PLAIN.init(jax.random.key(1), X)

    def loss(module):
        return lambda p: jnp.sum(jnp.sin(module.apply(p, X)))

    np.testing.assert_allclose(SLICED.apply(params, X), PLAIN.apply(params, X), atol=1e-5)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4),
        jax.grad(loss(SLICED))(params),
        jax.grad(loss(PLAIN))(params),
    )


def test_the_minatar_network_is_that_of_its_authors():
    spaces = Spaces(ObservationSpace((10, 10, 4), "bool"), 6)
    network = make_network(NetworkSpec("minatar"), spaces)
    params = network.init(jax.random.key(0), spaces.observation.zeros(1))["params"]
    shapes = jax.tree.map(lambda leaf: leaf.shape, params)
    assert shapes == {
        "torso": {
            "Conv_0": {"kernel": (3, 3, 4, 16), "bias": (16,)},
            "Dense_0": {"kernel": (8 * 8 * 16, 128), "bias": (128,)},
        },
        "Dense_0": {"kernel": (128, 6), "bias": (6,)},
    }
