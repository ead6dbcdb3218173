"""The study of "Leverage the Average" (2020): its figures, and the sentences of that paper judged.

As elsewhere a ``Verdict`` stands for a sentence that is quoted, here of Section 4 of that paper;
what it does not say is a ``Finding``.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from momentum_rl.report.curves import CurvesFigure
from momentum_rl.report.page import Table
from momentum_rl.report.style import INK, MUTED, Style
from paper.claims.drawing import SCHEMES, Line, cycled, number
from paper.claims.figures import over_k
from paper.claims.tables import Family, Measured, Member
from paper.claims.verdicts import FALLING, HIGH, SHORTEST, early_in, late_in
from paper.verdict import HOLDS, Finding, Verdict

PAPER = "“Leverage the Average”, Section 4"
LONG = 4
"""A moving average is asymptotic if its length 1/(1 − β) is at most the run's, over this."""
NEAR = 1.5
"""A curve has arrived where it first is within this factor of its own late mean."""
SLACK = 1.3
"""How much earlier a larger weight may arrive and still count as no faster: iterations are kept at
steps of about 15 %."""


def _level(data: Family, curve: Measured) -> float:
    return float(curve.mean[late_in(data.iteration)].mean())


def _reference(data: Family, scheme: str) -> Measured | None:
    return next((curve for key, curve in data.members.items() if key.scheme == scheme), None)


def _beta(key: Member) -> float:
    return key.lam / (key.lam + key.tau)


def _fixed_tau(data: Family) -> float | None:
    """τ of the figure with a moving average: the paper's 0.001, or the smallest there is."""
    taus = sorted({key.tau for key in data.where("regularised") if key.tau > 0})
    return (0.001 if 0.001 in taus else taus[0]) if taus else None


ERROR = "|q* − qπ| relative to |q*|, averaged over (s, a)"


def by_lambda(data: Family) -> CurvesFigure | None:
    """Their Figure 1, left: DA-VI(λ, 0) for some λ, and AVI."""
    members = data.where("regularised", tau=0.0)
    if not members:
        return None
    curves = [
        Line(Style(f"λ = {key.lam:g}", *cycled(i)), curve.mean)
        for i, (key, curve) in enumerate(members.items())
    ]
    avi = _reference(data, "avi")
    if avi is not None:
        curves.insert(0, Line(Style("AVI", INK, (4, 2)), avi.mean))
    subtitle = f"mean over MDPs of {ERROR}; τ = 0, regularised evaluation"
    title = "KL regularisation alone"
    return over_k(data, "family_lambda", title, subtitle, "relative error", curves)


def by_beta(data: Family) -> CurvesFigure | None:
    """Their Figure 1, right: DA-VI(λ, τ) for a small τ and some β."""
    tau = _fixed_tau(data)
    if tau is None:
        return None
    curves = [
        Line(Style(f"β = {_beta(key):.4g}", *cycled(i)), curve.mean)
        for i, (key, curve) in enumerate(data.where("regularised", tau=tau).items())
    ]
    title = "With an entropy: moving averages"
    subtitle = f"mean over MDPs of {ERROR}, with the entropy; τ = {tau:g}"
    return over_k(data, "family_beta", title, subtitle, "relative error", curves)


def grid(data: Family) -> Table:
    """Ours: all pairs, with and without regularised evaluation."""
    rows = []
    lams = sorted({key.lam for key in data.members if key.scheme == "md-vi"})
    for how in ("regularised", "plain"):
        members = data.where(how)
        for tau in sorted({key.tau for key in members}, reverse=True):
            levels = {
                key.lam: _level(data, curve) for key, curve in members.items() if key.tau == tau
            }
            row = {"evaluation": how, "τ": f"{tau:g}"}
            row |= {f"λ = {lam:g}": f"{levels[lam]:.2g}" if lam in levels else "" for lam in lams}
            rows.append(row)
    first, last = data.iteration[late_in(data.iteration)][[0, -1]]
    return Table(
        f"{ERROR} (with the entropy), mean of k = {first:,.0f} to {last:,.0f}; rows have an "
        "optimum of their own: compare values along a row",
        rows,
        folded=True,
    )


def beside_bounds(data: Family) -> CurvesFigure | None:
    """The theorems beside what they bound; and what they would give for MoVI."""
    movi, curves = _reference(data, "movi"), []
    if movi is not None:
        colour = SCHEMES["movi"].colour
        curves.append(Line(Style("MoVI, loss", colour), movi.loss))
        curves.append(Line(Style("MoVI, if Theorem 1 covered it", colour, (2, 2)), movi.bound))
    for i, tau in enumerate((0.0, _fixed_tau(data))):
        members = {} if tau is None else data.where("regularised", tau=tau)
        if not members:
            continue
        key = min(members, key=lambda member: (abs(member.lam - 0.1), member.lam))
        colour, _ = cycled(i + 1)
        name = f"λ = {key.lam:g}, τ = {key.tau:g}"
        curves.append(Line(Style(f"{name}: loss", colour), members[key].loss))
        curves.append(Line(Style(f"{name}: Theorem {i + 1}", colour, (7, 3)), members[key].bound))
    if not curves:
        return None
    title = "The theorems beside the losses"
    subtitle = "means over MDPs of max |q* − qπ|, and of the bounds on it"
    guide = Line(Style("slope −1/2", MUTED, (1, 3)), 0.5 / np.sqrt(data.iteration))
    return over_k(data, "family_bounds", title, subtitle, "loss or bound", curves, guide)


def _too_short(claim: str, data: Family) -> Verdict | None:
    if data.iteration[-1] < SHORTEST:
        seen = f"The run has {data.iteration[-1]:,.0f} iterations; {SHORTEST} are needed to judge."
        return Verdict(claim, seen, None)
    return None


def _first(data: Family, curve: Measured, level: float) -> float:
    """The first iteration that was kept with an error of at most this."""
    reached = np.flatnonzero(curve.mean <= level)
    return float(data.iteration[reached[0]]) if reached.size else np.inf


def _later(times: Sequence[float]) -> bool:
    """Whether none comes much before the one before it, and the last after the first."""
    return all(b * SLACK >= a for a, b in pairwise(times)) and times[-1] > SLACK * times[0]


def kl_converges(data: Family) -> Verdict:
    """Their Figure 1, left."""
    claim = (
        "“We observe that AVI doesn't converge, while DA-VI(λ,0) does, and that higher values of λ "
        f"slow down the convergence” ({PAPER}, Figure 1, left)."
    )
    avi, members = _reference(data, "avi"), data.where("regularised", tau=0.0)
    if avi is None or len(members) < 2:
        return Verdict(claim, "The data do not have AVI and two values of λ with τ = 0.", None)
    if short := _too_short(claim, data):
        return short
    k, level = data.iteration, _level(data, avi)
    early = float(avi.mean[early_in(k)].mean())
    levels = {key.lam: _level(data, curve) for key, curve in sorted(members.items())}
    half = {key.lam: _first(data, curve, level / 2) for key, curve in sorted(members.items())}
    slower = _later(list(half.values()))
    listed = "; ".join(
        f"λ = {lam:g}: {number(levels[lam])}, half of AVI's at k = {number(half[lam])}"
        for lam in levels
    )
    seen = (
        f"Over the last half AVI's relative error is {number(level)}, {number(level / early)} × "
        f"its mean between k = {k[-1] / 100:,.0f} and {k[-1] / 10:,.0f}. {listed}."
    )
    converges = max(levels.values()) <= HIGH * level
    return Verdict(claim, seen, level > FALLING * early and converges and slower)


def _holding(claim: str, members: dict[Member, Measured], other: str) -> Verdict:
    if not members:
        return Verdict(claim, "The data do not have such runs.", None)
    broken = [key for key, curve in members.items() if (curve.holds < 1).any()]
    tight = min(
        float((curve.bound / np.maximum(curve.loss, 1e-300)).min()) for curve in members.values()
    )
    worst = {f"λ = {key.lam:g}, τ = {key.tau:g}" for key in broken}
    if broken:
        seen = f"Broken for {', '.join(sorted(worst))}."
    else:
        seen = (
            f"It holds for all {len(members)} pairs of weights, on every MDP, at every iteration "
            f"that was kept; mean bounds are at least {number(tight)} × the mean losses."
        )
    return Verdict(claim, f"{seen} {other}".strip(), not broken, affirmed=HOLDS)


def theorem_1_holds(data: Family) -> Verdict:
    """λ > 0 and τ = 0."""
    claim = (
        "For λ > 0 and τ = 0 the loss is below a bound with “a linear dependency to the horizon” "
        "and “the norm of the average of these estimation errors” "
        f"({PAPER}, Theorem 1, ‖·‖∞ form)."
    )
    members, avi, other = data.where("regularised", tau=0.0), _reference(data, "avi"), ""
    if members and avi is not None:
        last = min(float(curve.bound[-1]) for curve in members.values())
        other = f"Bounds end at {number(last)} and more, that of AVI at {number(avi.bound[-1])}."
    return _holding(claim, members, other)


def beta_trades(data: Family) -> Verdict:
    """Their Figure 1, right."""
    claim = (
        "“Higher values of β lead to better asymptotic performance, but at the cost of slower "
        f"initial convergence rate” ({PAPER}, Figure 1, right; β = λ/(λ + τ), a small τ)."
    )
    tau = _fixed_tau(data)
    members = {} if tau is None else data.where("regularised", tau=tau)
    if len(members) < 3:
        return Verdict(claim, "The data do not have three values of λ with one τ > 0.", None)
    if short := _too_short(claim, data):
        return short
    members = dict(sorted(members.items()))
    length = data.iteration[-1] / LONG
    asymptotic = [
        _level(data, curve) for key, curve in members.items() if key.lam / key.tau + 1 <= length
    ]
    times = [_first(data, curve, NEAR * _level(data, curve)) for curve in members.values()]
    listed = "; ".join(
        f"β = {_beta(key):.4g}: {number(_level(data, curve))}, near it from k = {number(time)} on"
        for (key, curve), time in zip(members.items(), times)
    )
    seen = (
        f"Relative error over the last half with τ = {tau or 0:g}: {listed}. Asymptotic are "
        f"the {len(asymptotic)} whose average is shorter than a quarter of the run."
    )
    if len(asymptotic) < 2:
        return Verdict(claim, seen, None)
    better = all(a > b for a, b in pairwise(asymptotic))
    return Verdict(claim, seen, better and _later(times[: len(asymptotic)]))


def theorem_2_holds(data: Family) -> Verdict:
    """τ > 0."""
    claim = (
        "For τ > 0 the loss to the regularised optimum is below a bound in which “each error term "
        "is not an iteration error, but a moving average of past iteration errors” "
        f"({PAPER}, Theorem 2, ‖·‖∞ form)."
    )
    members = {key: curve for key, curve in data.where("regularised").items() if key.tau > 0}
    return _holding(claim, members, "")


def plain_beside(data: Family) -> Finding:
    """The bit that the theorems do not cover."""
    about = (
        "A plain evaluation, MoVI's, which the theorems do not cover: “we only consider a "
        "regularized evaluation for the analysis”."
    )
    plain, seen = data.where("plain"), []
    pairs = {
        key: (curve, data.members.get(key._replace(evaluation="regularised")))
        for key, curve in plain.items()
    }
    ratios = {
        key: _level(data, curve) / level
        for key, (curve, other) in pairs.items()
        if other is not None and (level := _level(data, other)) > 0
    }
    if ratios:
        worst = max(ratios, key=lambda key: ratios[key])
        seen.append(
            f"Over the last half its error is {number(float(np.median(list(ratios.values()))))} × "
            f"that of the regularised one in the median over the grid, at most "
            f"{number(ratios[worst])} × (λ = {worst.lam:g}, τ = {worst.tau:g})."
        )
    movi, sql = _reference(data, "movi"), _reference(data, "sql")
    if movi is not None:
        seen.append(
            f"MoVI's loss ends at {number(movi.loss[-1])}; Theorem 1 with λ = 0, if it covered it, "
            f"would give {number(movi.bound[-1])}, and is no less than the loss on "
            f"{100 * float(movi.holds.min()):.0f} % of the MDPs at every iteration that was kept."
        )
    if sql is not None and movi is not None:
        seen.append(f"SQL, which is covered as a limit, ends at {number(sql.loss[-1])}.")
    return Finding(about, " ".join(seen) or "The data do not have such runs.")
