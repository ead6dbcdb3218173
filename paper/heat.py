"""Heat maps: a panel for each variant, a tile with its value for each pair of settings."""

import math
from dataclasses import dataclass
from typing import Any

from momentum_rl.report.figure import Figure, Row, finished, library
from momentum_rl.report.style import INK

LIGHT, DEEP = "#e8f1f8", "#08407a"
"""The colours of the largest and of the smallest value, on a light and on a dark page."""
TILE = 44
"""Width of a tile in print, in points; it is three quarters as high."""


@dataclass(frozen=True)
class Tile:
    """A value of at least 0, in a panel's column x and row y."""

    panel: str
    x: str
    y: str
    value: float


@dataclass(frozen=True)
class HeatMap(Figure):
    """Tiles in rows and columns, panel by panel."""

    x_title: str
    y_title: str
    tiles: tuple[Tile, ...]
    """At least one; columns and rows in the order in which they occur."""

    def remarks(self) -> list[str]:
        """What the colours mean."""
        return ["Darker is less; colours are on a logarithmic scale."]

    def numbers(self) -> list[Row]:
        """A row for each tile."""
        return [
            {"panel": c.panel, self.x_title: c.x, self.y_title: c.y, "value": c.value}
            for c in self.tiles
        ]

    def spec(self, *, interactive: bool) -> dict[str, Any]:
        """The Vega-Lite specification: for the page (hover), or for print (title)."""
        alt = library()
        panels = list(dict.fromkeys(tile.panel for tile in self.tiles))
        columns = list(dict.fromkeys(tile.x for tile in self.tiles))
        rows = list(dict.fromkeys(tile.y for tile in self.tiles))
        sizes = [tile.value for tile in self.tiles if tile.value > 0]
        low, high = (min(sizes), max(sizes)) if sizes else (0.1, 1.0)
        middle = math.sqrt(low * high)
        data = [
            {"p": c.panel, "x": c.x, "y": c.y, "v": max(c.value, low), "t": f"{c.value:.2g}"}
            for c in self.tiles
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
            width=TILE * len(columns), height=TILE * 3 / 4 * len(rows)
        )
        header = alt.Header(title=None, labelFontSize=13, labelColor=INK)
        chart = chart.facet(
            column=alt.Column("p:N", sort=panels, header=header), data=alt.NamedData("all")
        )
        spec = finished(chart, self, [""], interactive=interactive, sized=False)
        spec["datasets"] = {"all": data}
        return spec
