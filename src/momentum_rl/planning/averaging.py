"""Which β is best for an average that has errors of its own.

Around a fixed point let q_k fluctuate with variance a about its mean, the average make errors of
variance b of its own, and the mean of q drift by w (variance) in an iteration. Under a constant β

    h_k = β h_{k−1} + (1 − β) q_k + η_k

then has the stationary variance ((1 − β)² a + b + β² w) / (1 − β²) about that mean. It is smallest
where (1 − β)²/β = (b + w)/a, that is β = (2 + ρ − √(ρ² + 4ρ))/2 with ρ = (b + w)/a.

>>> round(best_beta(1.0, 0.1**2), 3)
0.905
>>> round(best_beta(1.0, 0.0), 3), round(best_beta(1.0, 1e6), 3)
(1.0, 0.0)

The steady state of a Kalman filter has the same β, and its gains are the best β_k from the first
iteration on: 1 − β_k = g_k with g_0 = 1 and g_k = (g_{k−1} + ρ)/(1 + g_{k−1} + ρ). With ρ = 0 that
is β_k = k/(k+1), the paper's; with ρ > 0 it levels off at the best constant β, as
``schedules.Capped(Mean(), best_beta(a, b))`` does.
"""

import numpy as np

from momentum_rl.errors import UserError

_GAINS = np.logspace(-8, 0, 200_001)


def variance(
    beta: np.ndarray | float,
    a: float,
    b: float,
    drift: float = 0.0,
    *,
    memory: float = 0.0,
    average_memory: float = 0.0,
) -> np.ndarray:
    """The stationary variance of h under a constant β.

    Args:
      beta: β, in [0, 1).
      a: the variance of q's fluctuations.
      b: the variance of the average's own errors.
      drift: w, the variance of a step of q's mean.
      memory: c, the autocorrelation of q's fluctuations at lag one (at lag m it is c^m). Their
        share is then (1 + βc)/(1 − βc) times as large; with c = 1 no β averages them.
      average_memory: the same of the average's own errors; 1 is a bias, whose share is b/(1 − β)².
    """
    beta = np.asarray(beta, float)
    for name, share in (("memory", memory), ("average_memory", average_memory)):
        if not 0 <= share <= 1:
            raise UserError(f"{name}: {share}, expected a number in [0, 1]")
    if ((beta < 0) | (beta >= 1)).any():
        raise UserError(f"beta: {beta.max()}, expected numbers in [0, 1)")
    rest = 1 - beta**2
    noise = (1 - beta) ** 2 * a / rest * (1 + beta * memory) / (1 - beta * memory)
    own = b / rest * (1 + beta * average_memory) / (1 - beta * average_memory)
    return noise + own + beta**2 * drift / rest


def best_beta(
    a: float, b: float, drift: float = 0.0, *, memory: float = 0.0, average_memory: float = 0.0
) -> float:
    """The constant β with the smallest ``variance``; without memory by the law above."""
    if not (a > 0 and b >= 0 and drift >= 0):
        raise UserError(f"a, b, drift: {a}, {b}, {drift}, expected a above 0 and none below 0")
    if memory == average_memory == 0:
        ratio = (b + drift) / a
        return float(2 / (2 + ratio + np.sqrt(ratio**2 + 4 * ratio)))
    of = variance(1 - _GAINS, a, b, drift, memory=memory, average_memory=average_memory)
    return float(1 - _GAINS[np.argmin(of)])
