"""What is proven about an answer, and the least that float64 can prove.

With d = T v − v, monotonicity of T gives

    v + min d / (1 − γ)  ≤  v*  ≤  v + max d / (1 − γ)

(MacQueen; likewise for v_π with T_π), so that the middle is within (max d − min d) / 2 / (1 − γ):
what counts is the *span* of the residual, which shrinks much faster than its norm. On problems that
mix slowly it can stand still for hundreds of sweeps first: a bound that does not fall proves
nothing. What does prove that rounding is the limit is the certificate's own allowance for rounding,
which no v brings below :attr:`Bracket.floor`.

``xp`` is the module of the arrays: NumPy, or ``jax.numpy`` in compiled code.
"""

from typing import Any, Generic, NamedTuple

import numpy as np

from momentum_rl.core.arrays import AnyArray
from momentum_rl.errors import ToleranceMissed, UserError, of_type
from momentum_rl.mdp.checks import row_rounding

NEAR = 4.0  # a bound within this many times the floor is as good as float64 gets


class Bracket(NamedTuple, Generic[AnyArray]):
    """Where a fixed point lies, seen from one v."""

    shift: AnyArray
    """What to add to the backup r + γ P v."""
    bound: AnyArray
    """How far that sum may be from q* (or q_π) in the sup norm, rounding included."""
    floor: AnyArray
    """No v of this problem, however good, has a bound below this in float64."""


def backup_rounding(branching: int) -> float:
    """A bound on the rounding error of one computed backup r + γ Σ p v, for |r| + |v| = 1.

    A dot product of B terms in float64 is off by less than (B + 3) u Σ|p v|, u = 2⁻⁵³, and rows may
    miss 1 by `row_rounding`. Twice that covers what follows the backup (a shift and a maximum), or
    what went before it (successors that were listed twice, added up).
    """
    return 2 * ((branching + 3) * 2.0**-53 + row_rounding(branching))


def rounding(mdp: Any) -> Any:
    """That of a model's backup, with what it takes to normalise rows that miss 1 by ρ.

    It moves v* by γ ρ ‖v*‖ / (1 − γ (1 + ρ)) at most, which is less than 2 ρ ‖v*‖ / (1 − γ): by
    `checks.row_tolerance` ρ is at most (1 − γ) / 2.
    """
    return backup_rounding(mdp.successors.shape[-1]) + 2 * mdp.missed


def bracket(
    v: AnyArray, d: AnyArray, rewards: Any, discount: Any, unit: Any, xp: Any = np
) -> Bracket[AnyArray]:
    """From v [..., S], its residual d = T v − v, the largest |reward| and the `rounding`.

    Rows that miss 1 by ρ move a shift c by γ ρ |c|, so c counts among the sizes that are rounded.
    The floor follows from the same sizes: ‖v*‖ is at most ‖v‖ + |c| for *any* v, and is here known
    to be at least as large as the nearer end of the bracket.
    """
    gap = 1 - discount
    low, high = xp.min(d, -1) / gap, xp.max(d, -1) / gap
    top, bottom = xp.max(v, -1), xp.min(v, -1)
    size = xp.maximum(top, -bottom) + xp.maximum(xp.abs(low), xp.abs(high))
    slack = unit * (rewards + size) / gap
    least = xp.maximum(xp.maximum(top + low, -(bottom + high)) - slack, 0.0)
    return Bracket(
        shift=discount * (low + high) / 2,
        bound=discount * (high - low) / 2 + slack,
        floor=unit * (rewards + least) / (gap + unit),
    )


class Aim(NamedTuple):
    """The accuracy that is asked for."""

    tolerance: float
    """In the sup norm."""
    strict: bool
    """Whether to promise the tolerance whatever rounding allows. If not, the promise is the larger
    of the tolerance and ``NEAR`` times the floor."""

    def promise(self, floor: Any, xp: Any = np) -> Any:
        """What a bound has to be at most for the promise to be kept."""
        return xp.where(self.strict, self.tolerance, xp.maximum(self.tolerance, NEAR * floor))

    def goal(self, floor: Any, xp: Any = np) -> Any:
        """Where to stop: at the promise, or where rounding is proven to forbid it."""
        return xp.where(floor > self.tolerance, NEAR * floor, self.promise(floor, xp))


def aim(tolerance: float | None, default: float) -> Aim:
    """The aim of a function's argument ``tolerance``."""
    if tolerance is None:
        return Aim(default, False)
    check_tolerance(tolerance)
    return Aim(float(tolerance), True)


def check_tolerance(tolerance: float) -> None:
    """A tolerance is a positive number."""
    if not 0 < of_type("tolerance", tolerance, float) < np.inf:
        raise UserError(f"tolerance: {tolerance}, expected a positive number")


def require(kept: Any, wanted: Aim, bound: Any, floor: Any, answer: np.ndarray) -> None:
    """Raise unless the promise is kept; the exception has the best answer and its bound."""
    if np.all(kept):
        return
    worst, limit = float(np.max(bound)), float(np.max(floor))
    why = f"float64 can prove no less than {limit:.2g} here" if wanted.tolerance < limit else None
    raise ToleranceMissed(
        f"tolerance: {wanted.tolerance:g}, reached {worst:.2g}"
        + (f"; {why}" if why else "; a larger tolerance can be met"),
        answer=answer,
        bound=worst,
    )


def sweeps_needed(bound: float, goal: float, discount: float) -> float:
    """How many sweeps surely bring a bound down to a goal: each multiplies it by at most γ."""
    if bound <= goal:
        return 0.0
    if discount == 0:
        return 1.0
    return float(np.ceil(np.log(goal / bound) / np.log(discount)))
