"""What a solver found: values, a policy and their proof, in one object."""

from typing import Any, NamedTuple

import numpy as np

from momentum_rl.core.soft import soft_maximum
from momentum_rl.errors import UserError, door
from momentum_rl.mdp.checks import require_single
from momentum_rl.mdp.model import FiniteMDP
from momentum_rl.mdp.solve.certificates import Aim, bracket, check_tolerance, rounding
from momentum_rl.mdp.solve.methods import Method, largest_reward, optimal

TOLERANCE = 1e-6  # of a solution, by default


class Solution(NamedTuple):
    """What a scheme or a method found."""

    q: np.ndarray
    """[S, A], within ``bound`` of q* in the sup norm, or of q^τ_* where
    ``tau`` is above 0; −inf where a state does not have an action."""
    policy: np.ndarray
    """[S]; of a scheme π_{K+1}, made from its own table after K iterations. If that is soft, its
    probabilities, [S, A]."""
    bound: float
    """A proven bound on ‖q − q*‖∞, computed with the model (also after a sampled run)."""
    iterations: int
    """K; of a method, the sweeps over all pairs."""
    converged: bool
    """Whether ``bound`` is within the tolerance that was asked for."""
    tolerance: float | None
    """That tolerance; None for a sampled run that was given none."""
    scheme: str
    """Its name, or that of the method: vi, mpi, pi or ipi."""
    floor: float
    """No bound on this problem can be proven to be less than this in float64. A tolerance below it
    is out of reach, whatever the iterations."""
    mdp: FiniteMDP
    """The problem."""
    why: str = ""
    """Why ``auto`` chose the method; empty otherwise."""
    evaluations: int = 0
    """Policies that a method evaluated by linear systems."""
    tau: float = 0.0
    """The weight of the entropy in the optimum that is certified; 0: q* itself."""

    @property
    def v(self) -> np.ndarray:
        """max_a q(s, a), [S]: within ``bound`` of v*; with a τ, τ ln Σ exp(q / τ) of v^τ_*."""
        q: Any = self.q
        return np.asarray(soft_maximum(q, self.tau) if self.tau else q.max(-1))

    @door
    def at(self, state: int | str) -> dict[Any, float]:
        """q(s, ·) of one state, by the actions that it has; by their names if they have any.

        >>> import momentum_rl
        >>> solution = momentum_rl.solve(momentum_rl.garnet(3, 2, 2, seed=1))
        >>> sorted(solution.at(0)) == [0, 1]
        True
        """
        mdp, s = self.mdp, self._number(state)
        numbers = np.flatnonzero(~np.isneginf(mdp.rewards[s]))
        names = numbers if mdp.action_names is None else mdp.action_names[numbers]
        return dict(zip(names.tolist(), self.q[s][numbers].tolist()))

    @door
    def action(self, state: int | str) -> Any:
        """π(s) of one state, or its likeliest action; the action's name if it has one."""
        chosen = self.policy[self._number(state)]
        number = int(chosen if self.policy.ndim == 1 else chosen.argmax())
        return number if self.mdp.action_names is None else str(self.mdp.action_names[number])

    def _number(self, state: int | str) -> int:
        names = self.mdp.state_names
        if isinstance(state, str):
            numbers = np.flatnonzero(names == state) if names is not None else np.empty(0)
            if len(numbers) != 1:
                raise UserError(f"state: {state!r}, expected the name of one state")
            return int(numbers[0])
        if not 0 <= state < self.mdp.states:
            raise UserError(f"state: {state}, expected a number in 0..{self.mdp.states - 1}")
        return int(state)

    def __repr__(self) -> str:
        reached = "" if self.converged else ", tolerance NOT reached"
        return (
            f"Solution({self.mdp.states} states by {self.scheme}, {self.iterations} iterations, "
            f"mean value {self.v.mean():.6g}, within {self.bound:.2g}{reached})"
        )


def solution(
    mdp: FiniteMDP,
    *,
    method: Method = "auto",
    tolerance: float | None = None,
) -> Solution:
    """q* to a tolerance (1e-6 by default) by a method; see `methods`."""
    require_single(mdp)
    tolerance = TOLERANCE if tolerance is None else tolerance
    check_tolerance(tolerance)
    best = optimal(mdp, Aim(float(tolerance), True), method)
    state = best.state
    return Solution(
        q=np.asarray(state.q),
        policy=np.asarray(state.policy).astype(np.int32),
        bound=state.bound,
        iterations=best.sweeps,
        converged=state.bound <= tolerance,
        tolerance=tolerance,
        scheme=best.method,
        floor=max(state.floor, rounding_floor(mdp)),
        mdp=mdp,
        why=best.why,
        evaluations=best.evaluations,
    )


@door
def rounding_floor(mdp: FiniteMDP) -> float:
    """No certificate of this MDP can be proven to be less than this: known before any iteration.

    As `certificates.bracket` from v = 0: ‖v*‖ is at least the nearer of the ends
    min_s max_a r / (1 − γ) and max_s max_a r / (1 − γ).
    """
    require_single(mdp)
    best, size = mdp.rewards.max(-1), largest_reward(mdp)
    proven = bracket(np.zeros(mdp.states), best, size, float(mdp.discount), rounding(mdp))
    return float(proven.floor)


class PolicyValue(NamedTuple):
    """What a policy is worth."""

    q: np.ndarray
    """q_π, [S, A]; q^τ_π where the solution has a τ above 0."""
    mean: float
    """The mean of v_π over all states, without any entropy."""
    loss_bound: float
    """A proven bound on ‖q* − q_π‖∞, or on ‖q^τ_* − q^τ_π‖∞."""


@door
def policy_value(mdp: FiniteMDP, solution: Solution) -> PolicyValue:
    """Evaluate a solution's policy; ‖q* − q_π‖ ≤ ‖q* − q‖ + ‖q − q_π‖ bounds its loss."""
    from momentum_rl.mdp.solve.exact import bounded_policy_value

    tolerance = 1e-10 if solution.tolerance is None else max(1e-10, solution.tolerance / 10)
    if solution.policy.ndim == 2:
        from momentum_rl.mdp.solve.regularised import stochastic_policy_value

        _, q, bound = stochastic_policy_value(mdp, solution.policy, solution.tau, tolerance)
        mean = float(stochastic_policy_value(mdp, solution.policy, 0.0, tolerance)[0].mean())
    else:
        q, bound = bounded_policy_value(mdp, solution.policy, tolerance, solution.v)
        mean = float(mdp.chosen(q, solution.policy).mean())
    present = ~np.isneginf(mdp.rewards)
    off = np.abs(np.subtract(solution.q, q, where=present, out=np.zeros(q.shape))).max()
    return PolicyValue(q, mean, solution.bound + float(off) + bound)
