"""The paper's tabular figures, each defined once: a function from checked data to a ``LineFigure``.

A function returns None when the data lack what it draws.
"""

from collections.abc import Iterable, Mapping

import numpy as np

from momentum_rl.report.curves import CurvesFigure
from momentum_rl.report.style import BLUE, INK, MUTED, Array, Style
from paper.claims.drawing import SCHEMES, Line, cycled, log_figure, scheme_style
from paper.claims.tables import (
    ASSUMED,
    ONE_MORE,
    Assumption,
    Assumptions,
    Bounds,
    Compare,
    Family,
)
from paper.claims.verdicts import (
    CONSTANT_BETA_BOUND,
    CONSTANT_BETA_LOSS,
    MEAN_BETA_LOSS,
    MOVI_LOSSES,
    SCHEME_BOUNDS,
    constant_betas,
    present,
)

# Only letters that the figures' font has: one that is missing (‖, ₁, a bar over ε) would turn the
# whole line into another font in print. So norms are written out.
LOSS_L1 = "|q* − qπ| averaged over (s, a)"
LOSS_SUP = "max |q* − qπ|"
ITERATION = "iteration k"


def _scheme_order(names: list[str]) -> list[str]:
    known = [name for name in SCHEMES if name in names]
    return known + [name for name in names if name not in SCHEMES]


def over_k(
    data: Compare | Bounds | Family,
    name: str,
    title: str,
    subtitle: str,
    y: str,
    curves: Iterable[Line],
    guide: Line | None = None,
) -> CurvesFigure:
    """A figure of curves over the iterations of a table."""
    return log_figure(name, title, subtitle, (ITERATION, y), data.iteration, curves, guide)


def movi_vs_avi(data: Compare) -> CurvesFigure | None:
    """Section 4, "Illustration of the convergence of MoVI"."""
    if not {"avi", "movi"} <= data.mean.keys():
        return None
    curves = [Line(SCHEMES[name], data.mean[name], data.std[name]) for name in ("avi", "movi")]
    subtitle = f"mean ± standard deviation over MDPs of {LOSS_L1}"
    y = "error, average |q* − qπ|"
    return over_k(data, "movi_vs_avi", "MoVI against AVI", subtitle, y, curves)


def _schemes(
    data: Compare, values: Mapping[str, Array], name: str, what: str, over: str, y: str
) -> CurvesFigure:
    names = _scheme_order(list(values))
    title = f"The {'four ' if len(names) == 4 else ''}schemes: {what}"
    curves = [Line(scheme_style(s, i), values[s]) for i, s in enumerate(names)]
    return over_k(data, name, title, f"{over} over MDPs of {LOSS_L1}", y, curves)


def schemes_mean(data: Compare) -> CurvesFigure:
    """Section 7.1, "Error on the policy value of different ADP schemes"."""
    y = "mean error, average |q* − qπ|"
    return _schemes(data, data.mean, "schemes_mean", "mean error", "mean", y)


def schemes_std(data: Compare) -> CurvesFigure:
    """Appendix, the same over MDPs: standard deviation."""
    y = "standard deviation of the error"
    return _schemes(data, data.std, "schemes_std", "spread", "standard deviation", y)


def _guide(n: Array, highest: float) -> Line:
    """How a mean of centred errors falls."""
    return Line(Style("slope −1/2", MUTED, (1, 3)), 1.35 * highest * np.sqrt(n[0] / n))


def _as_printed(
    parts: Mapping[int, Assumption], which: str, name: str, short: str
) -> CurvesFigure | None:
    if not parts:
        return None
    j, part = next(iter(parts.items()))  # the smallest
    curves = part.mean if which == "mean" else part.std
    styles = {
        steps: Style(f"l = {steps}", *((INK, ()) if i == 0 else cycled(i)))
        for i, steps in enumerate(curves)
    }
    words = "mean" if which == "mean" else "standard deviation"
    return log_figure(
        name=name,
        title=f"The check as printed up to N = {part.n[-1]:,.0f}: "
        f"{'mean' if which == 'mean' else 'spread'}",
        subtitle=f"{words} over MDPs of ε(l, N), restarted from q after j = {j:,} iterations",
        axes=("number of restarts N", f"{short} of ε(l, N)"),
        x=part.n,
        lines=[Line(styles[steps], curve) for steps, curve in curves.items()],
        guide=_guide(part.n, max(float(curve[0]) for curve in curves.values())),
    )


def assumption_mean(data: Assumptions) -> CurvesFigure | None:
    """Section 7.1, "Evolution of the empirical weighted average error"."""
    return _as_printed(data.paper, "mean", "assumption_mean", "mean")


def assumption_further(data: Assumptions) -> CurvesFigure | None:
    """Ours: the same with more restarts than the paper has."""
    return _as_printed(data.further, "mean", "assumption_further", "mean")


def assumption_std(data: Assumptions) -> CurvesFigure | None:
    """Appendix, the same: standard deviation over Garnets."""
    return _as_printed(data.paper, "std", "assumption_std", "std")


def _by_j(
    data: Assumptions, product: tuple[str, str], name: str, title: str
) -> CurvesFigure | None:
    """The smallest l > 0 at every j, and l = 0 beside it, which is centred for certain."""
    parts = data.of(product)
    lengths = [steps for part in parts.values() for steps in part.mean if steps > 0]
    if not lengths or len({part.n.size for part in parts.values()}) > 1:
        return None
    steps = min(lengths)
    first = next(iter(parts))
    curves = []
    if 0 in parts[first].mean:
        curves.append(Line(Style(f"l = 0, j = {first:,}", INK), parts[first].mean[0]))
    for i, (j, part) in enumerate(parts.items(), start=1):
        if steps in part.mean:
            curves.append(Line(Style(f"l = {steps}, j = {j:,}", *cycled(i)), part.mean[steps]))
    return log_figure(
        name=name,
        title=title,
        subtitle="mean over MDPs of ε(l, N), iteration j repeated from the tables before it",
        axes=("number of restarts N", "mean of ε(l, N)"),
        x=parts[first].n,
        lines=curves,
        guide=_guide(parts[first].n, max(float(curve.values[0]) for curve in curves)),
    )


def assumption_assumed(data: Assumptions) -> CurvesFigure | None:
    """Ours: the check with Assumption 1's own indices, by j."""
    title = "The assumption's own indices: what j changes"
    return _by_j(data, ASSUMED, "assumption_assumed", title)


def assumption_one_more(data: Assumptions) -> CurvesFigure | None:
    """Ours: with one kernel more, which Proposition 1 needs."""
    title = "One kernel more, as Proposition 1 needs it"
    return _by_j(data, ONE_MORE, "assumption_one_more", title)


def bounds(data: Bounds) -> CurvesFigure | None:
    """Section 4: MoVI's loss beside each of its bounds."""
    pairs = present(data, {"movi"})
    if not pairs:
        return None
    losses = [name for name in MOVI_LOSSES if name in {pair.loss for pair in pairs}]
    curves = [Line(MOVI_LOSSES[name], data.columns[name]) for name in losses]
    curves += [Line(pair.style, data.columns[pair.bound]) for pair in pairs]
    title = "MoVI: the loss and its bounds"
    return over_k(data, "bounds", title, "means over MDPs", "loss or bound", curves)


def bounds_schemes(data: Bounds) -> CurvesFigure | None:
    """Sections 2, 4 and 6: how the bounds of the schemes evolve, in sup-norm."""
    columns = {s: column for s, column in SCHEME_BOUNDS.items() if column in data.columns}
    if len(columns) < 2:
        return None
    curves = [Line(SCHEMES[s], data.columns[columns[s]]) for s in _scheme_order(list(columns))]
    title, y = "The bounds of the schemes", f"bound on {LOSS_SUP}"
    return over_k(data, "bounds_schemes", title, f"mean over MDPs of the {y}", y, curves)


def constant_beta(data: Bounds) -> CurvesFigure | None:
    """Section 4: what a constant β leaves of the error, and the bound on it."""
    losses, bounds = (constant_betas(data, p) for p in (CONSTANT_BETA_LOSS, CONSTANT_BETA_BOUND))
    if MEAN_BETA_LOSS not in data.columns or not losses:
        return None
    curves = [Line(Style("β = k/(k+1)", BLUE), data.columns[MEAN_BETA_LOSS])]
    for i, (beta, values) in enumerate(losses.items(), start=1):
        curves.append(Line(Style(f"β = {beta}", *cycled(i)), values))
    if bounds:
        beta, values = max(bounds.items())
        curves.append(Line(Style(f"Theorem 1, β = {beta}", *cycled(len(curves))), values))
    subtitle, y = f"mean over MDPs of {LOSS_SUP}, and a bound on it", f"mean of {LOSS_SUP}"
    return over_k(data, "constant_beta", "MoVI with a constant β", subtitle, y, curves)
