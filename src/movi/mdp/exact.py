"""Exact answers: q*, q_π, the occupancy d_{π,μ}, norms.

Small problems are solved directly (dense linear systems, policy iteration). Large ones are solved
matrix-free, by sweeps that stop on a *proven* bound (see `certificates`); where sweeps get nowhere
because the problem mixes slowly, by sparse linear systems, with the same certificate.

Every function takes a ``tolerance``. Without one the answer is within 1e-10 (1e-12 for occupancies)
or, where float64 cannot prove that, as near as it can. With one the answer is proven to be within
it, or it is *said* that it is not: :func:`optimum` by ``converged``, the others, which return plain
arrays, by :class:`movi.errors.ToleranceMissed`.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from movi.errors import ToleranceMissed, UserError
from movi.mdp.certificates import (
    NEAR,
    Aim,
    aim,
    backup_rounding,
    bracket,
    optimal_bracket,
    require,
    sweeps_needed,
)
from movi.mdp.model import FiniteMDP
from movi.mdp.operators import Union, compiled, expected, select, union
from movi.mdp.sparse import solver

DIRECT = 1_000  # up to this many states, linear systems are solved directly
HOWARD = 200  # up to this many states, policy iteration by such systems is the quickest way to q*
_SYSTEMS = 1 << 17  # entries of the linear systems that are solved in one call
_IMPROVEMENTS = 500  # of modified policy iteration before a problem counts as slowly mixing
_PARTIAL = 8  # sweeps of the greedy policy between two improvements
_FIRST = 100  # sweeps of value iteration between the first two exact evaluations
_SWEEPS = 1_000  # of one policy, likewise
_PATIENCE = 1_000_000  # sweeps or improvements, all in all: γ = 0.9999 takes at most 400,000


class Optimum(NamedTuple):
    """q*, with a certificate.

    Attributes:
      q: [S, A] (or [M, S, A]), within ``bound`` of q* in the sup norm.
      policy: [S] (or [M, S]), greedy with respect to ``q``.
      bound: a proven bound on ‖q − q*‖∞ (one per MDP of a batch).
      converged: whether ``bound`` is what was asked for (one per MDP of a batch): at most the
        tolerance; without a tolerance, at most 1e-10 or about what float64 can prove.
    """

    q: np.ndarray
    policy: np.ndarray
    bound: np.ndarray
    converged: np.ndarray


def optimum(mdp: FiniteMDP, *, tolerance: float | None = None) -> Optimum:
    """q* with a proven bound; ``converged`` says whether the bound is within the tolerance.

    By default q* is as near as float64 can prove, and 1e-10 is near enough. The answer is the best
    that was found, converged or not.

    >>> import movi
    >>> answer = optimum(movi.garnet(30, 4, 4, seed=0), tolerance=1e-10)
    >>> bool(answer.converged), bool(answer.bound <= 1e-10)
    (True, True)
    """
    wanted = aim(tolerance, 1e-10)
    if mdp.batch is not None:
        each = [optimum(member, tolerance=tolerance) for member in mdp]
        return Optimum(*(np.stack(column) for column in zip(*each)))
    with jax.enable_x64(True):
        if mdp.states <= min(HOWARD, DIRECT):
            return _small_optimum(mdp, wanted)
        return _large_optimum(mdp, wanted)


def certain_optimum(mdp: FiniteMDP) -> Optimum:
    """The optimum, for those who build on it: raises unless it is as near as float64 can prove."""
    return certain(optimum(mdp))


def certain(answer: Optimum) -> Optimum:
    """The answer; raises unless it is as near as float64 can prove."""
    if not np.all(answer.converged):
        bound = float(np.max(answer.bound))
        raise ToleranceMissed(
            f"optimum: proven to {bound:.2g} only, expected 1e-10 or what float64 allows",
            answer=answer,
            bound=bound,
        )
    return answer


def _small_optimum(mdp: FiniteMDP, wanted: Aim) -> Optimum:
    """Howard's policy iteration with dense systems, to the end of float64.

    An action is changed only for a gain beyond rounding, so that ties cannot cycle.
    """
    every, kernel, discount = np.arange(mdp.states), mdp.dense(), float(mdp.discount)
    rewards, unit = np.abs(mdp.rewards).max(), backup_rounding(mdp.branching)
    policy = np.argmax(mdp.rewards, 1)
    for _ in range(10_000):
        system = np.eye(mdp.states) - discount * kernel[every, policy]
        v = np.linalg.solve(system, mdp.rewards[every, policy])
        q = mdp.rewards + discount * kernel @ v
        better = q.max(1) - q[every, policy] > unit * (rewards + np.abs(v).max())
        if not better.any():
            break
        policy = np.where(better, q.argmax(1), policy)
    return _judged(_certified(union(mdp), v), wanted)


def _large_optimum(mdp: FiniteMDP, wanted: Aim) -> Optimum:
    """Modified policy iteration; where that is slow, exact evaluations; the best that was found.

    From v_π, value iteration only rises, and the policy that is greedy after n sweeps is worth at
    least as much: n doubles, because news from a goal still travels by one state a sweep. So there
    are few evaluations, and no more than twice the sweeps of value iteration alone.

    It ends at the goal, or when a round has not brought a bound further that is about what float64
    can prove, or after more improvements than any problem of this γ needs.
    """
    device, discount = union(mdp), float(mdp.discount)
    v, made, most = jnp.zeros(mdp.states), 0, float(_PATIENCE)
    many, partial_sweeps, direct = _IMPROVEMENTS, _PARTIAL, True
    best: Any = None
    while True:
        v, *found = _modified_policy_iteration(
            device, v, wanted, many, partial_sweeps=partial_sweeps
        )
        bound, floor = float(found[2]), float(found[3])
        was_near = best is not None and best[2] <= NEAR * floor
        goal = float(wanted.goal(floor, np))
        made += many
        most = min(most, made + 4 * sweeps_needed(bound, goal, discount))
        if best is None or bound < best[2]:
            best = found
        if best[2] <= goal or was_near or made >= most:
            return _judged(best, wanted)
        value = _direct_value(mdp, np.asarray(found[1])) if direct else None
        if value is None:
            many, partial_sweeps, direct = _IMPROVEMENTS, _PARTIAL, False
        else:
            v = jnp.asarray(value)
            many = _FIRST if partial_sweeps else 2 * many
            partial_sweeps = 0


def _judged(found: Any, wanted: Aim) -> Optimum:
    q, policy, bound, floor = (np.asarray(x) for x in found)
    return Optimum(q, policy.astype(np.int32), bound, bound <= wanted.promise(floor, np))


def _direct_value(mdp: FiniteMDP, policy: np.ndarray) -> np.ndarray | None:
    """v_π by a sparse system, or None where it would fill the memory."""
    solve = solver(mdp, policy)
    return None if solve is None else solve(mdp.rewards[np.arange(mdp.states), policy])


def _full(mdp: Union, v: Any) -> Any:
    """The backup of every action, r + γ P v, [S, A]."""
    return mdp.rewards + mdp.discount * expected(mdp.successors, mdp.probabilities, v)


@compiled
def _certified(mdp: Union, v: Any) -> tuple[Any, Any, Any, Any]:
    """What v [S] proves about q*: q, its greedy policy, the bound and its floor."""
    return _proven(mdp, v, _full(mdp, v))


def _proven(mdp: Union, v: Any, backed_up: Any) -> tuple[Any, Any, Any, Any]:
    found = optimal_bracket(mdp, v, backed_up)
    q = backed_up + found.shift
    return q, jnp.argmax(q, -1), found.bound, found.floor


@partial(compiled, static_argnames="partial_sweeps")
def _modified_policy_iteration(
    mdp: Union, v: Any, wanted: Aim, most: int, partial_sweeps: int
) -> tuple[Any, Any, Any, Any, Any]:
    """One full sweep that certifies and improves, then a few sweeps of the greedy policy alone.

    From v [S], until the goal or for ``most`` improvements; the last v, and what it proves.
    """

    def carried(v: Any, q: Any, n: Any) -> Any:
        found = optimal_bracket(mdp, v, q)
        return v, q, found.bound > wanted.goal(found.floor), n

    def unfinished(carry: Any) -> Any:
        _, _, short, n = carry
        return short & (n < most)

    def improve(carry: Any) -> Any:
        _, q, _, n = carry
        policy = jnp.argmax(q, -1)
        rewards, successors, probabilities = (
            select(x, policy) for x in (mdp.rewards, mdp.successors, mdp.probabilities)
        )

        def evaluate(_: int, v: Any) -> Any:
            step = expected(successors[:, None], probabilities[:, None], v)[:, 0]
            return rewards + mdp.discount[:, 0] * step

        v = jax.lax.fori_loop(0, partial_sweeps, evaluate, jnp.max(q, -1))
        return carried(v, _full(mdp, v), n + 1)

    v, q, _, _ = jax.lax.while_loop(unfinished, improve, carried(v, _full(mdp, v), 0))
    return (v, *_proven(mdp, v, q))


# Policies ----------------------------------------------------------------------------------------


def policy_values(mdp: FiniteMDP, policies: Any, *, tolerance: float | None = None) -> np.ndarray:
    """q_π, [S, A], for one deterministic policy [S]; [N, S, A] for policies [N, S].

    Each distinct policy is evaluated once. The result is within ``tolerance`` in the sup norm, or
    `ToleranceMissed` is raised; by default as near as float64 can prove, and 1e-10 is near enough.
    """
    wanted = aim(tolerance, 1e-10)
    q, bound, floor = _policy_values(mdp, _checked_policies(mdp, policies), wanted)
    require(bound <= wanted.promise(floor, np), wanted, bound, floor, q)
    return q


def bounded_policy_value(
    mdp: FiniteMDP, policy: np.ndarray, tolerance: float
) -> tuple[np.ndarray, float]:
    """q_π of one policy and a proven bound on its error, be it within the tolerance or not."""
    q, bound, _ = _policy_values(mdp, _checked_policies(mdp, policy, 1), aim(tolerance, 0.0))
    return q, float(bound)


def _policy_values(
    mdp: FiniteMDP, policies: np.ndarray, wanted: Aim
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q_π of one policy or of several, their bounds and floors."""
    if policies.ndim == 1:
        q, bound, floor = _policy_values(mdp, policies[None], wanted)
        return q[0], bound[0], floor[0]
    distinct, inverse = np.unique(policies, axis=0, return_inverse=True)
    rewards = np.broadcast_to(mdp.rewards, (len(distinct), *mdp.rewards.shape))
    place = inverse.reshape(-1)
    q, bound, floor = _resolvents(mdp, distinct, rewards, wanted)
    return q[place], bound[place], floor[place]


def resolvent(
    mdp: FiniteMDP, policies: np.ndarray, x: np.ndarray, *, tolerance: float | None = None
) -> np.ndarray:
    """(I − γ P_π)⁻¹ x for policies [N, S] and x [N, S, A]; q_π is that of the rewards.

    Within ``tolerance`` in the sup norm, or `ToleranceMissed` is raised; by default as near as
    float64 can prove, and 1e-10 is near enough.
    """
    wanted = aim(tolerance, 1e-10)
    z, bound, floor = _resolvents(mdp, policies, x, wanted)
    require(bound <= wanted.promise(floor, np), wanted, bound, floor, z)
    return z


def _resolvents(
    mdp: FiniteMDP, policies: np.ndarray, x: np.ndarray, wanted: Aim
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """z = x + γ P_π z with bounds [N] and floors [N].

    z only looks at z(·, π), so the linear systems have S unknowns w, not S·A.
    """
    z, bound, floor = np.empty(x.shape), np.empty(len(x)), np.empty(len(x))
    if mdp.states > DIRECT:
        with jax.enable_x64(True):
            device = union(mdp)
            for i in range(len(x)):
                z[i], bound[i], floor[i] = _large_resolvent(mdp, device, policies[i], x[i], wanted)
        return z, bound, floor
    kernel, every = mdp.discount * mdp.dense(), np.arange(mdp.states)
    rows, identity = kernel.reshape(-1, mdp.states), np.eye(mdp.states)
    step = max(1, _SYSTEMS // mdp.states**2)
    for begin in range(0, len(policies), step):
        some = slice(begin, begin + step)
        own = policies[some, :, None].astype(np.int64)
        chosen = np.take_along_axis(x[some], own, 2)
        w = np.linalg.solve(identity - kernel[every, policies[some]], chosen)[..., 0]
        z[some] = x[some] + (w @ rows.T).reshape(-1, mdp.states, mdp.actions)
        d = np.take_along_axis(z[some], own, 2)[..., 0] - w
        size = np.abs(x[some]).max((1, 2))
        found = bracket(w, d, size, float(mdp.discount), mdp.branching, np)
        z[some] += found.shift[:, None, None]
        bound[some], floor[some] = found.bound, found.floor
    return z, bound, floor


def _large_resolvent(
    mdp: FiniteMDP, device: Union, policy: np.ndarray, x: np.ndarray, wanted: Aim
) -> tuple[np.ndarray, float, float]:
    """Sweeps; a sparse system where they are slow; the best of what was found, as for q*."""
    w, made, most, tried = jnp.zeros(mdp.states), 0, float(_PATIENCE), False
    best: Any = None
    while True:
        w, *found = _resolvent(device, policy, x, w, wanted, _SWEEPS)
        bound, floor = float(found[1]), float(found[2])
        was_near = best is not None and best[1] <= NEAR * floor
        goal = float(wanted.goal(floor, np))
        made += _SWEEPS
        most = min(most, made + 4 * sweeps_needed(bound, goal, float(mdp.discount)))
        if best is None or bound < best[1]:
            best = (found[0], bound, floor)
        if best[1] <= goal or was_near or made >= most:
            return np.asarray(best[0]), best[1], best[2]
        if not tried:
            tried = True
            solve = solver(mdp, policy)
            own = x[np.arange(mdp.states), policy]
            w = w if solve is None else jnp.asarray(solve(own))


@compiled
def _resolvent(
    mdp: Union, policy: Any, x: Any, w: Any, wanted: Aim, most: int
) -> tuple[Any, Any, Any, Any]:
    """Sweeps of the states' values w [S] under π, until the goal or for ``most`` of them.

    The last w, and what it proves: z, its bound and its floor.
    """
    own, successors, probabilities = (
        select(y, policy) for y in (x, mdp.successors, mdp.probabilities)
    )
    discount, size = mdp.discount[0, 0], jnp.max(jnp.abs(x))

    def carried(w: Any, n: Any) -> Any:
        step = expected(successors[:, None], probabilities[:, None], w)[:, 0]
        swept = own + discount * step
        found = bracket(w, swept - w, size, discount, mdp.successors.shape[-1])
        return w, swept, found, n

    def unfinished(carry: Any) -> Any:
        _, _, found, n = carry
        return (found.bound > wanted.goal(found.floor)) & (n < most)

    def sweep(carry: Any) -> Any:
        return carried(carry[1], carry[3] + 1)

    w, _, found, _ = jax.lax.while_loop(unfinished, sweep, carried(w, 0))
    z = x + discount * expected(mdp.successors, mdp.probabilities, w)
    return w, z + found.shift, found.bound, found.floor


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


def occupancy(
    mdp: FiniteMDP, policy: Any, mu: Any, *, tolerance: float | None = None
) -> np.ndarray:
    """d_{π,μ} = (1 − γ) μ (I − γ P_π)⁻¹, [S, A], for μ [S, A] and one policy [S].

    Σ |error| is at most ``tolerance``, or `ToleranceMissed` is raised; by default as little as
    float64 can prove, and 1e-12 is little enough.
    """
    wanted = aim(tolerance, 1e-12)
    policy, mu = _checked_policies(mdp, policy, 1), _checked_distribution(mdp, mu)
    every, discount = np.arange(mdp.states), float(mdp.discount)
    # Mass enters a state through any action and leaves through π's: x = γ μ P + γ x P_π.
    entering = discount * _pushed(mdp, mu, mdp.successors, mdp.probabilities)
    following = mdp.successors[every, policy], mdp.probabilities[every, policy]
    most = int(np.bincount(mdp.successors[mdp.probabilities > 0]).max())  # terms of one sum
    # ‖(I − γ P_πᵀ)⁻¹‖₁ = 1/(1 − γ), and d has that factor taken out: the residual is the error.
    floor = (most + 6) * 2.0**-52 / (1 - discount)

    def bound(x: np.ndarray) -> float:
        residual = entering + discount * _pushed(mdp, x, *following) - x
        return float(np.abs(residual).sum()) + floor

    goal, best, proven = float(wanted.goal(floor, np)), np.zeros(mdp.states), np.inf
    for x in _arrivals(mdp, policy, entering, max((goal - floor) / 2, floor / 100)):
        now = bound(x)
        if now < proven:
            best, proven = x, now
        if proven <= goal:
            break
    result = mu.copy()
    result[every, policy] += best
    result *= 1 - discount
    require(proven <= wanted.promise(floor, np), wanted, proven, floor, result)
    return result


def _pushed(mdp: FiniteMDP, mass: np.ndarray, successors: Any, probabilities: Any) -> np.ndarray:
    """Where mass on (s, a), or on s under a policy, is after one step, [S]."""
    flows = (mass[..., None] * probabilities).reshape(-1)
    return np.bincount(successors.reshape(-1), flows, minlength=mdp.states)


def _arrivals(
    mdp: FiniteMDP, policy: np.ndarray, entering: np.ndarray, goal: float
) -> Iterator[np.ndarray]:
    """Candidates for x = entering + γ x P_π, [S]: by a linear system, by ever more sweeps."""
    every, discount, x = np.arange(mdp.states), float(mdp.discount), entering
    if mdp.states <= DIRECT:
        system = np.eye(mdp.states) - discount * mdp.dense()[every, policy].T
        x = np.linalg.solve(system, entering)
        yield x
    with jax.enable_x64(True):
        device = union(mdp)
        for made in range(0, _PATIENCE, _SWEEPS):
            x, residual = _arrived(device, policy, entering, x, goal, _SWEEPS)
            yield np.asarray(x)
            if residual <= goal:
                return
            if made == 0 and (solve := solver(mdp, policy)) is not None:
                x = solve(entering, "T")
                yield x


@jax.jit
def _arrived(
    mdp: Union, policy: Any, entering: Any, x: Any, goal: float, most: int
) -> tuple[Any, Any]:
    """Sweeps x ← entering + γ x P_π until one moves no more mass than the goal; x, the mass moved.

    Not by adding up the series: a sweep forgets the rounding of those before it.
    """
    successors, probabilities = select(mdp.successors, policy), select(mdp.probabilities, policy)

    def sweep(carry: Any) -> Any:
        x, _, n = carry
        flows = mdp.discount[0, 0] * x[:, None] * probabilities
        new = entering.at[successors.reshape(-1)].add(flows.reshape(-1))
        return new, jnp.sum(jnp.abs(new - x)), n + 1

    def unfinished(carry: Any) -> Any:
        return (carry[1] > goal) & (carry[2] < most)

    return jax.lax.while_loop(unfinished, sweep, (x, jnp.inf, 0))[:2]


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
