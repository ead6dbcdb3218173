"""The paper's claims about tables, each judged by a pure function of the data.

Every threshold is a named constant with its reason; every function uses every iteration, not the
thinned curves that are drawn. Windows are relative to the length K of the run, so that a shorter
run is judged by the same rule:

    #   k:      1 ......... K/100 ......... K/10 ......... K/2 ......... K
    #                         |--- early ---|               |--- late ---|
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from movi.reports.series import (
    BOUNDS,
    CONSTANT_BETA_PREFIX,
    HOLDS_SUFFIX,
    MEAN_BETA_LOSS,
    SCHEME_BOUNDS,
    SCHEMES,
    Bound,
)
from movi.reports.tables import Array, Assumption, Bounds, Compare

SHORTEST = 100
"""Iterations below which convergence is not judged: the early window needs some of its own."""
FALLING = 0.5
"""A curve converges if its late mean is at most this share of its early mean, else it does not."""
HIGH = 0.1
"""A loss is small beside another if it is at most this share of it."""
TURNING = 0.1
"""A curve oscillates if at least this share of its late steps reverse the one before
(two thirds do in a sequence of independent draws, none in a monotone curve)."""
ALIKE = 2.0
"""Curves behave almost identically if they are within this factor of each other."""
NEGLIGIBLE = 1e-3
"""Share of AVI's loss below which differences are not compared: a few states of a few MDPs."""
SLOPE = -0.4
"""Largest log-log slope that still counts as the N^(-1/2) of a mean of centred errors."""
ROUNDING = 1e-9
"""Relative slack when a loss is compared with its bound."""


@dataclass(frozen=True)
class Verdict:
    """A claim, what the data show, and whether they confirm it."""

    claim: str
    """What the paper says, and where."""
    seen: str
    """What the data show, with numbers."""
    confirmed: bool | None
    """None if these data cannot decide."""

    def __post_init__(self) -> None:
        if self.confirmed is not None:  # comparisons of arrays' entries give NumPy's own truth
            object.__setattr__(self, "confirmed", bool(self.confirmed))

    @property
    def word(self) -> str:
        """The verdict in words."""
        if self.confirmed is None:
            return "Not decided"
        return "Confirmed" if self.confirmed else "Not confirmed"


def number(value: float) -> str:
    """A number for a reader: three significant digits.

    >>> [number(x) for x in (0.00123456, 1.0, 12345.6, float("inf"))]
    ['0.00123', '1', '12,300', '∞']
    """
    if np.isinf(value):
        return "∞"
    rounded = float(f"{value:.3g}")
    if rounded and not 1e-4 <= abs(rounded) < 1e6:
        return f"{rounded:.2e}".replace("e-0", "e-").replace("e+0", "e")
    return f"{rounded:,.6f}".rstrip("0").rstrip(".")


def _early(k: Array) -> Array:
    return (k > k[-1] / 100) & (k <= k[-1] / 10)


def _late(k: Array) -> Array:
    return k > k[-1] / 2


def _fall(k: Array, curve: Array) -> float:
    """The late mean as a share of the early mean."""
    early = float(curve[_early(k)].mean())
    late = float(curve[_late(k)].mean())
    if np.isinf(early):
        return 1.0 if np.isinf(late) else 0.0
    return late / early if early > 0 else (0.0 if late == 0 else np.inf)


def _turning(curve: Array) -> float:
    """Share of steps that go against the one before."""
    steps = np.sign(np.diff(curve))
    return float((steps[1:] * steps[:-1] < 0).mean()) if steps.size > 1 else 0.0


def _label(scheme: str) -> str:
    return SCHEMES[scheme].label if scheme in SCHEMES else scheme


def _undecided(
    claim: str, k: Array, curves: Mapping[str, Array], needed: set[str]
) -> Verdict | None:
    """The verdict when schemes are missing or the run is too short; None when there is more."""
    missing = sorted(_label(name) for name in needed - curves.keys())
    if missing:
        return Verdict(claim, f"The data do not have {', '.join(missing)}.", None)
    if k[-1] < SHORTEST or not _early(k).any() or _late(k).sum() < 3:
        seen = f"The run has {k[-1]:,.0f} iterations; at least {SHORTEST} are needed to judge."
        return Verdict(claim, seen, None)
    return None


def momentum_converges(data: Compare) -> Verdict:
    """Section 4: AVI stays high and oscillates, MoVI goes to zero."""
    claim = "AVI oscillates with high error, while MoVI converges to q* (Section 4)."
    k = data.iteration
    if undecided := _undecided(claim, k, data.mean, {"avi", "movi"}):
        return undecided
    avi, movi = data.mean["avi"], data.mean["movi"]
    late = _late(k)
    avi_fall, movi_fall, turning = _fall(k, avi), _fall(k, movi), _turning(avi[late])
    share = float(movi[late].mean()) / max(float(avi[late].mean()), np.finfo(float).tiny)
    seen = (
        f"Over the last half of {k[-1]:,.0f} iterations AVI's mean error moves between "
        f"{number(avi[late].min())} and {number(avi[late].max())}, reversing direction in "
        f"{turning:.0%} of the steps, at {number(avi_fall)} × its mean between "
        f"k = {k[-1] / 100:,.0f} and {k[-1] / 10:,.0f}. MoVI's is {number(movi[late].mean())}, "
        f"{number(100 * share)} % of AVI's and {number(movi_fall)} × its own mean in that window, "
        f"ending at {number(movi[-1])}."
    )
    oscillates = avi_fall > FALLING and turning >= TURNING
    return Verdict(claim, seen, oscillates and movi_fall <= FALLING and share <= HIGH)


def _windows(k: Array) -> Iterator[Array]:
    """Half decades from k = 10 on."""
    edges = 10.0 ** np.arange(1, np.log10(k[-1]) + 0.5, 0.5)
    for low, high in zip(edges, [*edges[1:], np.inf], strict=True):
        rows = (k >= low) & (k < high)
        if rows.any():
            yield rows


def schemes_agree(data: Compare) -> Verdict:
    """Section 7.1: MoVI, DPP and SQL alike, AVI not."""
    claim = (
        "MoVI, DPP and SQL behave almost identically and converge at roughly the same speed, "
        "while AVI oscillates around a sub-optimal policy (Section 7.1)."
    )
    k, alike = data.iteration, ("movi", "sql", "dpp")
    if undecided := _undecided(claim, k, data.mean, {"avi", *alike}):
        return undecided
    late = _late(k)
    avi = float(data.mean["avi"][late].mean())
    small = max(NEGLIGIBLE * avi, np.finfo(float).tiny)
    apart = max(
        max(means) / min(means)
        for rows in _windows(k)
        if (means := [float(data.mean[s][rows].mean()) + small for s in alike])
    )
    reached = {s: np.flatnonzero(data.mean[s] <= HIGH * avi) for s in alike}
    falls = [_fall(k, data.mean[s]) for s in alike]
    worst = max(float(data.mean[s][late].mean()) for s in alike)
    seen = (
        f"The three stay within a factor of {number(apart)} of each other in every half decade "
        f"from k = 10. "
    )
    if all(found.size for found in reached.values()):
        first = {s: int(k[found[0]]) for s, found in reached.items()}
        together = max(first.values()) <= ALIKE * min(first.values())
        listed = ", ".join(f"{value:,} ({_label(s)})" for s, value in first.items())
        seen += f"They first reach a tenth of AVI's late error at k = {listed}. "
    else:
        together = False
        never = ", ".join(_label(s) for s, found in reached.items() if not found.size)
        seen += f"A tenth of AVI's late error is never reached by {never}. "
    seen += (
        f"Over the last half AVI's error is {number(avi)}, the largest of the others "
        f"{number(worst)}."
    )
    avi_stays = _fall(k, data.mean["avi"]) > FALLING and worst <= HIGH * avi
    return Verdict(claim, seen, apart <= ALIKE and together and max(falls) <= FALLING and avi_stays)


def spread_shrinks(data: Compare) -> Verdict:
    """Appendix: the standard deviation over MDPs of the four schemes."""
    claim = (
        "The appendix shows the standard deviation over MDPs without a statement; if MoVI, DPP and "
        "SQL converge on every MDP and not just on average, theirs vanishes and AVI's does not."
    )
    k, alike = data.iteration, ("movi", "sql", "dpp")
    if undecided := _undecided(claim, k, data.std, {"avi", *alike}):
        return undecided
    late, falls = _late(k), {s: _fall(k, data.std[s]) for s in ("avi", *alike)}
    levels = ", ".join(
        f"{number(data.std[s][late].mean())} for {_label(s)} ({number(falls[s])} ×)" for s in falls
    )
    seen = (
        f"Over the last half the standard deviation is {levels}; in brackets, as a multiple of its "
        f"mean between k = {k[-1] / 100:,.0f} and {k[-1] / 10:,.0f}."
    )
    shrinks = all(falls[s] <= FALLING for s in alike)
    return Verdict(claim, seen, shrinks and falls["avi"] > FALLING)


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


def _vanishes(claim: str, n: Array, curves: Mapping[int, Array], what: str) -> Verdict:
    if n.size < 10 or n[-1] < 10 * n[0]:
        return Verdict(claim, f"N goes from {n[0]:.0f} to {n[-1]:.0f}: too few to judge.", None)
    slopes = _slopes(n, curves)
    left = {
        key: float(curve[-1] / curve[0]) if curve[0] > 0 else 0.0 for key, curve in curves.items()
    }
    limit = 2 / np.sqrt(n[-1] / n[0])
    powers = ", ".join(f"{slope:.2f}".replace("-", "−") for slope in slopes.values())
    seen = (
        f"For l = {', '.join(map(str, curves))} the {what} falls like N to the power of {powers} "
        f"(−0.5 for a mean of centred errors). At N = {n[-1]:,.0f} at most "
        f"{number(100 * max(left.values()))} % of the value at N = {n[0]:.0f} is left "
        f"(limit {number(100 * limit)} %)."
    )
    falls = max(slopes.values()) <= SLOPE and max(left.values()) <= limit
    return Verdict(claim, seen, falls)


def assumption_vanishes(data: Assumption) -> Verdict:
    """Section 7.1: the estimate of Assumption 1 tends to zero."""
    claim = "The limit of ε̄(l, N) is 0 for each l: Assumption 1 holds numerically (Section 7.1)."
    return _vanishes(claim, data.n, data.mean, "mean")


def assumption_spread_vanishes(data: Assumption) -> Verdict:
    """Appendix: the standard deviation of the estimate."""
    claim = (
        "The appendix shows the standard deviation over MDPs without a statement; if the "
        "assumption holds on every MDP and not just on average, it vanishes as well."
    )
    return _vanishes(claim, data.n, data.std, "standard deviation")


def kernels_reduce_errors(data: Assumption) -> Verdict:
    """Section 7.1: products with kernels make the mean error smaller."""
    claim = "For every tested l > 0, the norm is lower than for l = 0 (Section 7.1)."
    others = {key: curve for key, curve in data.mean.items() if key > 0}
    if 0 not in data.mean or not others:
        return Verdict(claim, "The data do not have l = 0 and an l > 0.", None)
    first = data.mean[0]
    higher = {key: int((curve >= first).sum()) for key, curve in others.items()}
    last = ", ".join(
        number(curve[-1] / first[-1]) if first[-1] else "∞" for curve in others.values()
    )
    seen = (
        f"At N = {data.n[-1]:,.0f} the norm for l = {', '.join(map(str, others))} is {last} × that "
        "for l = 0. "
    )
    broken = [f"l = {key} at {count:,}" for key, count in higher.items() if count]
    if broken:
        seen += f"It is not lower for {', '.join(broken)} of the {data.n.size:,} values of N."
    else:
        seen += f"It is lower at each of the {data.n.size:,} values of N."
    return Verdict(claim, seen, not broken)


def _present(data: Bounds, schemes: set[str]) -> list[Bound]:
    return [
        pair
        for pair in BOUNDS
        if pair.scheme in schemes and {pair.loss, pair.bound} <= data.columns.keys()
    ]


def _hold(claim: str, data: Bounds, schemes: set[str]) -> Verdict:
    pairs = _present(data, schemes)
    if not pairs:
        return Verdict(claim, "The data do not have a loss with its bound.", None)
    parts, all_hold = [], True
    for pair in pairs:
        loss, bound = data.columns[pair.loss], data.columns[pair.bound]
        # Each MDP by itself where the file tells; means alone could hide a failure.
        share = data.columns.get(pair.bound + HOLDS_SUFFIX, (loss <= bound * (1 + ROUNDING)) * 1.0)
        broken = share < 1
        name = f"{_label(pair.scheme)}, {pair.statement}"
        if broken.any():
            all_hold = False
            i = int(np.flatnonzero(broken)[0])
            parts.append(
                f"{name}: broken at {int(broken.sum()):,} of {loss.size:,} iterations, first at "
                f"k = {data.iteration[i]:,.0f} with a mean loss of {number(loss[i])} and a mean "
                f"bound of {number(bound[i])}"
            )
        else:
            positive = loss > 0
            tight = float((bound[positive] / loss[positive]).min()) if positive.any() else np.inf
            parts.append(
                f"{name}: holds at all {loss.size:,} iterations, bound ≥ {number(tight)} × loss"
            )
    return Verdict(claim, "; ".join(parts) + ".", all_hold)


def movi_bounds_hold(data: Bounds) -> Verdict:
    """Section 4: Theorem 1, its consequences, and Proposition 1."""
    claim = (
        "MoVI's loss is below Theorem 1, its sup-norm form, Corollary 1 and (with its probability) "
        "Proposition 1 at every iteration (Section 4)."
    )
    return _hold(claim, data, {"movi"})


def scheme_bounds_hold(data: Bounds) -> Verdict:
    """Sections 2 and 6: the bounds of AVI, SQL and DPP."""
    claim = (
        "The losses of AVI, SQL and DPP are below their bounds at every iteration (Sections 2, 6)."
    )
    return _hold(claim, data, {"avi", "sql", "dpp"})


def averaging_shrinks_bound(data: Bounds) -> Verdict:
    """Section 4: errors compensate in MoVI's bound and not in AVI's."""
    claim = (
        "In MoVI's bound errors compensate and the bound shrinks; AVI's contains the largest error "
        "so far and does not (Sections 2 and 4)."
    )
    bounds = {s: data.columns[c] for s, c in SCHEME_BOUNDS.items() if c in data.columns}
    k = data.iteration
    if undecided := _undecided(claim, k, bounds, {"avi", "movi"}):
        return undecided
    falls = {s: _fall(k, curve) for s, curve in bounds.items()}
    listed = ", ".join(f"{number(falls[s])} × for {_label(s)}" for s in falls)
    seen = (
        f"Mean bound over the last half as a multiple of its mean between k = {k[-1] / 100:,.0f} "
        f"and {k[-1] / 10:,.0f}: {listed}. It ends at {number(bounds['movi'][-1])} for MoVI and "
        f"{number(bounds['avi'][-1])} for AVI."
    )
    return Verdict(claim, seen, falls["movi"] <= FALLING < falls["avi"])


def constant_betas(data: Bounds) -> dict[str, Array]:
    """The losses of MoVI with constant β, by β as it is written in the column's name."""
    found = {
        name.removeprefix(CONSTANT_BETA_PREFIX): curve
        for name, curve in data.columns.items()
        if name.startswith(CONSTANT_BETA_PREFIX)
    }
    return dict(sorted(found.items()))


def constant_beta_leaves_error(data: Bounds) -> Verdict:
    """Section 4: with a moving average, an error remains."""
    claim = (
        "With a constant β the error does not vanish, as it does with β_k = k/(k+1) (Section 4)."
    )
    k, constant = data.iteration, constant_betas(data)
    if MEAN_BETA_LOSS not in data.columns or not constant:
        return Verdict(
            claim, "The data do not have MoVI with a constant β and with the mean.", None
        )
    mean = data.columns[MEAN_BETA_LOSS]
    if undecided := _undecided(claim, k, {"movi": mean}, {"movi"}):
        return undecided
    late = _late(k)
    level = float(mean[late].mean())
    falls = {beta: _fall(k, curve) for beta, curve in constant.items()}
    levels = {beta: float(curve[late].mean()) for beta, curve in constant.items()}
    listed = "; ".join(
        f"β = {beta}: {number(levels[beta])} ({number(falls[beta])} ×)" for beta in constant
    )
    seen = (
        f"Mean loss over the last half: {listed}; β_k = k/(k+1): {number(level)} "
        f"({number(_fall(k, mean))} ×); in brackets, as a multiple of its mean between "
        f"k = {k[-1] / 100:,.0f} and {k[-1] / 10:,.0f}."
    )
    remains = all(falls[b] > FALLING and levels[b] >= ALIKE * level for b in constant)
    return Verdict(claim, seen, remains and _fall(k, mean) <= FALLING)
