"""β_k and ε_k as functions of the step.

A schedule takes a step: a Python integer of any size on the host, or an integer array in compiled
code. The counter itself is only ever divided or subtracted as an integer, so that no float32
rounds it; what is converted to floating point is small.

>>> [round(RateUpdates(kappa=10)(k), 3) for k in (0, 9, 10, 20, 199)]
[0.0, 0.0, 0.5, 0.667, 0.95]
>>> RateUpdates(kappa=2**40)(2**41 + 5)
0.6666666666666666
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Union

import numpy as np

from momentum_rl.errors import UserError, check_fraction, check_not_negative, of_type

if TYPE_CHECKING:
    import jax

Step = Union[int, np.ndarray, "jax.Array"]  # integers
Value = Union[float, np.ndarray, "jax.Array"]  # floating-point numbers


class Schedule(Protocol):
    """A value for every step."""

    def __call__(self, step: Step) -> Value:
        """The value at this step."""


def _clip(x: Step, low: int, high: int) -> Step:
    if isinstance(x, int):
        return max(low, min(x, high))
    if isinstance(x, np.ndarray | np.integer):
        return np.clip(x, low, high)
    import jax.numpy as jnp

    return jnp.clip(x, low, high)


def _at_most(x: Value, most: float) -> Value:
    """The smaller of the two."""
    if isinstance(x, float):
        return min(x, most)
    if isinstance(x, np.ndarray | np.floating):
        return np.minimum(x, x.dtype.type(most))
    import jax.numpy as jnp

    return jnp.minimum(x, most)


def _below_one(x: Value) -> Value:
    """A share below 1, held there where its precision would round it up to 1."""
    kind = float if isinstance(x, float) else x.dtype
    return _at_most(x, float(1 - np.finfo(kind).epsneg))


def _positive(name: str, value: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UserError(f"{name}: {value!r}, expected an integer of at least 1")


@dataclass(frozen=True)
class Mean:
    """β_k = k / (k + 1): h_k is the mean of q_0, …, q_k (Section 4)."""

    def __call__(self, step: Step) -> Value:
        """k / (k + 1)."""
        return _below_one(step / (step + 1.0))  # step + 1 may overflow an int32


@dataclass(frozen=True)
class Smoothing:
    """β_k = 1 − 1/w_k with w_k = 1 + ρ + … + ρ^k: the average in h_k = ρ h_{k−1} + q_k (Section 3).

    >>> [round(Smoothing(rho)(4), 3) for rho in (0.0, 0.5, 1.0, 2.0)], Mean()(4)
    ([0.0, 0.484, 0.8, 0.968], 0.8)
    """

    rho: float
    """ρ, at least 0; 1 is the mean."""

    def __post_init__(self) -> None:
        check_not_negative("rho", self.rho)

    def __call__(self, step: Step) -> Value:
        """1 − 1/w_k."""
        if self.rho == 1:
            return Mean()(step)
        # Written so that no power overflows: (ρ^k − 1)/(ρ^k − 1/ρ) for ρ > 1.
        if self.rho > 1:
            small = self.rho ** (-1.0 * step)
            return _below_one((1 - small) / (1 - small / self.rho))
        power = self.rho ** (1.0 * step)
        return self.rho * (1 - power) / (1 - self.rho * power)


@dataclass(frozen=True)
class RateUpdates:
    """β_k = ⌊k/κ⌋ / (⌊k/κ⌋ + 1) (Section 5): 0 for the first κ steps, then 1/2, 2/3, …"""

    kappa: int
    """κ: agent steps between two changes of β (paper: 2,500,000)."""

    def __post_init__(self) -> None:
        _positive("kappa", self.kappa)

    def __call__(self, step: Step) -> Value:
        """⌊k/κ⌋ / (⌊k/κ⌋ + 1)."""
        n = step // self.kappa
        return _below_one(n / (n + 1.0))


@dataclass(frozen=True)
class Constant:
    """β_k = β (the appendix studies 0.1, 0.5 and 0.9)."""

    beta: float
    """β, in [0, 1)."""

    def __post_init__(self) -> None:
        if not 0 <= of_type("beta", self.beta, float) < 1:
            raise UserError(f"beta: {self.beta!r}, expected a number in [0, 1)")

    def __call__(self, step: Step) -> Value:
        """β, whatever the step."""
        return _below_one(self.beta + 0.0 * step)


@dataclass(frozen=True)
class Capped:
    """Another schedule, which never passes a largest β.

    An average with errors of its own needs one: under β_k = k/(k+1) they pile up
    (`momentum_rl.planning.averaging`).

    >>> [Capped(Mean(), 0.7)(k) for k in (1, 2, 3, 100)]
    [0.5, 0.6666666666666666, 0.7, 0.7]
    """

    schedule: Schedule
    """β_k without the limit."""
    most: float
    """The largest β, in [0, 1)."""

    def __post_init__(self) -> None:
        if not 0 <= of_type("most", self.most, float) < 1:
            raise UserError(f"most: {self.most!r}, expected a number in [0, 1)")

    def __call__(self, step: Step) -> Value:
        """min(β_k, most)."""
        return _at_most(self.schedule(step), self.most)


@dataclass(frozen=True)
class Heuristic:
    """β_k = 0.1 ⌊k/κ⌋ (appendix), held at 0.9 so that it stays below 1."""

    kappa: int
    """κ: agent steps between two changes of β."""

    def __post_init__(self) -> None:
        _positive("kappa", self.kappa)

    def __call__(self, step: Step) -> Value:
        """0.1 ⌊k/κ⌋, at most 0.9."""
        return _clip(step // self.kappa, 0, 9) / 10


@dataclass(frozen=True)
class Epsilon:
    """ε_k: 1 while warming up, then linear to ``final`` over ``decay`` steps, then ``final``.

    >>> [round(Epsilon(20_000, 250_000, 0.01)(k), 6) for k in (0, 20_000, 145_000, 270_000)]
    [1.0, 1.0, 0.505, 0.01]
    """

    warmup: int = 20_000
    """Agent steps with ε = 1 (Dopamine: 20,000; the paper does not say)."""
    decay: int = 250_000
    """Agent steps from 1 to the final ε (paper: 250,000)."""
    final: float = 0.01
    """The ε that remains (paper: 0.01)."""

    def __post_init__(self) -> None:
        check_not_negative("warmup", self.warmup)
        _positive("decay", self.decay)
        check_fraction("final", self.final)

    def __call__(self, step: Step) -> Value:
        """ε at this step."""
        last = self.warmup + self.decay
        left = last - _clip(step, self.warmup, last)  # clipped first: unsigned steps would wrap
        return self.final + (1 - self.final) * (left / self.decay)
