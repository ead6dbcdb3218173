"""What an agent acts on: observations of its space, or one line that says what is wrong."""

import datetime
import re

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from momentum_rl.agents.agent import Agent
from momentum_rl.errors import UserError
from momentum_rl.spaces import ObservationSpace, Spaces

FLOATS = ObservationSpace((2,), "float32")
PIXELS = ObservationSpace((2,), "uint8")
FLAGS = ObservationSpace((2,), "bool")
ROOMS = ObservationSpace((), "int64", categories=4, start=2)
NAN, INF = float("nan"), float("inf")


class Sums(nn.Module):
    """The values 10 and the sum of what is seen."""

    @nn.compact
    def __call__(self, x):
        ten = self.param("ten", nn.initializers.constant(10.0), (1,))
        total = x.reshape(len(x), -1).astype(jnp.float32).sum(1)
        return jnp.stack([jnp.broadcast_to(ten, total.shape), total], 1)


def agent_on(space):
    network = Sums()
    params = network.init(jax.random.key(0), space.zeros(1))["params"]
    return Agent(network, {"q": params}, Spaces(space, 2))


@pytest.mark.parametrize(
    ("space", "seen", "says"),
    [
        (FLOATS, [0.0, NAN], "nan, expected a finite float32 number"),
        (FLOATS, [[0.0, 1.0], [-INF, 0.0]], "-inf, expected a finite float32 number"),
        (FLOATS, [0.0, 1e300], "1e+300, expected a finite float32 number"),
        (FLOATS, [0.0, None], "0.0, expected a finite float32 number"),
        (FLOATS, None, "None, expected a finite float32 number"),
        (FLOATS, ["0", "1"], "0, expected a finite float32 number"),
        (FLOATS, [1j, 0], "1j, expected a finite float32 number"),
        (FLOATS, [datetime.date(2020, 1, 1)] * 2, "2020-01-01, expected a finite float32 number"),
        (FLOATS, np.array(["2020", "2021"], "datetime64[D]"), "2020-01-01, expected a finite"),
        (FLOATS, [[1], [1, 2]], "[[1], [1, 2]], expected a finite float32 number"),
        (FLOATS, np.zeros((0, 2)), "shape (0, 2), expected (2,) or (n, *(2,))"),
        (FLOATS, [], "shape (0,), expected (2,) or (n, *(2,))"),
        (PIXELS, [0.5, 1.0], "0.5, expected a uint8 number"),
        (PIXELS, np.ones(2, np.float32), "1.0, expected a uint8 number"),
        (PIXELS, [7, 300], "300, expected a uint8 number"),
        (PIXELS, [-1, 0], "-1, expected a uint8 number"),
        (FLAGS, [0, 2], "2, expected a bool number"),
        (FLAGS, [0.0, NAN], "nan, expected a bool number"),
        (ROOMS, 6, "6, expected a category in 2..5"),
        (ROOMS, [2, 1], "1, expected a category in 2..5"),
        (ROOMS, 2.0, "2.0, expected a category in 2..5"),
    ],
    ids=str,
)
def test_what_no_observation_can_be_is_refused(space, seen, says):
    agent = agent_on(space)
    for ask in (agent.act, agent.values, agent.distribution, agent.actions):
        with pytest.raises(UserError, match=re.escape(says)) as error:
            ask(seen)
        assert str(error.value).startswith("observation: ")


@pytest.mark.parametrize(
    ("space", "seen", "total"),
    [
        (FLOATS, np.array([7.0, 4.0]), 11),  # doubles
        (FLOATS, [7, 4], 11),
        (FLOATS, np.array([True, False]), 1),
        (FLOATS, jnp.array([7, 4]), 11),
        (PIXELS, [200, 55], 255),
        (PIXELS, np.array([200, 55], np.int16), 255),
        (FLAGS, [0, 1], 1),
        (FLAGS, np.array([0.0, 1.0], np.float32), 1),  # as gymnax's MinAtar has them
        (ROOMS, 5, 5),
        (ROOMS, np.uint8(2), 2),
    ],
    ids=str,
)
def test_the_same_numbers_in_another_dtype_are_the_same_observation(space, seen, total):
    agent = agent_on(space)
    assert agent.values(seen).tolist() == [10.0, total]
    assert agent.act(seen) == int(total > 10)
    batch = np.stack([np.asarray(seen)] * 3)
    assert agent.act(batch).tolist() == [int(total > 10)] * 3
