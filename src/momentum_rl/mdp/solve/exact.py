"""Exact answers: q*, q_π, norms.

Small problems are solved directly (dense linear systems, policy iteration). Large ones are solved
matrix-free, by sweeps that stop on a *proven* bound (see `certificates`); where sweeps get nowhere
because the problem mixes slowly, by linear systems (see `methods`), with the same certificate.

Every function takes a ``tolerance``. Without one the answer is within 1e-10 or, where float64
cannot prove that, as near as it can. With one the answer is proven to be within it, or it is *said*
that it is not: :func:`optimum` by ``converged``, the others, which return plain arrays, by
:class:`momentum_rl.errors.ToleranceMissed`.
"""

from typing import Any, NamedTuple

import numpy as np

from momentum_rl.errors import ToleranceMissed, UserError, door
from momentum_rl.mdp.checks import check_shape, floats, numbers, require_single
from momentum_rl.mdp.model import FiniteMDP, unchecked
from momentum_rl.mdp.solve.certificates import Aim, aim, bracket, require, rounding
from momentum_rl.mdp.solve.methods import DIRECT, Method, optimal

_SYSTEMS = 1 << 17  # entries of the linear systems that are solved in one call


class Optimum(NamedTuple):
    """q*, with a certificate."""

    q: np.ndarray
    """[S, A] (or [M, S, A]), within ``bound`` of q* in the sup norm; −inf where a state does not
    have an action."""
    policy: np.ndarray
    """[S] (or [M, S]), greedy with respect to ``q``."""
    bound: np.ndarray
    """A proven bound on ‖q − q*‖∞ (one per MDP of a batch)."""
    converged: np.ndarray
    """Whether ``bound`` is at most the tolerance (one per MDP of a batch); without one, 1e-10 or
    what float64 can prove."""
    method: Any = "auto"
    """The method that found q*: vi, mpi, pi or ipi (one per MDP of a batch)."""

    def __repr__(self) -> str:
        missed = "" if np.all(self.converged) else ", tolerance NOT reached"
        return f"Optimum(q* {list(self.q.shape)}, within {np.max(self.bound):.2g}{missed})"


@door
def optimum(mdp: FiniteMDP, *, tolerance: float | None = None, method: Method = "auto") -> Optimum:
    """q* with a proven bound; ``converged`` says whether the bound is within the tolerance.

    By default q* is as near as float64 can prove, and 1e-10 is near enough. The answer is the best
    that was found, converged or not. ``method`` is auto, vi, mpi, pi or ipi; see `methods`.

    >>> import momentum_rl
    >>> optimum(momentum_rl.garnet(30, 4, 4, seed=0), tolerance=1e-10)
    Optimum(q* [30, 4], within ...)
    """
    wanted = aim(tolerance, 1e-10)
    if mdp.batch is not None:
        each = [optimum(member, tolerance=tolerance, method=method) for member in mdp]
        return Optimum(*(np.stack(column) for column in zip(*each)))
    best = optimal(mdp, wanted, method)
    bound = np.asarray(best.state.bound)
    return Optimum(
        q=np.asarray(best.state.q),
        policy=np.asarray(best.state.policy).astype(np.int32),
        bound=bound,
        converged=bound <= wanted.promise(best.state.floor),
        method=best.method,
    )


def require_converged(answer: Optimum) -> Optimum:
    """The answer, for those who build on it: raises unless it is as near as float64 can prove."""
    if not np.all(answer.converged):
        bound = float(np.max(answer.bound))
        raise ToleranceMissed(
            f"optimum: proven to {bound:.2g} only, expected 1e-10 or what float64 allows",
            answer=answer,
            bound=bound,
        )
    return answer


# Policies ----------------------------------------------------------------------------------------


@door
def policy_values(mdp: FiniteMDP, policies: Any, *, tolerance: float | None = None) -> np.ndarray:
    """q_π, [S, A], for one deterministic policy [S]; [N, S, A] for policies [N, S].

    Each distinct policy is evaluated once. The result is within ``tolerance`` in the sup norm, or
    `ToleranceMissed` is raised; by default as near as float64 can prove, and 1e-10 is near enough.
    """
    policies = checked_policies(mdp, policies)
    distinct, place = np.unique(np.atleast_2d(policies), axis=0, return_inverse=True)
    rewards = np.broadcast_to(mdp.rewards, (len(distinct), *mdp.rewards.shape))
    wanted, place = aim(tolerance, 1e-10), place.reshape(policies.shape[:-1])
    q, bound, floor = (x[place] for x in _resolvents(mdp, distinct, rewards, wanted))
    require(bound <= wanted.promise(floor, np), wanted, bound, floor, q)
    return q


def bounded_policy_value(
    mdp: FiniteMDP, policy: np.ndarray, tolerance: float, guess: np.ndarray
) -> tuple[np.ndarray, float]:
    """q_π of one policy and a proven bound on its error, be it within the tolerance or not.

    ``guess`` [S] is where sweeps start from: of a policy that is nearly optimal, nearly v*.
    """
    policies, wanted = checked_policies(mdp, policy, 1)[None], aim(tolerance, 0.0)
    q, bound, _ = _resolvents(mdp, policies, mdp.rewards[None], wanted, guess)
    return q[0], float(bound[0])


@door
def resolvent(
    mdp: FiniteMDP, policies: np.ndarray, x: np.ndarray, *, tolerance: float | None = None
) -> np.ndarray:
    """(I − γ P_π)⁻¹ x for policies [N, S] and x [N, S, A]; q_π is that of the rewards.

    Within ``tolerance`` in the sup norm, or `ToleranceMissed` is raised; by default as near as
    float64 can prove, and 1e-10 is near enough.
    """
    wanted, policies, x = aim(tolerance, 1e-10), checked_policies(mdp, policies), floats("x", x)
    check_shape("policies", policies, (len(policies), mdp.states))
    check_shape("x", x, (len(policies), *mdp.rewards.shape))
    z, bound, floor = _resolvents(mdp, policies, x, wanted)
    require(bound <= wanted.promise(floor, np), wanted, bound, floor, z)
    return z


def _resolvents(
    mdp: FiniteMDP,
    policies: np.ndarray,
    x: np.ndarray,
    wanted: Aim,
    guess: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """z = x + γ P_π z with bounds [N] and floors [N].

    z only looks at z(·, π), so the linear systems have S unknowns w, not S·A. Each policy has its
    own product, or BLAS would round a policy's z by how many there are.
    """
    z, bound, floor = np.empty(x.shape), np.empty(len(x)), np.empty(len(x))
    size = np.where(np.isneginf(x), 0.0, np.abs(x)).max(tuple(range(1, x.ndim)))
    discount, unit = float(mdp.discount), rounding(mdp)
    if mdp.states > DIRECT:
        for i, policy in enumerate(policies):
            w = _large_system(mdp, policy, x[i], wanted, guess)
            backed_up = x[i] + discount * (mdp.probabilities * w[mdp.successors]).sum(-1)
            d = mdp.chosen(backed_up, policy) - w
            shift, bound[i], floor[i] = bracket(w, d, size[i], discount, unit)
            z[i] = backed_up + shift
        return z, bound, floor
    kernel, identity = mdp.discount * mdp.dense(), np.eye(mdp.states)
    rows = kernel.reshape(-1, mdp.states)
    place = np.arange(mdp.states) * mdp.actions + policies.astype(np.int64)
    step = max(1, _SYSTEMS // mdp.states**2)
    for begin in range(0, len(policies), step):
        some = slice(begin, begin + step)
        flat = x[some].reshape(-1, len(rows))
        earned = np.take_along_axis(flat, place[some], 1)
        w = np.linalg.solve(identity - rows[place[some]], earned[..., None])[..., 0]
        backed_up = flat + (rows @ w[..., None])[..., 0]  # one product per policy
        d = np.take_along_axis(backed_up, place[some], 1) - w
        shift, bound[some], floor[some] = bracket(w, d, size[some], discount, unit)
        z[some] = (backed_up + shift[:, None]).reshape(x[some].shape)
    return z, bound, floor


def _large_system(
    mdp: FiniteMDP, policy: np.ndarray, x: np.ndarray, wanted: Aim, guess: np.ndarray | None
) -> np.ndarray:
    """w = x(·, π) + γ P_π w: the optimum of the MDP that has π's actions alone."""
    rows = (mdp.chosen(y, policy)[:, None] for y in (mdp.successors, mdp.probabilities, x))
    chain = unchecked(*rows, mdp.discount, missed=mdp.missed)
    return np.asarray(optimal(chain, wanted, start=guess).state.v)


def checked_policies(mdp: FiniteMDP, policies: Any, most_axes: int = 2) -> np.ndarray:
    """Policies [S] or [N, S] whose actions the states have."""
    require_single(mdp, "evaluate its members one by one")
    policies = numbers("policies", policies)
    fits = policies.shape[-1:] == (mdp.states,) and policies.ndim in (1, most_axes)
    if policies.dtype.kind not in "iu" or not fits:
        raise UserError(
            f"policies: shape {policies.shape} of {policies.dtype}, "
            f"expected integers [{mdp.states}]{f' or [N, {mdp.states}]' * (most_axes > 1)}"
        )
    bad = (policies < 0) | (policies >= mdp.actions)
    among = f"an action in 0..{mdp.actions - 1}"
    if not bad.any() and mdp.pairs < mdp.states * mdp.actions:
        absent = np.isneginf(mdp.rewards[np.arange(mdp.states), policies])
        bad, among = absent, "an action that it has"
    if bad.any():
        state = int(np.argwhere(bad)[0][-1])
        raise UserError(f"policies: state {state}: {policies[bad][0]}, expected {among}")
    return policies


@door
def weighted_norm(x: Any, p: float = 1.0, mu: Any = None) -> np.ndarray:
    """‖x‖_{p,μ} = (E_μ |x|^p)^{1/p} over the last two axes [S, A]; uniform μ by default.

    ``p = inf`` is the sup norm (whatever μ).

    >>> import numpy as np
    >>> x = np.array([[3.0, 0.0], [0.0, -4.0]])
    >>> float(weighted_norm(x)), float(weighted_norm(x, 2)), float(weighted_norm(x, np.inf))
    (1.75, 2.5, 4.0)
    """
    x = np.abs(floats("x", x))
    if x.ndim < 2:
        raise UserError(f"x: shape {x.shape}, expected [..., S, A]")
    if not p >= 1:
        raise UserError(f"p: {p}, expected a number of at least 1, or infinity")
    if np.isinf(p):
        return x.max((-2, -1))
    weights = np.full(x.shape[-2:], 1 / np.prod(x.shape[-2:])) if mu is None else floats("mu", mu)
    check_shape("mu", weights, x.shape[-2:])
    return (weights * x**p).sum((-2, -1)) ** (1 / p)
