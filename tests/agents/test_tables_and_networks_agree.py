"""With a one-hot linear network the learner is the tabular sampled scheme.

Every (s, a) is in the (shared) minibatch once; the loss is the mean of B squared errors, so plain
gradient descent with rate B/2 moves every entry onto its target: a unit rate per entry. One
synchronisation per update makes each update one iteration.
"""

import flax.linen as nn
import jax
import numpy as np
import optax
import pytest

from movi.agents import make_learner, options_of, regression
from movi.schedules import Mean
from movi.spaces import ObservationSpace, Spaces
from movi.transitions import Transition

STATES, ACTIONS, SUCCESSORS, GAMMA, ITERATIONS = 30, 4, 4, 0.9, 60


class OneHotLinear(nn.Module):
    @nn.compact
    def __call__(self, s):
        x = jax.nn.one_hot(s, STATES)
        return nn.Dense(ACTIONS, use_bias=False, kernel_init=nn.initializers.zeros)(x)


def garnet(seed):
    rng = np.random.default_rng(seed)
    successors = np.array(
        [
            [rng.choice(STATES, SUCCESSORS, replace=False) for _ in range(ACTIONS)]
            for _ in range(STATES)
        ]
    )
    cuts = np.sort(rng.random((STATES, ACTIONS, SUCCESSORS - 1)), axis=-1)
    p = np.diff(cuts, prepend=0, append=1, axis=-1)
    reward = rng.uniform(-1, 1, STATES)
    return rng, successors, p, reward


def samples():
    """One s' per (s, a) and iteration, [K, S, A]."""
    rng, successors, p, reward = garnet(1)
    u = rng.random((ITERATIONS, STATES, ACTIONS, 1))
    index = (u > np.cumsum(p, axis=-1)[None, ..., :-1]).sum(-1)
    return np.take_along_axis(
        np.broadcast_to(successors, (ITERATIONS, *successors.shape)), index[..., None], -1
    )[..., 0], np.broadcast_to(reward[:, None], (STATES, ACTIONS))


def movi(s2, r, k, tables):
    """q_k = r + γ q_{k−1}(s', argmax h_{k−1}(s')), h_k = (k h_{k−1} + q_k) / (k + 1)."""
    q, h = tables["q"], tables["h"]
    new = r + GAMMA * q[s2, h[s2].argmax(-1)]
    return {"q": new, "h": (k * h + new) / (k + 1)}


def sql(s2, r, k, tables):
    """q_k = q + (T q_old − q)/k + (1 − 1/k)(T q − T q_old), on one sample (Azar et al. 2011)."""
    q, old = tables["q"], tables["old"]
    t_q, t_old = (r + GAMMA * table[s2].max(-1) for table in (q, old))
    return {"q": q + (t_old - q) / k + (1 - 1 / k) * (t_q - t_old), "old": q}


def dpp(s2, r, k, tables):
    """ψ + r + γ max ψ(s') − max ψ(s)."""
    psi = tables["q"]
    return {"q": psi + r + GAMMA * psi[s2].max(-1) - psi.max(-1, keepdims=True)}


class FromZero:
    """β of SQL's iterations: 0, 1/2, 2/3, …, so that 1 − β_k = 1/k from k = 1."""

    def __call__(self, step):
        return Mean()(step - 1)


@pytest.mark.parametrize(
    ("name", "scheme", "beta"),
    [
        ("momentum-dqn", movi, Mean()),
        ("deep-sql", sql, FromZero()),
        ("deep-dpp", dpp, Mean()),
    ],
)
def test_a_one_hot_linear_learner_is_the_tabular_sampled_scheme(name, scheme, beta):
    successors, reward = samples()
    pairs = STATES * ACTIONS
    algorithm = options_of(name).algorithm()
    learner = make_learner(
        regression(algorithm, loss="squared", shared_batch=True),
        OneHotLinear(),
        optax.sgd(pairs / 2),
        Spaces(ObservationSpace((), "int32", STATES), ACTIONS),
        beta=beta,
    )
    update, sync = jax.jit(learner.update), jax.jit(learner.sync)
    state = learner.init(jax.random.key(0))
    zero = np.zeros((STATES, ACTIONS))
    tables = {"q": zero, "h": zero, "old": zero}
    s, a = (x.reshape(1, -1) for x in np.divmod(np.arange(pairs), ACTIONS))
    for k in range(1, ITERATIONS + 1):
        s2 = successors[k - 1]
        batch = Transition(
            observation=s.astype(np.int32),
            action=a.astype(np.int32),
            reward=reward.reshape(1, -1).astype(np.float32),
            discount=np.full((1, pairs), GAMMA, np.float32),
            next_observation=s2.reshape(1, -1).astype(np.int32),
        )
        state = sync(update(state, batch, k)[0])
        tables = scheme(s2, reward, k, tables)
        for network in algorithm.targets:
            np.testing.assert_allclose(
                state.online[network]["Dense_0"]["kernel"],
                tables[network],
                rtol=2e-5,
                atol=2e-5 * max(1, np.abs(tables[network]).max()),
            )
    assert np.abs(tables["q"]).max() > 1
