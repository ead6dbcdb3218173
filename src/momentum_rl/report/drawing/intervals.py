"""Estimates with their intervals, one row for each algorithm and one panel for each statistic."""

from dataclasses import dataclass
from typing import Any

from momentum_rl.report.drawing.figure import Figure, Row, altair, finished
from momentum_rl.report.drawing.numbers import share
from momentum_rl.report.drawing.styles import INK, MUTED, Style
from momentum_rl.report.statistics import Estimate

WIDTH, LINE = 230, 34
"""Of a panel, and of a row in it, in points."""
SHARE = "(datum.value < 0 ? '−' : '') + format(abs(100 * datum.value), ',.0f') + ' %'"
"""How shares are written on the axis."""


@dataclass(frozen=True)
class Statistic:
    """A panel: a share of each algorithm, and the value that means no difference."""

    title: str
    none: float
    estimates: tuple[tuple[Style, Estimate], ...]
    """At least one; the same algorithms in the same order in every panel."""


@dataclass(frozen=True)
class IntervalsFigure(Figure):
    """Points with intervals, panel by panel."""

    panels: tuple[Statistic, ...]

    @property
    def styles(self) -> list[Style]:
        """The rows."""
        return [style for style, _ in self.panels[0].estimates]

    def remarks(self) -> list[str]:
        """What the lines are."""
        parts = ["Lines are 95 % bootstrap intervals over runs; the grey line is no difference."]
        if any(e.low is None for panel in self.panels for _, e in panel.estimates):
            parts.append("A point of single runs has no interval.")
        return parts

    @property
    def alt(self) -> str:
        """Every estimate."""
        said = "; ".join(
            f"{panel.title}: "
            + ", ".join(f"{style.label} {share(e.value)}" for style, e in panel.estimates)
            for panel in self.panels
        )
        return f"Points with intervals, {self.subtitle}. {said}."

    def numbers(self) -> list[Row]:
        """A row for each point."""
        return [
            {
                "statistic": panel.title,
                "algorithm": style.label,
                "value": e.value,
                "low": e.low,
                "high": e.high,
            }
            for panel in self.panels
            for style, e in panel.estimates
        ]

    def spec(self, *, interactive: bool) -> dict[str, Any]:
        """The Vega-Lite specification: for the page (hover), or for print (title)."""
        alt = altair()
        names = [style.label for style in self.styles]
        y = alt.Y("c:N", sort=names, axis=alt.Axis(title=None, domain=False, ticks=False))
        x = alt.X("v:Q", scale=alt.Scale(zero=False), axis=alt.Axis(title=None, labelExpr=SHARE))
        colours = alt.Scale(domain=names, range=[style.colour for style in self.styles])
        colour = alt.Color("c:N", scale=colours, legend=None)
        tooltip = [alt.Tooltip("c:N", title="algorithm"), alt.Tooltip("t:N", title="value")]
        none = alt.Chart().mark_rule(color=MUTED, strokeWidth=1).encode(x="n:Q")
        spread = alt.Chart().mark_rule(strokeWidth=2.4).encode(x="l:Q", x2="h:Q", y=y, color=colour)
        point = alt.Chart().mark_point(filled=True, size=90, opacity=1)
        point = point.encode(x=x, y=y, color=colour)
        if interactive:
            point = point.encode(tooltip=tooltip)
        chart = alt.layer(none, spread, point).properties(width=WIDTH, height=LINE * len(names))
        order = [panel.title for panel in self.panels]
        header = alt.Header(title=None, labelFontSize=13, labelColor=INK, labelAnchor="start")
        chart = chart.facet(
            column=alt.Column("p:N", sort=order, header=header), data=alt.NamedData("all")
        ).resolve_scale(x="independent")
        spec = finished(chart, self, legend_columns=1, interactive=interactive, sized=False)
        spec["datasets"] = {"all": self._rows()}
        return spec

    def _rows(self) -> list[Row]:
        rows = []
        for panel in self.panels:
            for style, e in panel.estimates:
                row: Row = {"p": panel.title, "c": style.label, "n": panel.none, "v": e.value}
                row |= {"l": e.value if e.low is None else e.low}
                row |= {"h": e.value if e.high is None else e.high}
                rows.append({**row, "t": ranged(e)})
        return rows


def ranged(estimate: Estimate) -> str:
    """A share between 0 and 1 with its interval, if it has one.

    >>> ranged(Estimate(0.5)), ranged(Estimate(0.5, 0.25, 0.75))
    ('50 %', '50 % [25 %, 75 %]')
    """
    if estimate.low is None or estimate.high is None:
        return share(estimate.value)
    return f"{share(estimate.value)} [{share(estimate.low)}, {share(estimate.high)}]"
