"""The paper's tabular figures, each defined once: a function from checked data to a ``LineFigure``.

A function returns None when the data lack what it draws.
"""

import numpy as np

from movi.reports.drawing.lines import Curve, LineFigure
from movi.reports.drawing.numbers import Array
from movi.reports.drawing.styles import BLUE, INK, MUTED, SCHEMES, Style, cycled, scheme_style
from movi.reports.tabular.columns import MEAN_BETA_LOSS, MOVI_LOSSES, SCHEME_BOUNDS
from movi.reports.tabular.tables import ASSUMED, ONE_MORE, PRINTED, Assumptions, Bounds, Compare
from movi.reports.tabular.verdicts import constant_betas, present

# Only letters that the figures' font has: one that is missing (‖, ₁, a bar over ε) would turn the
# whole line into another font in print. So norms are written out.
LOSS_L1 = "|q* − qπ| averaged over (s, a)"
LOSS_SUP = "max |q* − qπ|"
ITERATION = "iteration k"


def _scheme_order(names: list[str]) -> list[str]:
    known = [name for name in SCHEMES if name in names]
    return known + [name for name in names if name not in SCHEMES]


def movi_vs_avi(data: Compare) -> LineFigure | None:
    """Section 4, "Illustration of the convergence of MoVI"."""
    if not {"avi", "movi"} <= data.mean.keys():
        return None
    return LineFigure(
        name="movi_vs_avi",
        title="MoVI against AVI",
        subtitle=f"mean ± standard deviation over MDPs of {LOSS_L1}",
        x_title=ITERATION,
        y_title="error, average |q* − qπ|",
        x=data.iteration,
        curves=tuple(
            Curve(SCHEMES[name], data.mean[name], data.std[name]) for name in ("avi", "movi")
        ),
    )


def schemes_mean(data: Compare) -> LineFigure:
    """Section 7.1, "Error on the policy value of different ADP schemes"."""
    names = _scheme_order(list(data.mean))
    return LineFigure(
        name="schemes_mean",
        title="The four schemes: mean error" if len(names) == 4 else "The schemes: mean error",
        subtitle=f"mean over MDPs of {LOSS_L1}",
        x_title=ITERATION,
        y_title="mean error, average |q* − qπ|",
        x=data.iteration,
        curves=tuple(Curve(scheme_style(s, i), data.mean[s]) for i, s in enumerate(names)),
    )


def schemes_std(data: Compare) -> LineFigure:
    """Appendix, the same over MDPs: standard deviation."""
    names = _scheme_order(list(data.std))
    return LineFigure(
        name="schemes_std",
        title="The four schemes: spread" if len(names) == 4 else "The schemes: spread",
        subtitle=f"standard deviation over MDPs of {LOSS_L1}",
        x_title=ITERATION,
        y_title="standard deviation of the error",
        x=data.iteration,
        curves=tuple(Curve(scheme_style(s, i), data.std[s]) for i, s in enumerate(names)),
    )


def _guide(n: Array, highest: float) -> Curve:
    """How a mean of centred errors falls."""
    return Curve(Style("slope −1/2", MUTED), 1.35 * highest * np.sqrt(n[0] / n))


def _as_printed(data: Assumptions, which: str, name: str, short: str) -> LineFigure | None:
    parts = data.of(PRINTED)
    if not parts:
        return None
    j, part = next(iter(parts.items()))  # the smallest
    curves = part.mean if which == "mean" else part.std
    styles = {
        steps: Style(f"l = {steps}", *((INK, ()) if i == 0 else cycled(i)))
        for i, steps in enumerate(curves)
    }
    words = "mean" if which == "mean" else "standard deviation"
    return LineFigure(
        name=name,
        title=f"The assumption check as printed: {'mean' if which == 'mean' else 'spread'}",
        subtitle=f"{words} over MDPs of ε(l, N), restarted from q after j = {j:,} iterations",
        x_title="number of restarts N",
        y_title=f"{short} of ε(l, N)",
        x=part.n,
        curves=tuple(Curve(styles[steps], curve) for steps, curve in curves.items()),
        guide=_guide(part.n, max(float(curve[0]) for curve in curves.values())),
    )


def assumption_mean(data: Assumptions) -> LineFigure | None:
    """Section 7.1, "Evolution of the empirical weighted average error"."""
    return _as_printed(data, "mean", "assumption_mean", "mean")


def assumption_std(data: Assumptions) -> LineFigure | None:
    """Appendix, the same: standard deviation over Garnets."""
    return _as_printed(data, "std", "assumption_std", "std")


def _by_j(data: Assumptions, product: tuple[str, str], name: str, title: str) -> LineFigure | None:
    """The smallest l > 0 at every j, and l = 0 beside it, which is centred for certain."""
    parts = data.of(product)
    lengths = [steps for part in parts.values() for steps in part.mean if steps > 0]
    if not lengths or len({part.n.size for part in parts.values()}) > 1:
        return None
    steps = min(lengths)
    first = next(iter(parts))
    curves = []
    if 0 in parts[first].mean:
        curves.append(Curve(Style(f"l = 0, j = {first:,}", INK), parts[first].mean[0]))
    for i, (j, part) in enumerate(parts.items(), start=1):
        if steps in part.mean:
            curves.append(Curve(Style(f"l = {steps}, j = {j:,}", *cycled(i)), part.mean[steps]))
    return LineFigure(
        name=name,
        title=title,
        subtitle="mean over MDPs of ε(l, N), iteration j repeated from the tables before it",
        x_title="number of restarts N",
        y_title="mean of ε(l, N)",
        x=parts[first].n,
        curves=tuple(curves),
        guide=_guide(parts[first].n, max(float(curve.values[0]) for curve in curves)),
    )


def assumption_assumed(data: Assumptions) -> LineFigure | None:
    """Ours: the check with Assumption 1's own indices, by j."""
    title = "The assumption's own indices: what j changes"
    return _by_j(data, ASSUMED, "assumption_assumed", title)


def assumption_one_more(data: Assumptions) -> LineFigure | None:
    """Ours: with one kernel more, which Proposition 1 needs."""
    title = "One kernel more, as Proposition 1 needs it"
    return _by_j(data, ONE_MORE, "assumption_one_more", title)


def bounds(data: Bounds) -> LineFigure | None:
    """Section 4: MoVI's loss beside each of its bounds."""
    pairs = present(data, {"movi"})
    if not pairs:
        return None
    losses = [name for name in MOVI_LOSSES if name in {pair.loss for pair in pairs}]
    return LineFigure(
        name="bounds",
        title="MoVI: the loss and its bounds",
        subtitle="means over MDPs",
        x_title=ITERATION,
        y_title="loss or bound",
        x=data.iteration,
        curves=(
            *(Curve(MOVI_LOSSES[name], data.columns[name]) for name in losses),
            *(Curve(pair.style, data.columns[pair.bound]) for pair in pairs),
        ),
    )


def bounds_schemes(data: Bounds) -> LineFigure | None:
    """Sections 2, 4 and 6: how the bounds of the schemes evolve, in sup-norm."""
    columns = {s: column for s, column in SCHEME_BOUNDS.items() if column in data.columns}
    if len(columns) < 2:
        return None
    return LineFigure(
        name="bounds_schemes",
        title="The bounds of the schemes",
        subtitle=f"mean over MDPs of the bound on {LOSS_SUP}",
        x_title=ITERATION,
        y_title=f"bound on {LOSS_SUP}",
        x=data.iteration,
        curves=tuple(
            Curve(SCHEMES[s], data.columns[columns[s]]) for s in _scheme_order(list(columns))
        ),
    )


def constant_beta(data: Bounds) -> LineFigure | None:
    """Section 4: what a constant β leaves of the error."""
    constant = constant_betas(data)
    if MEAN_BETA_LOSS not in data.columns or not constant:
        return None
    curves = [Curve(Style("β = k/(k+1)", BLUE), data.columns[MEAN_BETA_LOSS])]
    for i, (beta, values) in enumerate(constant.items(), start=1):
        curves.append(Curve(Style(f"β = {beta}", *cycled(i)), values))
    return LineFigure(
        name="constant_beta",
        title="MoVI with a constant β",
        subtitle=f"mean over MDPs of {LOSS_SUP}",
        x_title=ITERATION,
        y_title=f"mean of {LOSS_SUP}",
        x=data.iteration,
        curves=tuple(curves),
    )
