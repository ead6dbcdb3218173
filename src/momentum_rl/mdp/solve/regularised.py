"""Exact answers for the MDP whose reward has τ times the entropy of the policy added.

Its optimality operator has τ ln Σ exp(·/τ) in place of the maximum. Like the maximum it is monotone
and moves by c when its argument does, so that the brackets of `certificates` hold for v^τ_* as they
do for v*. Between the two optima lies the bias of the entropy:

    q*  ≤  q^τ_*  ≤  q* + γ τ ln A / (1 − γ)
"""

import jax
import jax.numpy as jnp
import numpy as np

from momentum_rl.core.soft import soft_policy
from momentum_rl.errors import check_not_negative
from momentum_rl.mdp.arrays import expectation
from momentum_rl.mdp.model import FiniteMDP, leaves, unchecked
from momentum_rl.mdp.operators import on_device
from momentum_rl.mdp.solve.certificates import aim, rounding, sweeps_needed
from momentum_rl.mdp.solve.compiled import backup, improvements
from momentum_rl.mdp.solve.exact import Optimum, bounded_policy_value, optimum, require_converged
from momentum_rl.mdp.solve.methods import DIRECT, largest_reward

_SWEEPS = 1_000  # of value iteration between two looks at whether it is worth going on
_NEWTON = 200  # evaluations of small problems: they converge quadratically


def entropy_bias(mdp: FiniteMDP, tau: float) -> np.ndarray:
    """τ ln A / (1 − γ), [] or [M]: how far q^τ_* and q* are apart at most.

    It bounds ‖q* − q_π‖ for the optimal policy π of the regularised MDP, too.
    """
    return tau * np.log(mdp.actions) / (1 - mdp.discount)


def regularised_optimum(mdp: FiniteMDP, tau: float, *, tolerance: float | None = None) -> Optimum:
    """q^τ_* with a proven bound, and its policy softmax(q^τ_* / τ), [S, A] (or [M, S, A]).

    At τ = 0 it is :func:`momentum_rl.optimum`, whose policy is [S].

    >>> import momentum_rl
    >>> mdp = momentum_rl.garnet(30, 4, 4, seed=0)
    >>> soft = regularised_optimum(mdp, 0.1)
    >>> bool(soft.converged), bool((soft.q >= momentum_rl.optimum(mdp).q).all())
    (True, True)
    """
    check_not_negative("tau", tau)
    if tau == 0:
        return optimum(mdp, tolerance=tolerance)
    wanted = aim(tolerance, 1e-10)
    if mdp.batch is not None:
        each = [regularised_optimum(member, tau, tolerance=tolerance) for member in mdp]
        return Optimum(*(np.stack(column) for column in zip(*each)))
    with jax.enable_x64(True):
        device = on_device(mdp)
        v = jnp.asarray(_newton(mdp, tau)) if mdp.states <= DIRECT else jnp.zeros(mdp.states)
        count, most = 0, np.inf
        while True:
            v, q, _, bound, floor, _ = improvements(
                device, v, wanted, _SWEEPS, partial_sweeps=0, tau=tau
            )
            count += _SWEEPS
            goal = float(wanted.goal(float(floor)))
            most = min(most, count + 4 * sweeps_needed(float(bound), goal, float(mdp.discount)))
            if bound <= goal or count >= most:
                break
        return Optimum(
            np.asarray(q),
            np.asarray(soft_policy(q, tau)),
            np.asarray(bound),
            np.asarray(bound <= wanted.promise(float(floor))),
            "soft value iteration",
        )


def certain_optimum(mdp: FiniteMDP, tau: float = 0.0) -> Optimum:
    """q^τ_*, as near as float64 can prove; raises otherwise."""
    return require_converged(regularised_optimum(mdp, tau))


def _newton(mdp: FiniteMDP, tau: float) -> np.ndarray:
    """v^τ_* by policy iteration: evaluate π = softmax(q / τ), with its entropy, and improve."""
    kernel, discount, v = mdp.dense(), float(mdp.discount), np.zeros(mdp.states)
    before = np.inf
    for _ in range(_NEWTON):
        q = mdp.rewards + discount * kernel @ v
        gaps = q - q.max(1, keepdims=True)
        terms = np.exp(gaps / tau)
        pi = terms / terms.sum(1, keepdims=True)
        # κ ln π = gaps − τ ln Σ, finite where ln π is not.
        with np.errstate(invalid="ignore"):  # −inf − (−inf) where there is no action
            owns = np.where(pi > 0, mdp.rewards - gaps, 0.0)
        earned = (pi * owns).sum(1) + tau * np.log(terms.sum(1))
        new = np.linalg.solve(
            np.eye(mdp.states) - discount * np.einsum("sa,san->sn", pi, kernel), earned
        )
        change = np.abs(new - v).max()
        v = new
        if change == 0 or change >= before <= 1e-9 * (1 + np.abs(v).max()):
            break
        before = change
    return v


def entropy(policy: np.ndarray) -> np.ndarray:
    """H(π) = −Σ_a π ln π over the last axis."""
    logs = np.log(policy, out=np.zeros_like(policy), where=policy > 0)
    return -(policy * logs).sum(-1)


def following(mdp: FiniteMDP, policy: np.ndarray, tau: float = 0.0) -> FiniteMDP:
    """The Markov chain of a stochastic policy [S, A], an MDP with one action; τ H(π) is added."""
    rows = mdp.states, 1, mdp.actions * mdp.branching
    rewards = expectation(policy, mdp.rewards) + tau * entropy(policy)
    chain = FiniteMDP(
        mdp.successors.reshape(rows),
        (policy[..., None] * mdp.probabilities).reshape(rows),
        rewards[:, None],
        float(mdp.discount),
    )
    return unchecked(*leaves(chain), missed=chain.missed + mdp.missed)


def stochastic_policy_value(
    mdp: FiniteMDP, policy: np.ndarray, tau: float, tolerance: float
) -> tuple[np.ndarray, np.ndarray, float]:
    """v^τ_π [S] and q^τ_π [S, A] of a stochastic policy [S, A], and a proven bound on both."""
    chain = following(mdp, policy, tau)
    only, guess = np.zeros(mdp.states, np.int32), np.zeros(mdp.states)
    v, bound = bounded_policy_value(chain, only, tolerance, guess)
    with jax.enable_x64(True):
        q = np.asarray(backup(on_device(mdp), jnp.asarray(v[:, 0])))
    size = largest_reward(mdp) + float(np.abs(v).max())
    return v[:, 0], q, bound + rounding(mdp) * size
