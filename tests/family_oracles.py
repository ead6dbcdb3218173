"""The family of regularised schemes again, in dense NumPy and from the definitions.

Policies are probabilities, the KL divergence and the entropy are sums over actions, averages are
averages: nothing telescopes, and nothing is shared with the package. Each scheme yields (q, π) with
q after iteration k and π the policy used in it.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from momentum_rl.mdp.operators import on_device
from momentum_rl.planning.engine import exactly, from_samples, iterate, policy, start
from tests.oracles import dense_kernel

# How the package runs -----------------------------------------------------------------------------


@functools.partial(jax.jit, static_argnames=("scheme", "iterations"))
def _history(scheme, device, draws, iterations):
    def step(tables, now):
        k, own = now
        used = policy(scheme.algorithm, tables)
        if used.ndim == 1:
            used = jax.nn.one_hot(used, device.rewards.shape[1], dtype=jnp.float64)
        read = exactly(device) if own is None else from_samples(own)
        tables = iterate(scheme, tables, read, device, k)
        return tables, ({name: table[0] for name, table in tables.items()}, used)

    first = start(scheme.algorithm, *device.rewards.shape)
    return jax.lax.scan(step, first, (jnp.arange(1, iterations + 1), draws))[1]


def history(mdp, scheme, iterations, draws=None):
    """The tables after iterations 1..K and the policies used in them, [K, S, A] each."""
    with jax.enable_x64(True):
        draws = None if draws is None else jnp.asarray(draws)[:, None]
        tables, policies = _history(scheme, on_device(mdp), draws, iterations)
        return {name: np.asarray(table) for name, table in tables.items()}, np.asarray(policies)


def successors(mdp, iterations, seed=0):
    """One sampled successor for every iteration, state and action, [K, S, A]."""
    rng, kernel = np.random.default_rng(seed), dense_kernel(mdp)
    drawn = np.empty((iterations, mdp.states, mdp.actions), int)
    for s, a in np.ndindex(mdp.states, mdp.actions):
        drawn[:, s, a] = rng.choice(mdp.states, iterations, p=kernel[s, a] / kernel[s, a].sum())
    return drawn


# How the definitions run --------------------------------------------------------------------------


def softmax(x):
    weights = np.exp(x - x.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def greedy(x):
    return np.eye(x.shape[1])[x.argmax(1)]


def entropy(pi):
    return -(pi * np.log(pi)).sum(1)


def divergence(pi, other):
    return (pi * (np.log(pi) - np.log(other))).sum(1)


def logsumexp(x):
    top = x.max(1)
    return top + np.log(np.exp(x - top[:, None]).sum(1))


class Problem:
    """An MDP, exact or with one sampled model for each iteration."""

    def __init__(self, mdp, draws=None):
        self.r, self.gamma = mdp.rewards, float(mdp.discount)
        self.exact = dense_kernel(mdp)
        self.draws = draws
        self.zero = np.zeros(mdp.rewards.shape)

    def kernel(self, k):
        if self.draws is None:
            return self.exact
        return np.eye(len(self.r))[self.draws[k - 1]]

    def backup(self, k, v):
        return self.r + self.gamma * self.kernel(k) @ v

    def evaluated(self, k, pi, q, sweeps):
        """(T_π)^m q, or q_π by a linear system."""
        if sweeps is not None:
            for _ in range(sweeps):
                q = self.backup(k, (pi * q).sum(1))
            return q
        moves = np.einsum("sa,san->sn", pi, self.kernel(k))
        v = np.linalg.solve(np.eye(len(self.r)) - self.gamma * moves, (pi * self.r).sum(1))
        return self.backup(k, v)


def md_vi(problem, iterations, lam, tau, regularised):
    q, pi = problem.zero, softmax(problem.zero)
    for k in range(1, iterations + 1):
        before = pi
        pi = softmax((lam * np.log(before) + q) / (lam + tau))
        v = (pi * q).sum(1)
        if regularised:
            v = v - lam * divergence(pi, before) + tau * entropy(pi)
        q = problem.backup(k, v)
        yield q, pi


def da_vi(problem, iterations, lam, tau, regularised):
    q, before = problem.zero, softmax(problem.zero)
    h = problem.zero
    for k in range(1, iterations + 1):
        pi = softmax(h / tau) if tau else softmax(k * h / lam)
        v = (pi * q).sum(1)
        if regularised:
            v = v - lam * divergence(pi, before) + tau * entropy(pi)
        q, before = problem.backup(k, v), pi
        beta = lam / (lam + tau) if tau else k / (k + 1)
        h = beta * h + (1 - beta) * q
        yield q, pi


def m_vi(problem, iterations, alpha, tau):
    q = problem.zero
    for k in range(1, iterations + 1):
        pi = softmax(q / tau)
        log_pi = q / tau - logsumexp(q / tau)[:, None]
        q = problem.backup(k, (pi * (q - tau * log_pi)).sum(1)) + alpha * tau * log_pi
        yield q, pi


def cvi(problem, iterations, alpha, eta, form="log-sum-exp"):
    psi = problem.zero
    for k in range(1, iterations + 1):
        pi = softmax(eta * psi)
        if form == "log-sum-exp":
            m = (logsumexp(eta * psi) - np.log(psi.shape[1])) / eta
        else:
            m = (pi * psi).sum(1)
        psi = problem.backup(k, m) + alpha * (psi - m[:, None])
        yield psi, pi


def advantage_learning(problem, iterations, alpha):
    q = problem.zero
    for k in range(1, iterations + 1):
        pi = greedy(q)
        q = problem.backup(k, q.max(1)) + alpha * (q - q.max(1, keepdims=True))
        yield q, pi


def politex(problem, iterations, lam, sweeps):
    q = total = problem.zero
    for k in range(1, iterations + 1):
        pi = softmax(total / lam)
        q = problem.evaluated(k, pi, q, sweeps)
        total = total + q
        yield q, pi


def softened_lspi(problem, iterations, beta, sweeps):
    q = h = problem.zero
    for k in range(1, iterations + 1):
        pi = greedy(h)
        q = problem.evaluated(k, pi, q, sweeps)
        h = beta * h + (1 - beta) * q
        yield q, pi


def mpi(problem, iterations, sweeps):
    return softened_lspi(problem, iterations, 0.0, sweeps)


def anc_vi(problem, iterations, anchor):
    q = problem.zero
    for k in range(1, iterations + 1):
        pi = greedy(q)
        if anchor == "harmonic":
            weight = 1 / (k + 1)
        else:
            weight = 1 / sum(problem.gamma ** (-2 * i) for i in range(k + 1))
        q = weight * problem.zero + (1 - weight) * problem.backup(k, q.max(1))
        yield q, pi
