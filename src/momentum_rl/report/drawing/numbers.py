"""Numbers as readers want them."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
"""Numbers along iterations, runs, or whatever else is said beside them."""


def short(value: float) -> str:
    """Four significant digits.

    >>> short(12345.6), short(float("inf")), short(float("nan"))
    ('12,350', '∞', 'none')
    """
    if math.isnan(value):
        return "none"
    return "∞" if math.isinf(value) else f"{float(f'{value:.4g}'):,g}"


def number(value: float) -> str:
    """Three significant digits, for a sentence.

    >>> [number(x) for x in (0.00123456, 1.0, 12345.6, float("inf"))]
    ['0.00123', '1', '12,300', '∞']
    """
    if math.isinf(value):
        return "∞"
    rounded = float(f"{value:.3g}")
    if rounded and not 1e-4 <= abs(rounded) < 1e6:
        return f"{rounded:.2e}".replace("e-0", "e-").replace("e+0", "e")
    return f"{rounded:,.6f}".rstrip("0").rstrip(".")


def span(values: Sequence[int]) -> str:
    """From the smallest to the largest.

    >>> span([3, 3]), span([1000, 20])
    ('3', '20 to 1,000')
    """
    low, high = min(values), max(values)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def percent(value: float) -> str:
    """A share.

    >>> percent(0.4512), percent(-0.021), percent(float("inf")), percent(12.3)
    ('+45 %', '−2.1 %', '+∞ %', '+1,230 %')
    """
    if math.isinf(value):
        return "+∞ %" if value > 0 else "−∞ %"
    digits = 1 if abs(value) < 0.0995 else 0
    text = f"{100 * abs(value):,.{digits}f}"
    if float(text.replace(",", "")) == 0:
        return "0 %"
    return f"{'+' if value > 0 else '−'}{text} %"


def share(value: float) -> str:
    """A share that may well be none: without a sign, unless it is below 0.

    >>> share(0.5), share(-0.021), share(1.0)
    ('50 %', '−2.1 %', '100 %')
    """
    return percent(value).removeprefix("+")
