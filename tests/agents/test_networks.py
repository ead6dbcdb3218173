import jax
import jax.numpy as jnp
import numpy as np
import pytest

from momentum_rl.agents.networks import NetworkSpec, choose_network, encode, make_network
from momentum_rl.errors import UserError
from momentum_rl.spaces import ObservationSpace, Spaces


def count(params):
    return sum(leaf.size for leaf in jax.tree.leaves(params))


def init(spec, space, actions):
    network = make_network(spec, Spaces(space, actions))
    return network, network.init(jax.random.key(0), space.zeros(2))["params"]


@pytest.mark.parametrize(("padding", "flat"), [("SAME", 11 * 11 * 64), ("VALID", 7 * 7 * 64)])
def test_the_nature_network_has_the_papers_layers_with_either_padding(padding, flat):
    space = ObservationSpace((4, 84, 84), "uint8")
    network, params = init(NetworkSpec("nature", padding=padding), space, 18)
    expected = (
        (8 * 8 * 4 + 1 / 32 * 32) * 32
        + (4 * 4 * 32 + 1) * 64
        + (3 * 3 * 64 + 1) * 64
        + (flat + 1) * 512
        + 513 * 18
    )
    assert count(params) == expected
    assert params["torso"]["Dense_0"]["kernel"].shape == (flat, 512)
    assert network.apply({"params": params}, space.zeros(2)).shape == (2, 18)


def test_images_with_channels_first_and_last_give_the_same_values():
    rng = np.random.default_rng(0)
    image = rng.integers(256, size=(2, 4, 84, 84), dtype=np.uint8)
    first, params = init(NetworkSpec("nature"), ObservationSpace((4, 84, 84), "uint8"), 6)
    last = make_network(NetworkSpec("nature"), Spaces(ObservationSpace((84, 84, 4), "uint8"), 6))
    np.testing.assert_allclose(
        first.apply({"params": params}, image),
        last.apply({"params": params}, image.transpose(0, 2, 3, 1)),
        rtol=1e-5,
        atol=1e-6,
    )


def test_the_minatar_network_has_its_authors_layers():
    space = ObservationSpace((10, 10, 4), "bool")
    network, params = init(NetworkSpec("minatar"), space, 6)
    assert count(params) == (3 * 3 * 4 + 1) * 16 + (8 * 8 * 16 + 1) * 128 + 129 * 6
    assert network.apply({"params": params}, space.zeros(3)).shape == (3, 6)


def test_kernels_are_glorot_uniform_and_biases_zero():
    _, params = init(NetworkSpec("mlp", hidden=(400,)), ObservationSpace((100,), "float32"), 2)
    kernel = np.asarray(params["torso"]["Dense_0"]["kernel"])
    limit = np.sqrt(6 / 500)
    assert np.abs(kernel).max() <= limit
    assert np.abs(kernel).max() > 0.99 * limit
    np.testing.assert_allclose(kernel.std(), limit / np.sqrt(3), rtol=0.02)
    assert not np.any(params["torso"]["Dense_0"]["bias"])


def test_observations_are_encoded_by_their_space():
    np.testing.assert_allclose(
        encode(np.array([[0, 51, 255]], np.uint8), ObservationSpace((3,), "uint8")),
        [[0, 0.2, 1]],
        rtol=1e-6,
    )
    np.testing.assert_array_equal(
        encode(np.array([3, 1]), ObservationSpace((), "int64", categories=3, start=1)),
        [[0, 0, 1], [1, 0, 0]],
    )
    wide = encode(np.array([[1.5, -2.0]]), ObservationSpace((2,), "float64"))
    assert wide.dtype == jnp.float32
    np.testing.assert_array_equal(wide, [[1.5, -2.0]])


def test_the_network_is_chosen_from_the_observations_and_a_wrong_one_is_refused():
    assert choose_network(ObservationSpace((210, 160, 3), "uint8")) == "nature"
    assert choose_network(ObservationSpace((10, 10, 7), "bool")) == "minatar"
    assert choose_network(ObservationSpace((), "int64", 16)) == "mlp"
    assert choose_network(ObservationSpace((2, 3), "float32")) == "mlp"
    with pytest.raises(UserError, match=r"nature.*shape \(4,\)"):
        make_network(NetworkSpec("nature"), Spaces(ObservationSpace((4,), "float32"), 2))
