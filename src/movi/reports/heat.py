"""Heat maps: a panel for each variant, a cell with its value for each pair of settings."""

import math
from dataclasses import dataclass
from typing import Any

from movi.reports.charts import altair, finished
from movi.reports.series import INK

LIGHT, DEEP = "#e8f1f8", "#08407a"
"""The colours of the largest and of the smallest value, on a light and on a dark page."""
CELL = 44
"""Width of a cell in print, in points; it is three quarters as high."""


@dataclass(frozen=True)
class Cell:
    """One value."""

    panel: str
    """The variant."""
    x: str
    """The column."""
    y: str
    """The row."""
    value: float
    """At least 0."""


@dataclass(frozen=True)
class HeatMap:
    """Cells, and the words around them."""

    name: str
    """File name without its ending, and anchor on the page."""
    title: str
    """The heading."""
    subtitle: str
    """What is drawn, in a line."""
    x_title: str
    """What the columns are."""
    y_title: str
    """What the rows are."""
    cells: tuple[Cell, ...]
    """At least one; columns and rows in the order in which they occur."""
    note: str = ""
    """What else a reader must know."""

    @property
    def caption(self) -> str:
        """What a reader must know to read the picture."""
        said = "Darker is less; colours are on a logarithmic scale."
        return f"{said} {self.note}".strip()

    @property
    def alt(self) -> str:
        """The picture in words, for those who cannot see it."""
        least = min(self.cells, key=lambda cell: cell.value)
        most = max(self.cells, key=lambda cell: cell.value)

        def said(cell: Cell) -> str:
            return (
                f"{cell.value:.2g} ({cell.panel}, {self.x_title} {cell.x}, {self.y_title} {cell.y})"
            )

        return f"Heat map, {self.subtitle}: from {said(least)} to {said(most)}."

    def spec(self, *, interactive: bool) -> dict[str, Any]:
        """The Vega-Lite specification: for the page (hover), or for print (title)."""
        alt = altair()
        panels = list(dict.fromkeys(cell.panel for cell in self.cells))
        columns = list(dict.fromkeys(cell.x for cell in self.cells))
        rows = list(dict.fromkeys(cell.y for cell in self.cells))
        sizes = [cell.value for cell in self.cells if cell.value > 0]
        low, high = (min(sizes), max(sizes)) if sizes else (0.1, 1.0)
        middle = math.sqrt(low * high)
        data = [
            {"p": c.panel, "x": c.x, "y": c.y, "v": max(c.value, low), "t": f"{c.value:.2g}"}
            for c in self.cells
        ]
        x = alt.X("x:O", sort=columns, axis=alt.Axis(title=self.x_title, labelAngle=0))
        y = alt.Y("y:O", sort=rows, axis=alt.Axis(title=self.y_title))
        colours = alt.Scale(type="log", domain=[low, high], range=[DEEP, LIGHT], clamp=True)
        tooltip = [
            alt.Tooltip("x:N", title=self.x_title),
            alt.Tooltip("y:N", title=self.y_title),
            alt.Tooltip("t:N", title="value"),
        ]
        cells = alt.Chart().mark_rect(stroke="white", strokeWidth=1)
        cells = cells.encode(x=x, y=y, color=alt.Color("v:Q", scale=colours, legend=None))
        if interactive:
            cells = cells.encode(tooltip=tooltip)
        written = alt.condition(f"datum.v < {middle}", alt.value("white"), alt.value("#1c2734"))
        texts = alt.Chart().mark_text(fontSize=11).encode(x=x, y=y, text="t:N", color=written)
        chart = alt.layer(cells, texts).properties(
            width=CELL * len(columns), height=CELL * 3 / 4 * len(rows)
        )
        header = alt.Header(title=None, labelFontSize=13, labelColor=INK)
        chart = chart.facet(
            column=alt.Column("p:N", sort=panels, header=header), data=alt.NamedData("all")
        )
        spec = finished(chart, self, legend_columns=1, interactive=interactive, sized=False)
        spec["datasets"] = {"all": data}
        return spec
