import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from momentum_rl.agents.layers import SlicedConv, StridedConv, dot_general, times_weights
from momentum_rl.agents.networks import NetworkSpec, make_network
from momentum_rl.spaces import ObservationSpace, Spaces

IMAGES = jnp.asarray(np.random.default_rng(1).normal(size=(3, 21, 21, 5)), jnp.float32)
X = jnp.asarray(np.random.default_rng(0).normal(size=(5, 10, 10, 4)), jnp.float32)
PLAIN = nn.Conv(16, (3, 3), padding="VALID")
SLICED = SlicedConv(16, (3, 3))


CASES = {
    "sliced": (SLICED, PLAIN, X),
    **{
        f"strided {padding} {size}/{stride}": (
            StridedConv(7, size, stride, padding),
            nn.Conv(7, (size, size), (stride, stride), padding=padding),
            IMAGES,
        )
        for padding in ("SAME", "VALID")
        for size, stride in ((8, 4), (4, 2), (3, 1))
    },
}
cases = pytest.mark.parametrize(("ours", "plain", "x"), CASES.values(), ids=CASES)


@cases
def test_parameters_have_the_names_shapes_and_initial_values_of_flax_conv(ours, plain, x):
    key = jax.random.key(0)
    jax.tree.map(np.testing.assert_array_equal, plain.init(key, x), ours.init(key, x))


@cases
def test_values_and_gradients_are_those_of_flax_conv(ours, plain, x):
    params = plain.init(jax.random.key(1), x)

    def loss(module):
        return lambda p, x: jnp.sum(jnp.sin(module.apply(p, x)))

    np.testing.assert_allclose(ours.apply(params, x), plain.apply(params, x), atol=1e-5)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4),
        jax.grad(loss(ours), argnums=(0, 1))(params, x),
        jax.grad(loss(plain), argnums=(0, 1))(params, x),
    )


def test_the_product_has_the_gradients_of_a_plain_one():
    rng = np.random.default_rng(2)
    x, w, dy = (jnp.asarray(rng.normal(size=s), jnp.float32) for s in ((6, 40), (40, 9), (6, 9)))
    plain = jax.vjp(jnp.matmul, x, w)[1](dy)
    np.testing.assert_allclose(times_weights(x, w), x @ w, rtol=1e-6)
    for ours, theirs in zip(jax.vjp(times_weights, x, w)[1](dy), plain):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
    dense = nn.Dense(9, dot_general=dot_general)
    for shape in ((6, 40), (2, 3, 40)):  # any leading axes, as flax's own
        at = jnp.ones(shape)
        params = dense.init(jax.random.key(0), at)
        np.testing.assert_allclose(dense.apply(params, at), nn.Dense(9).apply(params, at))


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
