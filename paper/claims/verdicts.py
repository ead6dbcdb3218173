"""The paper's claims about tables, each judged by a pure function of the data.

Every threshold is a named constant with its reason; every function uses every iteration, not the
thinned curves that are drawn. Windows are relative to the length K of the run, so that a shorter
run is judged by the same rule:

    #   k:      1 ......... K/100 ......... K/10 ......... K/2 ......... K
    #                         |--- early ---|               |--- late ---|
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from momentum_rl.report.style import (
    AMBER,
    BLUE,
    GREEN,
    PURPLE,
    SKY,
    VERMILLION,
    Array,
    Style,
)
from paper.claims.drawing import SCHEMES, number
from paper.claims.tables import Bounds, Compare
from paper.verdict import HOLDS, Finding, Verdict


@dataclass(frozen=True)
class Bound:
    """A column that bounds another one from above."""

    scheme: str
    """Whose loss it bounds."""
    loss: str
    bound: str
    statement: str
    """Where the paper states it."""
    style: Style
    """How the bound is drawn among the bounds of its own scheme."""


PROPOSITION = "Proposition 1"
_GREEN, _PURPLE = (
    Style("Theorem 1, sup", GREEN, (7, 3)),
    Style("sup-norm form", PURPLE, (9, 3, 2, 3)),
)
_AMBER, _RED = Style("Corollary 1, L1", AMBER, (2, 2)), Style(PROPOSITION, VERMILLION, (12, 4))
BOUNDS = (
    Bound("movi", "loss_sup", "theorem_1_sup", "Theorem 1", _GREEN),
    Bound("movi", "loss_sup", "supremum", "the sup-norm bound", _PURPLE),
    Bound("movi", "loss_l1", "corollary_1", "Corollary 1", _AMBER),
    Bound("movi", "loss_sup", "proposition_1", PROPOSITION, _RED),
    Bound("avi", "avi_loss_sup", "avi_bound", "the AVI bound", SCHEMES["avi"]),
    Bound("sql", "sql_loss_sup", "sql_bound", "the SQL/DPP bound", SCHEMES["sql"]),
    Bound("dpp", "dpp_loss_sup", "dpp_bound", "the SQL/DPP bound", SCHEMES["dpp"]),
)
"""Every bound that the report knows; one whose two columns are not both in the file is left out."""

MOVI_LOSSES: Mapping[str, Style] = {
    "loss_sup": Style("loss, sup", BLUE),
    "loss_l1": Style("loss, L1", SKY, (4, 2)),
}
"""MoVI's own losses, which its bounds are drawn above."""

SCHEME_BOUNDS: Mapping[str, str] = {
    "movi": "supremum",
    "avi": "avi_bound",
    "sql": "sql_bound",
    "dpp": "dpp_bound",
}
"""The bound that stands for each scheme where schemes are compared: all in sup-norm."""

MEAN_BETA_LOSS = "loss_sup"
"""The loss of MoVI with β_k = k/(k+1)."""

CONSTANT_BETA_LOSS, CONSTANT_BETA_BOUND = "constant_beta_loss_", "constant_beta_bound_"
"""What precedes β in the names of the columns of MoVI with that constant β."""

LOSS_LIMIT = "loss_limit"
"""What no policy's loss exceeds."""

HOLDS_SUFFIX = "_holds"
"""What follows a bound's name in the column that says in which share of the MDPs it held."""

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
NOTHING, BROKEN = "says nothing here", "Broken"
"""Of a bound above what any policy can lose; and of one below a loss."""
ROUNDING = 1e-9
"""Relative slack when a loss is compared with its bound."""


def early_in(k: Array) -> NDArray[np.bool_]:
    """The iterations after the start."""
    return (k > k[-1] / 100) & (k <= k[-1] / 10)


def late_in(k: Array) -> NDArray[np.bool_]:
    """The last half."""
    return k > k[-1] / 2


def fall_of(k: Array, curve: Array) -> float:
    """The late mean as a share of the early mean."""
    early = float(curve[early_in(k)].mean())
    late = float(curve[late_in(k)].mean())
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
    if k[-1] < SHORTEST or not early_in(k).any() or late_in(k).sum() < 3:
        seen = f"The run has {k[-1]:,.0f} iterations; at least {SHORTEST} are needed to judge."
        return Verdict(claim, seen, None)
    return None


def momentum_converges(data: Compare) -> Verdict:
    """Section 4: AVI stays high and oscillates, MoVI goes to zero."""
    claim = (
        "“AVI oscillates with high error, while MoVI converges to q*” (Section 4.1, "
        "fig:movi-bound)."
    )
    k = data.iteration
    if undecided := _undecided(claim, k, data.mean, {"avi", "movi"}):
        return undecided
    avi, movi = data.mean["avi"], data.mean["movi"]
    late = late_in(k)
    avi_fall, movi_fall, turning = fall_of(k, avi), fall_of(k, movi), _turning(avi[late])
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
        "“We observe an almost identical behaviour for MoVI, DPP, and SQL. They all converge "
        "towards v* at roughly the same speed, while AVI oscillates around a sub-optimal policy” "
        "(Section 7.1, fig:adp)."
    )
    k, alike = data.iteration, ("movi", "sql", "dpp")
    if undecided := _undecided(claim, k, data.mean, {"avi", *alike}):
        return undecided
    late = late_in(k)
    avi = float(data.mean["avi"][late].mean())
    small = max(NEGLIGIBLE * avi, np.finfo(float).tiny)
    apart = max(
        max(means) / min(means)
        for rows in _windows(k)
        if (means := [float(data.mean[s][rows].mean()) + small for s in alike])
    )
    reached = {s: np.flatnonzero(data.mean[s] <= HIGH * avi) for s in alike}
    falls = [fall_of(k, data.mean[s]) for s in alike]
    worst = max(float(data.mean[s][late].mean()) for s in alike)
    seen = (
        f"The three stay within a factor of {number(apart)} of each other in every half decade "
        f"from k = 10. "
    )
    if all(places.size for places in reached.values()):
        first = {s: int(k[places[0]]) for s, places in reached.items()}
        together = max(first.values()) <= ALIKE * min(first.values())
        listed = ", ".join(f"{value:,} ({_label(s)})" for s, value in first.items())
        seen += f"They first reach a tenth of AVI's late error at k = {listed}. "
    else:
        together = False
        never = ", ".join(_label(s) for s, places in reached.items() if not places.size)
        seen += f"A tenth of AVI's late error is never reached by {never}. "
    seen += (
        f"Over the last half AVI's error is {number(avi)}, the largest of the others "
        f"{number(worst)}."
    )
    avi_stays = fall_of(k, data.mean["avi"]) > FALLING and worst <= HIGH * avi
    return Verdict(claim, seen, apart <= ALIKE and together and max(falls) <= FALLING and avi_stays)


def averaging_on_a_family(data: Compare) -> Finding:
    """Whether averaging still wins where mixing is slow: AVI's late error beside the others'."""
    about = "Does averaging win on this family too? The paper has Garnets only."
    k, curves = data.iteration, data.mean
    late = {s: float(curve[late_in(k)].mean()) for s, curve in curves.items()}
    levels = ", ".join(f"{number(x)} ({_label(s)})" for s, x in late.items())
    seen = f"Mean error over the last half of {k[-1]:,.0f} iterations: {levels}."
    if "avi" in late and len(late) > 1:
        best = min((s for s in late if s != "avi"), key=late.__getitem__)
        won = [int(i) for i in k[curves[best] < curves["avi"]]]
        if late[best] < late["avi"]:
            seen += f" {_label(best)} is below AVI by a factor of "
            seen += f"{number(late['avi'] / late[best])}" if late[best] else "any size"
            seen += f", for good from k = {_for_good(won, int(k[-1])):,} on."
        else:
            seen += f" AVI is below the others; {_label(best)} is the nearest."
    return Finding(about, seen)


def _for_good(won: list[int], last: int) -> int:
    """The iteration from which on all are among these."""
    for k in reversed(won):
        if k != last:
            break
        last -= 1
    return last + 1


def present(data: Bounds, schemes: set[str]) -> list[Bound]:
    """The bounds of some schemes whose columns are there."""
    return [
        pair
        for pair in BOUNDS
        if pair.scheme in schemes and {pair.loss, pair.bound} <= data.columns.keys()
    ]


def _hold(claim: str, data: Bounds, pairs: Sequence[Bound]) -> Verdict:
    """Whether bounds are above their losses, and all of them above what any policy can lose."""
    if not pairs:
        return Verdict(claim, "The data do not have a loss with its bound.", None)
    parts, all_hold, empty = [], True, 0
    limit, late = data.columns.get(LOSS_LIMIT), late_in(data.iteration)
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
            tight = float(np.min(bound[positive] / loss[positive])) if positive.any() else np.inf
            parts.append(
                f"{name}: holds at all {loss.size:,} iterations, bound ≥ {number(tight)} × loss"
            )
            over = 0.0 if limit is None else float((bound / limit)[late].min())
            if over > 1:
                empty += 1
                parts[-1] += (
                    f", but over the last half also ≥ {number(over)} × what any policy can lose: "
                    f"{NOTHING}"
                )
    but = NOTHING if empty == len(pairs) else ""
    return Verdict(claim, "; ".join(parts) + ".", all_hold, denied=BROKEN, affirmed=HOLDS, but=but)


def movi_bounds_hold(data: Bounds) -> Verdict:
    """Section 4: Theorem 1 and its consequences."""
    claim = (
        "MoVI's loss is below the bounds of Theorem 1, of its sup-norm form (eq:supremum) and of "
        "Corollary 1 (Section 4)."
    )
    pairs = present(data, {"movi"})
    return _hold(claim, data, [pair for pair in pairs if pair.statement != PROPOSITION])


def proposition_holds(data: Bounds) -> Verdict | None:
    """Section 4: Proposition 1; None without it."""
    claim = (
        "MoVI's loss is below the bound of Proposition 1, under Assumption 1 and with its "
        "probability (Section 4)."
    )
    pairs = [pair for pair in present(data, {"movi"}) if pair.statement == PROPOSITION]
    return _hold(claim, data, pairs) if pairs else None


def scheme_bounds_hold(data: Bounds) -> Verdict:
    """Sections 2 and 6: the bounds of AVI, SQL and DPP."""
    claim = (
        "The losses of AVI (Section 2, eq:vi-bound), SQL and DPP (Section 6, “they both satisfy”) "
        "are below their bounds."
    )
    return _hold(claim, data, present(data, {"avi", "sql", "dpp"}))


def averaging_shrinks_bound(data: Bounds) -> Verdict:
    """Section 4: errors compensate in MoVI's bound and not in AVI's."""
    claim = (
        "MoVI's bound has “a sum of errors, that can then compensate, which is not the case in "
        "AVI” (Section 4.1), whose bound has the largest error so far, which “can be high even if "
        "each ε_k is zero-mean” (Section 2)."
    )
    bounds = {s: data.columns[c] for s, c in SCHEME_BOUNDS.items() if c in data.columns}
    k = data.iteration
    if undecided := _undecided(claim, k, bounds, {"avi", "movi"}):
        return undecided
    falls = {s: fall_of(k, curve) for s, curve in bounds.items()}
    listed = ", ".join(f"{number(falls[s])} × for {_label(s)}" for s in falls)
    seen = (
        f"Mean bound over the last half as a multiple of its mean between k = {k[-1] / 100:,.0f} "
        f"and {k[-1] / 10:,.0f}: {listed}. It ends at {number(bounds['movi'][-1])} for MoVI and "
        f"{number(bounds['avi'][-1])} for AVI."
    )
    return Verdict(claim, seen, falls["movi"] <= FALLING < falls["avi"])


def constant_betas(data: Bounds, prefix: str = CONSTANT_BETA_LOSS) -> dict[str, Array]:
    """The losses or bounds of MoVI with constant β, by β as it is written in the column's name."""
    names = [n for n in data.columns if n.startswith(prefix) and not n.endswith(HOLDS_SUFFIX)]
    return {name.removeprefix(prefix): data.columns[name] for name in sorted(names)}


def constant_beta_leaves_error(data: Bounds) -> Verdict:
    """Section 4.1: the proof holds with a moving average; its bound stays, below AVI's."""
    claim = (
        "“Our proof technique should hold with a constant β too”: the moving average of the errors "
        "“would not vanish asymptotically, even with zero-mean bounded noises ε_k, but this would "
        "still reduce the variance, and improve upon the AVI bound” (Section 4.1). The paper does "
        "not write that bound down; Theorem 1 with a constant β is ours."
    )
    k, constant = data.iteration, constant_betas(data, CONSTANT_BETA_BOUND)
    needed = {"theorem_1_sup", "avi_bound"}
    if not needed <= data.columns.keys() or not constant:
        seen = "The data do not have the bounds of AVI and of MoVI with a constant β and the mean."
        return Verdict(claim, seen, None)
    mean, avi = data.columns["theorem_1_sup"], data.columns["avi_bound"]
    if undecided := _undecided(claim, k, {"movi": mean}, {"movi"}):
        return undecided
    late = late_in(k)
    level, highest = float(mean[late].mean()), float(avi[late].mean())
    levels = {beta: float(curve[late].mean()) for beta, curve in constant.items()}
    losses = {b: float(curve[late].mean()) for b, curve in constant_betas(data).items()}
    held = {b: data.columns[CONSTANT_BETA_BOUND + b + HOLDS_SUFFIX] for b in constant}
    listed = "; ".join(
        f"β = {b}: {number(levels[b])} (loss {number(losses[b])}), "
        + ("holds at every iteration" if (held[b] == 1).all() else "broken")
        for b in constant
    )
    seen = (
        f"Mean bound over the last half: {listed}; β_k = k/(k+1): {number(level)}; "
        f"AVI: {number(highest)}."
    )
    holds = all((share == 1).all() for share in held.values())
    remains = all(level_of >= ALIKE * level for level_of in levels.values())
    improves = all(level_of < highest for level_of in levels.values())
    return Verdict(claim, seen, holds and remains and improves)
