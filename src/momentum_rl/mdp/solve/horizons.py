"""What has an end: finite horizons, and γ = 1 with absorbing states."""

from typing import Any, NamedTuple

import numpy as np

from momentum_rl.errors import UserError, check_count, check_fraction, door
from momentum_rl.mdp.checks import floats, require_single
from momentum_rl.mdp.model import FiniteMDP
from momentum_rl.mdp.solve.certificates import rounding
from momentum_rl.mdp.solve.linear import factored, system
from momentum_rl.mdp.solve.methods import largest_reward
from momentum_rl.plumbing.sizes import require


class HorizonSolution(NamedTuple):
    """Backward induction."""

    v: np.ndarray
    """[H + 1, S]; v[t] is the best value with H − t steps to go."""
    policy: np.ndarray
    """[H, S]; what to do at step t."""


@door
def finite_horizon(
    mdp: FiniteMDP, horizon: int, *, final: Any = None, discount: float | None = None
) -> HorizonSolution:
    """The best of ``horizon`` steps, by backward induction from ``final`` values [S] (or 0).

    ``discount`` is another than the MDP's, also 1: a horizon needs none.

    >>> import momentum_rl
    >>> mdp = momentum_rl.garnet(5, 2, 2, seed=0)
    >>> bool((finite_horizon(mdp, 1).v[0] == mdp.rewards.max(1)).all())
    True
    """
    check_count("horizon", horizon)
    require_single(mdp)
    gamma = float(mdp.discount) if discount is None else float(discount)
    check_fraction("discount", gamma)
    require(f"{horizon:,} steps of {mdp.states:,} states", memory=12 * (horizon + 1) * mdp.states)
    v = np.zeros((horizon + 1, mdp.states))
    if final is not None:
        values = floats("final", final)
        if values.shape != (mdp.states,) or not np.isfinite(values).all():
            raise UserError(f"final: shape {values.shape}, expected {mdp.states} finite numbers")
        v[-1] = values
    policy = np.empty((horizon, mdp.states), np.int32)
    for t in reversed(range(horizon)):
        q = mdp.rewards + gamma * (mdp.probabilities * v[t + 1][mdp.successors]).sum(-1)
        v[t], policy[t] = q.max(-1), q.argmax(-1)
    return HorizonSolution(v, policy)


class TotalReward(NamedTuple):
    """The best total reward until absorption."""

    v: np.ndarray
    """[S]; −inf where no policy is absorbed for certain."""
    policy: np.ndarray
    """An optimal policy, [S]."""
    bound: float
    """A proven bound on the error of v where it is finite."""
    steps: np.ndarray
    """[S]; the expected number of steps to absorption under the policy."""
    converged: bool
    """Whether the bound is within the tolerance."""


@door
def total_reward(mdp: FiniteMDP, *, tolerance: float = 1e-6) -> TotalReward:
    """γ = 1: the best expected sum of rewards until a state that is never left and pays nothing.

    Rewards elsewhere have to be negative: steps that cost, as in a shortest path. Then policies
    that may never be absorbed are worth −inf, and policy iteration from one that is absorbed stays
    with such policies (Bertsekas and Tsitsiklis, 1991). The discount of the MDP plays no part.

    Why the bound holds: with ρ = max |T_π v − v| and τ_π the expected steps of the policy, v is
    within ρ max τ_π of v_π. With δ = max (T v − v)⁺ and the optimal policy's τ*, v* ≤ v + δ τ*; and
    as every step costs at least c, τ* ≤ −v*/c ≤ (max |v| + ρ max τ_π)/c.
    """
    absorbing = _absorbing(mdp)
    if not absorbing.any():
        raise UserError("mdp: no absorbing state of reward 0, expected one for a discount of 1")
    elsewhere = mdp.rewards[~absorbing]
    cost = -float(elsewhere.max(initial=-np.inf))
    if not cost > 0:
        raise UserError("rewards: one of at least 0 outside the absorbing states, expected costs")
    policy, proper = _proper_policy(mdp, absorbing)
    where: np.ndarray = proper & ~absorbing
    v = np.full(mdp.states, -np.inf)
    v[absorbing] = 0.0
    for _ in range(10_000):
        v[where] = _solved(mdp, policy, where, mdp.chosen(mdp.rewards, policy))
        q = _total_backup(mdp, v)
        gain = q.max(-1)[where] - v[where]
        better = np.zeros(mdp.states, bool)
        better[where] = gain > 1e-12 * (1 + np.abs(v[where]).max(initial=0.0))
        if not better.any():
            break
        policy = np.where(better, q.argmax(-1), policy)
    steps = np.where(proper, 0.0, np.inf)
    steps[where] = _solved(mdp, policy, where, np.ones(mdp.states))
    largest, longest = float(np.abs(v[where]).max(initial=0.0)), float(steps[where].max(initial=0))
    slack = rounding(mdp) * (largest_reward(mdp) + largest)
    off = float(np.abs(mdp.chosen(q, policy)[where] - v[where]).max(initial=0.0)) + slack
    gain_left = max(float(gain.max(initial=0.0)), 0.0) + slack
    most = (largest + off * longest) / cost  # steps of the best policy
    bound = off * longest + gain_left * most
    if 2 * mdp.missed * max(longest, most) > 1:
        bound = float("inf")
    return TotalReward(v, policy.astype(np.int32), bound, steps, bound <= tolerance)


def _absorbing(mdp: FiniteMDP) -> np.ndarray:
    """States that all their actions stay in, for nothing, [S]."""
    at_home = (mdp.successors == np.arange(mdp.states)[:, None, None]) | (mdp.probabilities == 0)
    stays = at_home.all(-1) & ((mdp.rewards == 0) | np.isneginf(mdp.rewards))
    return stays.all(-1)


def _proper_policy(mdp: FiniteMDP, absorbing: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A policy that is absorbed with probability 1 from every state where one is; which those are.

    The largest set from which some action stays in the set and comes nearer to absorption; of such
    actions the likeliest to come nearer, or absorption may take more steps than float64 can count.
    """
    inside = np.ones(mdp.states, bool)
    absent = np.isneginf(mdp.rewards)
    while True:
        safe = ((mdp.probabilities == 0) | inside[mdp.successors]).all(-1) & ~absent
        reached, policy = absorbing.copy(), np.zeros(mdp.states, np.int64)
        while True:
            nearer = np.where(safe, (mdp.probabilities * reached[mdp.successors]).sum(-1), 0.0)
            new = (nearer.max(-1) > 0) & ~reached
            if not new.any():
                break
            policy = np.where(new, nearer.argmax(-1), policy)
            reached |= new
        if (reached == inside).all():
            unreached = np.where(absent, -np.inf, 0.0).argmax(-1)
            return np.where(reached & ~absorbing, policy, unreached), reached
        inside = reached


def _solved(
    mdp: FiniteMDP, policy: np.ndarray, where: np.ndarray, rewards: np.ndarray
) -> np.ndarray:
    """(I − P_π)⁻¹ r on the states where a policy is absorbed."""
    matrix = system(mdp, policy, discount=1.0).tocsr()[where][:, where].tocsc()
    return factored(matrix)(rewards[where])


def _total_backup(mdp: FiniteMDP, v: np.ndarray) -> np.ndarray:
    """r + P v with v = −inf in places."""
    ahead = np.where(mdp.probabilities > 0, v[mdp.successors], 0.0)
    return mdp.rewards + (mdp.probabilities * ahead).sum(-1)
