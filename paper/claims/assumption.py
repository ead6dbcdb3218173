"""The check of Assumption 1: what Section 7.1 observes, judged; and its own indices, described.

The paper's sentences are judged on what the paper did: restarts from q_j, as Section 7.1 prints it.
The assumption's own indices, and what Proposition 1 needs beside the assumption, are findings.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from momentum_rl.report.style import Array
from paper.claims.drawing import number
from paper.claims.tables import ASSUMED, ONE_MORE, Assumption, Assumptions
from paper.verdict import Finding, Verdict

SLOPE = -1 / 3
"""Largest log-log slope that still counts as that of a mean of centred errors, which is −1/2: ten
times 100 Garnets with N up to 200 gave −0.46 to −0.52 for means that are known to be centred."""
TABLE = "All j and l are in the table below."


def _slopes(n: Array, curves: Mapping[int, Array]) -> dict[int, float]:
    """Least-squares slope of log value against log N, by l; positive values only."""
    slopes = {}
    for key, curve in curves.items():
        rows = curve > 0
        flat = rows.sum() < 2
        slopes[key] = (
            -np.inf if flat else float(np.polyfit(np.log(n[rows]), np.log(curve[rows]), 1)[0])
        )
    return slopes


@dataclass(frozen=True)
class _Fall:
    """How the estimates of one part fall with N."""

    slopes: Mapping[int, float]
    left: Mapping[int, float]
    """By l: the value at the largest N as a share of that at the smallest."""
    limit: float
    """Of ``left``: twice what a mean of centred errors leaves."""

    @property
    def to_zero(self) -> bool:
        return max(self.slopes.values()) <= SLOPE and max(self.left.values()) <= self.limit


def _decides(data: Assumption) -> bool:
    return data.n.size >= 10 and data.n[-1] >= 10 * data.n[0]


def _fall_with_n(data: Assumption) -> _Fall:
    left = {length: float(c[-1] / c[0]) if c[0] > 0 else 0.0 for length, c in data.mean.items()}
    return _Fall(_slopes(data.n, data.mean), left, 2 / np.sqrt(data.n[-1] / data.n[0]))


def _signed(values: Iterable[float]) -> str:
    return ", ".join(f"{value:.2f}".replace("-", "−") for value in values)


def assumption_vanishes(data: Assumptions) -> Verdict:
    """Section 7.1: the estimate of Assumption 1 tends to zero, as the section computes it."""
    claim = (
        "“We observe that the limit of ε̄(l, N) seems to be 0 for each l, which experimentally "
        "validates our assumption” (Section 7.1, fig:errors)."
    )
    parts = data.paper
    if not parts:
        return Verdict(claim, "The data do not have the check as printed.", None)
    n = next(iter(parts.values())).n
    if not all(map(_decides, parts.values())):
        return Verdict(claim, f"N goes from {n[0]:.0f} to {n[-1]:.0f}: too few to judge.", None)
    all_fall = all(_fall_with_n(part).to_zero for part in parts.values())
    text = (
        f"Restarted from q_j as the paper prints it, {_falling(parts)} A mean of centred errors "
        "has the power of −0.5."
    )
    further = {j: part for j, part in data.further.items() if not _fall_with_n(part).to_zero}
    if data.further:
        text += f" With more restarts, {_falling(data.further)}"
    most = max((part.n[-1] for part in further.values()), default=0)
    return Verdict(claim, text, all_fall, but=f"but not at N = {most:,.0f}" if further else "")


def _falling(parts: Mapping[int, Assumption]) -> str:
    """How the estimates of parts with the same N fall, and what would be enough."""
    seen = []
    for j, part in parts.items():
        fall = _fall_with_n(part)
        seen.append(
            f"for j = {j:,} and l = {', '.join(map(str, part.mean))} the mean falls like N to the "
            f"power of {_signed(fall.slopes.values())}, and {number(100 * max(fall.left.values()))}"
            f" % of it or less is left"
        )
    return (
        f"from N = {part.n[0]:,.0f} to {part.n[-1]:,.0f}: {'; '.join(seen)}; to be confirmed, at "
        f"most −0.33 and {number(100 * fall.limit)} %."
    )


def _not_lower(part: Assumption) -> dict[int, int]:
    """By l > 0: at how many N the mean is not below that of l = 0."""
    return {
        length: int((curve >= part.mean[0]).sum())
        for length, curve in part.mean.items()
        if length > 0
    }


def kernels_reduce_errors(data: Assumptions) -> Verdict:
    """Section 7.1: products with kernels make the mean error smaller."""
    claim = "“for every tested l > 0, the norm is lower than for l = 0” (Section 7.1, fig:errors)."
    parts = data.paper
    if not parts or any(0 not in part.mean or len(part.mean) < 2 for part in parts.values()):
        return Verdict(claim, "The data do not have l = 0 and an l > 0 as printed.", None)
    seen, all_lower = [], True
    for j, part in parts.items():
        higher, first = _not_lower(part), part.mean[0]
        ratios = [part.mean[length][-1] / first[-1] if first[-1] else np.inf for length in higher]
        text = (
            f"for j = {j:,} and l = {', '.join(map(str, higher))} the norm is "
            f"{', '.join(map(number, ratios))} × that for l = 0"
        )
        broken = [f"l = {length} at {count:,}" for length, count in higher.items() if count]
        if broken:
            all_lower = False
            text += f", and it is not lower for {', '.join(broken)} of the values of N"
        seen.append(text)
    n = next(iter(parts.values())).n
    text = f"Restarted from q_j as the paper prints it, at N = {n[-1]:,.0f}: {'; '.join(seen)}."
    if all_lower:
        text += f" It is lower at each of the {n.size:,} values of N."
    return Verdict(claim, text, all_lower)


def as_assumed(data: Assumptions) -> Finding | None:
    """Both of Section 7.1's observations, asked of the assumption's own indices."""
    about = (
        "Our finding, not the paper's: the same two questions with Assumption 1's own indices, "
        "E[P_{j+l:j+1} ε_j | F_{j−1}]. Iteration j is repeated from q_{j−1} and h_{j−1}, so that "
        "π_{j+1} = G(h_j) has seen ε_j and prefers what it made larger."
    )
    return _course(about, data.of(ASSUMED))


def one_more_kernel(data: Assumptions) -> Finding | None:
    """What Proposition 1 needs and Assumption 1 does not give."""
    about = (
        "Our finding, not the paper's: E[P_{j+l:j} ε_j | F_{j−1}], with one kernel more. "
        "E′(k, l) contains it, so that Proposition 1 needs it too, and Assumption 1 does not "
        "cover it."
    )
    return _course(about, data.of(ONE_MORE))


def _course(about: str, parts: Mapping[int, Assumption]) -> Finding | None:
    """At which j the estimates seem to go to zero with N."""
    if not parts:
        return None
    zero = [f"{j:,}" for j, part in parts.items() if _decides(part) and _fall_with_n(part).to_zero]
    seen = f"The norm seems to go to zero for every l at j = {', '.join(zero)}. " if zero else ""
    return Finding(about, f"{seen}{TABLE}")
