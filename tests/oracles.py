"""The same answers another way: dense NumPy, exact rationals, plain loops."""

from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from momentum_rl.errors import UserError
from momentum_rl.mdp.model import FiniteMDP


def refusal(function, *args, **kwargs):
    """The one line with which a user's mistake is refused."""
    try:
        function(*args, **kwargs)
    except UserError as error:
        line = str(error)
        assert line
        assert "\n" not in line
        return line
    raise AssertionError("accepted")


def random_mdp(seed, states, actions, branching, discount=0.9):
    """Any successors (repeated ones too), some probabilities zero, rewards per (s, a)."""
    rng = np.random.default_rng(seed)
    weights = rng.exponential(size=(states, actions, branching))
    weights[..., 1:] *= rng.random((states, actions, branching - 1)) < 0.8
    return FiniteMDP(
        rng.integers(0, states, (states, actions, branching)),
        weights / weights.sum(-1, keepdims=True),
        rng.normal(size=(states, actions)),
        discount,
    )


def dense_kernel(mdp):
    kernel = np.zeros((mdp.states, mdp.actions, mdp.states))
    for s, a, b in np.ndindex(*mdp.successors.shape):
        kernel[s, a, mdp.successors[s, a, b]] += mdp.probabilities[s, a, b]
    return kernel


def pair_kernel(mdp, policy):
    """P_π over pairs: [S·A, S·A], from (s, a) to (s', π(s'))."""
    pairs = np.zeros((mdp.states, mdp.actions, mdp.states, mdp.actions))
    pairs[:, :, np.arange(mdp.states), policy] = dense_kernel(mdp)
    return pairs.reshape(mdp.states * mdp.actions, -1)


def policy_q(mdp, policy):
    """q_π = (I − γ P_π)⁻¹ r over pairs, by a dense inverse."""
    kernel = pair_kernel(mdp, policy)
    inverse = np.linalg.inv(np.eye(len(kernel)) - float(mdp.discount) * kernel)
    return (inverse @ mdp.rewards.reshape(-1)).reshape(mdp.rewards.shape)


def optimal_q(mdp):
    """q* by value iteration on the dense kernel until nothing changes."""
    kernel, gamma = dense_kernel(mdp), float(mdp.discount)
    q = np.zeros(mdp.rewards.shape)
    for _ in range(200_000):
        new = mdp.rewards + gamma * kernel @ q.max(1)
        if np.abs(new - q).max() <= 1e-15 * (1 + np.abs(q).max()):
            return new
        q = new
    raise AssertionError("value iteration did not settle")


def rational_optimal_q(mdp):
    """q* without any rounding, for the float64 numbers of the MDP as they are."""
    gamma = Fraction(float(mdp.discount))
    states, actions = range(mdp.states), range(mdp.actions)
    rewards = [[Fraction(float(mdp.rewards[s, a])) for a in actions] for s in states]
    kernel = [[[Fraction(0)] * mdp.states for _ in actions] for _ in states]
    for s, a, b in np.ndindex(*mdp.successors.shape):
        kernel[s][a][mdp.successors[s, a, b]] += Fraction(float(mdp.probabilities[s, a, b]))
    policy = [0] * mdp.states
    while True:
        system = [
            [(i == j) - gamma * kernel[i][policy[i]][j] for j in states] + [rewards[i][policy[i]]]
            for i in states
        ]
        v = _solve(system)
        q = [
            [rewards[s][a] + gamma * sum(p * x for p, x in zip(kernel[s][a], v)) for a in actions]
            for s in states
        ]
        better = [max(actions, key=q[s].__getitem__) for s in states]
        if all(q[s][better[s]] == q[s][policy[s]] for s in states):
            return q
        policy = [better[s] if q[s][better[s]] > q[s][policy[s]] else policy[s] for s in states]


def _solve(rows):
    """Gauss-Jordan on [A | b]."""
    n = len(rows)
    for i in range(n):
        pivot = next(j for j in range(i, n) if rows[j][i] != 0)
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [x / rows[i][i] for x in rows[i]]
        for j in range(n):
            if j != i and rows[j][i] != 0:
                rows[j] = [x - rows[j][i] * y for x, y in zip(rows[j], rows[i])]
    return [row[-1] for row in rows]


@st.composite
def mdp_arrays(draw, batches=(None,), shapes=None, discounts=None):
    """The four arrays of a valid MDP; zero probabilities and repeated successors included."""
    batch = draw(st.sampled_from(batches))
    lead = () if batch is None else (batch,)
    sizes = st.tuples(st.integers(1, 5), st.integers(1, 3), st.integers(1, 4))
    states, actions, branching = draw(st.sampled_from(shapes) if shapes else sizes)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    shape = (*lead, states, actions, branching)
    weights = rng.integers(0, 4, shape) * rng.random(shape)
    weights[..., 0] += weights.sum(-1) == 0
    scale = draw(st.sampled_from([1.0, 1e6, 1e-6]))
    rewards = scale * rng.uniform(-1, 1, shape[:-1])
    if discounts is None:
        discounts = st.one_of(
            st.just(0.0), st.floats(0, 1, exclude_max=True), st.just(1 - 2.0**-53)
        )
    discount = np.array(draw(st.lists(discounts, min_size=batch or 1, max_size=batch or 1)))
    return {
        "successors": rng.integers(0, states, shape),
        "probabilities": weights / weights.sum(-1, keepdims=True),
        "rewards": rewards,
        "discount": discount if lead else discount[0],
    }
