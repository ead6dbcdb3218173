"""The paper's bounds on q* − q_{π_n}, each a function of a run and citing its statement.

Indices: n = k + 1 counts iterations. MoVI's statements bound the policy π_n *used in* iteration n,
with the errors ε_1..ε_n. AVI's bounds π_n with ε_1..ε_{n−1}. The statement for SQL and DPP, whose
π_n is greedy with respect to the table *after* n iterations, bounds our π_{n+1} with ε_1..ε_n.

Functions take a batch of M MDPs and return [K, M] (component-wise ones [K, M, S, A]), row n − 1
being iteration n. Each refuses a run of a scheme or of a β_k that its statement is not proven for;
``unproven=True`` computes the formula all the same.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from momentum_rl.core.schedules import Mean
from momentum_rl.errors import UserError
from momentum_rl.mdp import FiniteMDP, resolvent, weighted_norm
from momentum_rl.mdp.checks import check_shape
from momentum_rl.mdp.solve.methods import DIRECT
from momentum_rl.mdp.solve.regularised import certain_optimum
from momentum_rl.planning.traces import Trace, WeightedNorms, cumulative, error_sums


def largest_value(mdps: FiniteMDP) -> np.ndarray:
    """q_max = r_max / (1 − γ), per MDP."""
    return np.abs(mdps.rewards).max((-2, -1)) / (1 - mdps.discount)


def _check_proven(statement: str, run: Trace, schemes: Sequence[str], unproven: bool) -> None:
    """Refuse a run that a statement is not about."""
    if unproven:
        return
    algorithm, beta = run.scheme
    name, rate = algorithm.name, f" with β_k = {beta}" if algorithm.uses_beta else ""
    if name not in schemes or (algorithm.uses_beta and beta != Mean()):
        expected = " or ".join(schemes)
        if "movi" in schemes:
            expected += " with β_k = k/(k+1)"
        raise UserError(
            f"run: {statement} is not proven for {name}{rate}, expected {expected}; "
            "unproven=True computes it all the same"
        )


def theorem_1(
    mdps: FiniteMDP, run: Trace, optimal: np.ndarray | None = None, *, unproven: bool = False
) -> np.ndarray:
    """Theorem 1 (th:bound): q* − q_{π_n} ≤ this, component by component, [K, M, S, A].

    1/n [(I − γP_{π*})⁻¹ (E_n + q_n − q_0)
         − (I − γP_{π_n})⁻¹ (Σ_{j<k} γ^j E'_{k,j} + Σ_{j≤k} γ^j P_{j:1}(T_{π_1} q_0 − q_0))]

    ``optimal`` are optimal policies [M, S], if known already. For MoVI with β_k = k/(k+1).
    """
    _check_proven("Theorem 1", run, ("movi",), unproven)
    if optimal is None:
        optimal = certain_optimum(mdps).policy
    sums = error_sums(mdps, run)
    upper = cumulative(run.errors) + run.q[1:] - run.q[0]
    lower = sums.weighted + sums.initial
    result = np.empty(run.errors.shape)
    for m, mdp in enumerate(mdps):
        best = np.broadcast_to(optimal[m], run.policies[:-1, m].shape)
        result[:, m] = resolvent(mdp, best, upper[:, m])
        result[:, m] -= resolvent(mdp, run.policies[:-1, m], lower[:, m])
    n = np.arange(1, len(run.errors) + 1).reshape(-1, 1, 1, 1)
    return result / n


def corollary_1(
    mdps: FiniteMDP,
    run: Trace,
    norms: WeightedNorms,
    concentrability: Any,
    nu: Any = None,
    *,
    unproven: bool = False,
) -> np.ndarray:
    """Corollary 1 (th:bound-1mu): ‖q* − q_{π_n}‖_{p,μ} ≤ this, from q_0 = 0, for p of ``norms``.

    C^{1/p} / (n (1 − γ)) (‖E_n‖_{p,ν} + Σ_{j<k} γ^j ‖E'_{k,j}‖_{p,ν} + 2 q_max), with C from
    :func:`concentrability` of the same μ and ν (uniform ν by default). The paper states p = 1 and
    says that the ℓ_p form is derived similarly: with D = (1 − γ)(I − γP_π)⁻¹, whose rows are
    distributions, Jensen gives ‖D f‖_{p,μ}^p ≤ μ D |f|^p = d_{π,μ} |f|^p ≤ C ‖f‖_{p,ν}^p, and
    Minkowski adds up the terms. As C ≥ 1 it may stand before 2 q_max as well, as in the paper.
    """
    _check_proven("Corollary 1", run, ("movi",), unproven)
    errors = weighted_norm(cumulative(run.errors), norms.p, nu)
    return np.asarray(concentrability) ** (1 / norms.p) * _momentum(mdps, errors + norms.lp)


def supremum(
    mdps: FiniteMDP, run: Trace, norms: WeightedNorms, *, unproven: bool = False
) -> np.ndarray:
    """The sup-norm bound (eq:supremum): ‖q* − q_{π_n}‖∞ ≤ this, from q_0 = 0."""
    _check_proven("the sup-norm bound", run, ("movi",), unproven)
    return _momentum(mdps, weighted_norm(cumulative(run.errors), np.inf) + norms.sup)


def _momentum(mdps: FiniteMDP, errors: np.ndarray) -> np.ndarray:
    n = np.arange(1, len(errors) + 1)[:, None]
    return (errors + 2 * largest_value(mdps)) / (n * (1 - mdps.discount))


def approximate_value_iteration(
    mdps: FiniteMDP, run: Trace, *, unproven: bool = False
) -> np.ndarray:
    """AVI's bound (eq:vi-bound): ‖q* − q_{π_n}‖∞ ≤ 2γⁿ q_max + 2γ max_{j<n} ‖ε_j‖∞ / (1 − γ)²."""
    _check_proven("the bound of AVI", run, ("avi",), unproven)
    sizes = weighted_norm(run.errors, np.inf)
    largest = np.maximum.accumulate(np.concatenate([np.zeros_like(sizes[:1]), sizes[:-1]]))
    n, discount = np.arange(1, len(sizes) + 1)[:, None], mdps.discount
    return 2 * discount**n * largest_value(mdps) + 2 * discount * largest / (1 - discount) ** 2


def speedy_and_policy_programming(
    mdps: FiniteMDP, run: Trace, *, unproven: bool = False
) -> np.ndarray:
    """The bound of SQL and DPP (Section 6): ‖q* − q_{π_{n+1}}‖∞ ≤ this.

    2γ / (n (1 − γ)) (Σ_{j≤n} γ^{n−j} ‖E_j‖∞ + 8γ q_max / (1 − γ)).

    Read for the policy *used in* iteration n it is false: without errors and for small γ, an
    arbitrary first policy loses 2γ q_max, the bound is 16γ² q_max / (1 − γ)²; `docs/theory.md`.
    """
    _check_proven("the bound of SQL and DPP", run, ("sql", "dpp"), unproven)
    sizes = weighted_norm(cumulative(run.errors), np.inf)
    discounted, total = np.empty_like(sizes), np.zeros(sizes.shape[1])
    for j, size in enumerate(sizes):
        total = mdps.discount * total + size
        discounted[j] = total
    n, discount = np.arange(1, len(sizes) + 1)[:, None], mdps.discount
    constant = 8 * discount * largest_value(mdps) / (1 - discount)
    return 2 * discount / (n * (1 - discount)) * (discounted + constant)


def proposition_1(mdps: FiniteMDP, iterations: int, delta: float = 0.1) -> np.ndarray:
    """Proposition 1 (th:sc): under the assumption, ‖q* − q_{π_n}‖∞ ≤ this w.p. ≥ 1 − δ, [K, M].

    2 r_max / (1 − γ)² [1/n + 3/(1 − γ) √(2 ln(4|S||A|/δ) / n)]; a statement for each n, not for all
    n at once.
    """
    n, gap = np.arange(1, iterations + 1)[:, None], 1 - mdps.discount
    r_max = largest_value(mdps) * gap
    deviation = np.sqrt(2 * np.log(4 * mdps.states * mdps.actions / delta) / n)
    return 2 * r_max / gap**2 * (1 / n + 3 / gap * deviation)


def concentrability(mdp: FiniteMDP, mu: np.ndarray, nu: np.ndarray) -> float:
    """C = max_π ‖d_{π,μ} / ν‖∞ of one MDP, exactly; μ and ν are [S, A].

    For each (s, a), max_π d_{π,μ}(s, a) is the optimal value, from μ, of a visit to (s, a):
    S·A problems with the reward there, by policy iteration on all of them at once. Beyond
    ``DIRECT`` states :func:`concentrability_bound` is the stated upper bound to use instead.
    """
    states, actions, discount = mdp.states, mdp.actions, float(mdp.discount)
    for name, distribution in (("mu", mu), ("nu", nu)):
        check_shape(name, np.asarray(distribution), (states, actions))
    if states > DIRECT:
        return concentrability_bound(mdp, mu, nu)
    kernel, every = mdp.dense(), np.arange(states)
    largest = 0.0
    for a in range(actions):
        rewards = np.zeros((states, states, actions))  # problem s: a reward of one at (s, a)
        rewards[every, every, a] = 1
        policies = np.zeros((states, states), np.int64)
        policies[every, every] = a
        problem = every[:, None]
        while True:
            systems = np.eye(states) - discount * kernel[every, policies]
            own = rewards[problem, every, policies][..., None]
            v = np.linalg.solve(systems, own)[..., 0]
            q = rewards + discount * (v @ kernel.reshape(-1, states).T).reshape(rewards.shape)
            better = q.max(-1) > q[problem, every, policies] + 1e-12
            if not better.any():
                break
            policies = np.where(better, q.argmax(-1), policies)
        visits = (1 - discount) * (mu * q).sum((1, 2))
        largest = max(largest, float((visits / nu[:, a]).max()))
    return largest


def concentrability_bound(mdp: FiniteMDP, mu: np.ndarray, nu: np.ndarray) -> float:
    """An upper bound on C: d_{π,μ}(s, a) ≤ (1 − γ) μ(s, a) + γ max P(s|·,·), and ≤ 1."""
    flat = mdp.successors.reshape(-1, mdp.branching)
    rows = np.repeat(np.arange(len(flat)), mdp.branching)
    order = np.lexsort((flat.ravel(), rows))
    # A successor may be listed twice in a row: add those up before taking the maximum.
    keys = rows[order] * np.int64(mdp.states) + flat.ravel()[order]
    _, begins = np.unique(keys, return_index=True)
    sums = np.add.reduceat(mdp.probabilities.ravel()[order], begins)
    reach = np.zeros(mdp.states)
    np.maximum.at(reach, flat.ravel()[order][begins], sums)
    discount = float(mdp.discount)
    visits = np.minimum(1.0, (1 - discount) * mu + discount * reach[:, None])
    return float((visits / nu).max())
