"""Exact answers: q*, q_π, the occupancy d_{π,μ}, norms.

Small problems are solved directly (dense linear systems, policy iteration). Large ones are solved
matrix-free, by sweeps that stop on a *proven* bound. With d = T v − v, monotonicity of T gives

    v + min d / (1 − γ)  ≤  v*  ≤  v + max d / (1 − γ)

(MacQueen; likewise for v_π with T_π), so that the middle is within (max d − min d) / 2 / (1 − γ):
what counts is the *span* of the residual, which shrinks much faster than its norm.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from movi.errors import UserError
from movi.mdp.model import FiniteMDP
from movi.mdp.operators import Union, compiled, expected, rounding, select, union

DIRECT = 1_000  # up to this many states, linear systems are solved directly
HOWARD = 200  # up to this many states, policy iteration by such systems is the quickest way to q*
_SYSTEMS = 1 << 17  # entries of the linear systems that are solved in one call
_SWEEPS = 1_000_000  # no solve needs more: γ = 0.9999 takes 400,000 from scratch to 1e-12


class Optimum(NamedTuple):
    """q*, with a certificate.

    Attributes:
      q: [S, A] (or [M, S, A]), within ``bound`` of q* in the sup norm.
      policy: [S] (or [M, S]), greedy with respect to ``q``.
      bound: a proven bound on ‖q − q*‖∞ (one per MDP of a batch).
    """

    q: np.ndarray
    policy: np.ndarray
    bound: np.ndarray


def optimum(mdp: FiniteMDP, *, tolerance: float = 1e-10) -> Optimum:
    """q* to within ``tolerance``, or as near as float64 allows; the bound says how near.

    >>> import movi
    >>> bool(optimum(movi.garnet(30, 4, 4, seed=0)).bound < 1e-10)
    True
    """
    if mdp.batch is not None:
        each = [optimum(member, tolerance=tolerance) for member in mdp]
        return Optimum(*(np.stack(column) for column in zip(*each)))
    if mdp.states <= min(HOWARD, DIRECT):
        return _policy_iteration(mdp)
    with jax.enable_x64(True):
        q, policy, bound = _modified_policy_iteration(union(mdp), float(tolerance))
        return Optimum(np.asarray(q), np.asarray(policy), np.asarray(bound))


def certify(mdp: Union, v: Any, backed_up: Any) -> tuple[Any, Any]:
    """From any v and B v = r + γ P v: q within a proven bound of q*, and that bound.

    v + min d/(1−γ) ≤ v* ≤ v + max d/(1−γ) with d = max_a B v − v, and B(v + c) = B v + γ c.
    """
    d = jnp.max(backed_up, -1) - v
    scale = mdp.discount[0, 0] / (1 - mdp.discount[0, 0])
    low, high = jnp.min(d) * scale, jnp.max(d) * scale
    slack = rounding(mdp, v) / (1 - mdp.discount[0, 0])
    return backed_up + (low + high) / 2, (high - low) / 2 + slack


def _policy_iteration(mdp: FiniteMDP) -> Optimum:
    """Howard's policy iteration with direct solves; the certificate is that of its last v."""
    policy = np.argmax(mdp.rewards, 1)
    every = np.arange(mdp.states)
    kernel = mdp.dense()
    for _ in range(10_000):
        system = np.eye(mdp.states) - mdp.discount * kernel[every, policy]
        v = np.linalg.solve(system, mdp.rewards[every, policy])
        q = mdp.rewards + mdp.discount * kernel @ v
        # Change an action only for a gain beyond rounding, so that ties cannot cycle.
        gain = q.max(1) - q[every, policy]
        better = gain > 1e-13 * (1 + np.abs(q).max())
        if not better.any():
            break
        policy = np.where(better, q.argmax(1), policy)
    with jax.enable_x64(True):
        q, bound = jax.jit(certify)(union(mdp), v, q)
        q = np.asarray(q)
    return Optimum(q, q.argmax(1).astype(np.int32), np.asarray(bound))


@partial(compiled, static_argnames="partial_sweeps")
def _modified_policy_iteration(
    mdp: Union, tolerance: float, partial_sweeps: int = 8
) -> tuple[Any, Any, Any]:
    """One full sweep that certifies and improves, then a few sweeps of the greedy policy alone."""

    def full(v: Any) -> Any:
        return mdp.rewards + mdp.discount * expected(mdp.successors, mdp.probabilities, v)

    def unfinished(carry: Any) -> Any:
        _, _, bound, last, n = carry
        return (bound > tolerance) & (n < _SWEEPS) & ~((bound >= last) & (n > 50))

    def improve(carry: Any) -> Any:
        v, q, last, _, n = carry
        policy = jnp.argmax(q, -1)
        rewards, successors, probabilities = (
            select(x, policy) for x in (mdp.rewards, mdp.successors, mdp.probabilities)
        )

        def evaluate(_: int, v: Any) -> Any:
            step = expected(successors[:, None], probabilities[:, None], v)[:, 0]
            return rewards + mdp.discount[:, 0] * step

        v = jax.lax.fori_loop(0, partial_sweeps, evaluate, jnp.max(q, -1))
        q = full(v)
        return v, q, certify(mdp, v, q)[1], last, n + 1

    v = jnp.zeros(mdp.rewards.shape[0])
    q = full(v)
    start = (v, q, certify(mdp, v, q)[1], jnp.inf, 0)
    v, q, _, _, _ = jax.lax.while_loop(unfinished, improve, start)
    q, bound = certify(mdp, v, q)
    return q, jnp.argmax(q, -1), bound


# Policies ----------------------------------------------------------------------------------------


def policy_values(mdp: FiniteMDP, policies: Any, *, tolerance: float = 1e-10) -> np.ndarray:
    """q_π, [S, A], for one deterministic policy [S]; [N, S, A] for policies [N, S].

    Each distinct policy is evaluated once. Beyond ``DIRECT`` states the result is within
    ``tolerance`` in the sup norm (or as near as float64 allows).
    """
    policies = _checked_policies(mdp, policies)
    if policies.ndim == 1:
        return policy_values(mdp, policies[None], tolerance=tolerance)[0]
    distinct, inverse = np.unique(policies, axis=0, return_inverse=True)
    rewards = np.broadcast_to(mdp.rewards, (len(distinct), *mdp.rewards.shape))
    return resolvent(mdp, distinct, rewards, tolerance=tolerance)[inverse.reshape(-1)]


def resolvent(
    mdp: FiniteMDP, policies: np.ndarray, x: np.ndarray, *, tolerance: float = 1e-10
) -> np.ndarray:
    """(I − γ P_π)⁻¹ x for policies [N, S] and x [N, S, A]; q_π is that of the rewards.

    z = x + γ P_π z only looks at z(·, π), so the linear systems have S unknowns, not S·A.
    """
    if mdp.states > DIRECT:
        with jax.enable_x64(True):
            device = union(mdp)
            each = [_resolvent(device, pi, y, tolerance) for pi, y in zip(policies, x)]
            return np.stack([np.asarray(z) for z in each])
    kernel, every = mdp.discount * mdp.dense(), np.arange(mdp.states)
    rows, identity = kernel.reshape(-1, mdp.states), np.eye(mdp.states)
    result = np.empty(x.shape)
    step = max(1, _SYSTEMS // mdp.states**2)
    for begin in range(0, len(policies), step):
        some = slice(begin, begin + step)
        chosen = np.take_along_axis(x[some], policies[some, :, None].astype(np.int64), 2)
        w = np.linalg.solve(identity - kernel[every, policies[some]], chosen)[..., 0]
        result[some] = x[some] + (w @ rows.T).reshape(-1, mdp.states, mdp.actions)
    return result


@compiled
def _resolvent(mdp: Union, policy: Any, x: Any, tolerance: float) -> Any:
    """By sweeps of the states' values under π until the span of the residual proves them."""
    own, successors, probabilities = (
        select(y, policy) for y in (x, mdp.successors, mdp.probabilities)
    )
    discount = mdp.discount[0, 0]

    def sweep(w: Any) -> Any:
        return own + discount * expected(successors[:, None], probabilities[:, None], w)[:, 0]

    def bound(w: Any, swept: Any) -> tuple[Any, Any]:
        d = swept - w
        low, high = jnp.min(d) / (1 - discount), jnp.max(d) / (1 - discount)
        slack = rounding(mdp._replace(rewards=x), w) / (1 - discount)
        return (low + high) / 2, (high - low) / 2 + slack

    def unfinished(carry: Any) -> Any:
        w, swept, last, n = carry
        now = bound(w, swept)[1]
        return (now > tolerance) & (n < _SWEEPS) & ~((now >= last) & (n > 200))

    def step(carry: Any) -> Any:
        w, swept, _, n = carry
        return swept, sweep(swept), bound(w, swept)[1], n + 1

    w = jnp.zeros(own.shape)
    w, swept, _, _ = jax.lax.while_loop(unfinished, step, (w, sweep(w), jnp.inf, 0))
    w = w + bound(w, swept)[0]
    return x + discount * expected(mdp.successors, mdp.probabilities, w)


def _checked_policies(mdp: FiniteMDP, policies: Any, most_axes: int = 2) -> np.ndarray:
    if mdp.batch is not None:
        raise UserError("mdp: a batch, expected one MDP; evaluate its members one by one")
    policies = np.asarray(policies)
    fits = policies.shape[-1:] == (mdp.states,) and policies.ndim in (1, most_axes)
    if policies.dtype.kind not in "iu" or not fits:
        raise UserError(
            f"policies: shape {policies.shape} of {policies.dtype}, "
            f"expected integers [{mdp.states}]{f' or [N, {mdp.states}]' * (most_axes > 1)}"
        )
    bad = (policies < 0) | (policies >= mdp.actions)
    if bad.any():
        state = int(np.argwhere(bad)[0][-1])
        raise UserError(
            f"policies: state {state}: {policies[bad][0]}, "
            f"expected an action in 0..{mdp.actions - 1}"
        )
    return policies


def occupancy(mdp: FiniteMDP, policy: Any, mu: Any, *, tolerance: float = 1e-12) -> np.ndarray:
    """d_{π,μ} = (1 − γ) μ (I − γ P_π)⁻¹, [S, A], for μ [S, A] and one policy [S].

    Beyond ``DIRECT`` states by power series, to within ``tolerance`` in total variation.
    """
    policy, mu = _checked_policies(mdp, policy, 1), _checked_distribution(mdp, mu)
    every, discount = np.arange(mdp.states), float(mdp.discount)
    if mdp.states <= DIRECT:
        # Mass enters a state through any action and leaves through π's: solve for state mass.
        arriving = np.einsum("sa,san->n", mu, mdp.dense())
        system = np.eye(mdp.states) - discount * mdp.dense()[every, policy].T
        through = np.linalg.solve(system, discount * arriving)
    else:
        with jax.enable_x64(True):
            through = np.asarray(_arrivals(union(mdp), policy, mu, tolerance))
    result = mu.copy()
    result[every, policy] += through
    return (1 - discount) * result


@jax.jit
def _arrivals(mdp: Union, policy: Any, mu: Any, tolerance: float) -> Any:
    """Σ_{t ≥ 1} γ^t (distribution of s_t), [S]."""
    states, discount = mdp.rewards.shape[0], mdp.discount[0, 0]

    def push(mass: Any, successors: Any, probabilities: Any) -> Any:
        flows = mass[..., None] * probabilities
        return jnp.zeros(states).at[successors.reshape(-1)].add(flows.reshape(-1))

    following = select(mdp.successors, policy), select(mdp.probabilities, policy)
    first = discount * push(mu, mdp.successors, mdp.probabilities)

    def step(carry: Any) -> Any:
        total, mass = carry
        mass = discount * push(mass, *following)
        return total + mass, mass

    return jax.lax.while_loop(
        lambda carry: jnp.sum(carry[1]) / (1 - discount) > tolerance, step, (first, first)
    )[0]


def weighted_norm(x: Any, p: float = 1.0, mu: Any = None) -> np.ndarray:
    """‖x‖_{p,μ} = (E_μ |x|^p)^{1/p} over the last two axes [S, A]; uniform μ by default.

    ``p = inf`` is the sup norm (whatever μ).

    >>> import numpy as np
    >>> x = np.array([[3.0, 0.0], [0.0, -4.0]])
    >>> float(weighted_norm(x)), float(weighted_norm(x, 2)), float(weighted_norm(x, np.inf))
    (1.75, 2.5, 4.0)
    """
    x = np.abs(np.asarray(x, np.float64))
    if not p >= 1:
        raise UserError(f"p: {p}, expected a number of at least 1, or infinity")
    if np.isinf(p):
        return x.max((-2, -1))
    weights = np.full(x.shape[-2:], 1 / np.prod(x.shape[-2:])) if mu is None else np.asarray(mu)
    return (weights * x**p).sum((-2, -1)) ** (1 / p)


def _checked_distribution(mdp: FiniteMDP, mu: Any) -> np.ndarray:
    mu = np.asarray(mu, np.float64)
    if mu.shape != (mdp.states, mdp.actions):
        raise UserError(f"mu: shape {mu.shape}, expected ({mdp.states}, {mdp.actions})")
    if not ((mu >= 0).all() and abs(mu.sum() - 1) <= 1e-9):
        raise UserError(f"mu: sums to {mu.sum()}, expected a distribution over (s, a)")
    return mu
