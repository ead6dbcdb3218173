"""Heat maps: a panel for each variant, a tile with its value for each pair of settings."""

import math
from dataclasses import dataclass

from momentum_rl.report.figure import Figure, Row, channel, tooltip
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
    """Tiles in rows and columns, panel by panel; darker is less, by its logarithm."""

    x_title: str
    y_title: str
    tiles: tuple[Tile, ...]
    """At least one; columns and rows in the order in which they occur."""

    def numbers(self) -> list[Row]:
        """A row for each tile."""
        return [
            {"panel": c.panel, self.x_title: c.x, self.y_title: c.y, "value": c.value}
            for c in self.tiles
        ]

    def chart(self) -> Row:
        """Tiles with their values."""
        sizes = [tile.value for tile in self.tiles if tile.value > 0] or [0.1, 1.0]
        low, high = min(sizes), max(sizes)
        data = [
            {"p": c.panel, "a": c.x, "b": c.y, "v": max(c.value, low), "t": f"{c.value:.2g}"}
            for c in self.tiles
        ]
        panels, columns, rows = (list(dict.fromkeys(row[name] for row in data)) for name in "pab")
        x_axis, y_axis = {"title": self.x_title, "labelAngle": 0}, {"title": self.y_title}
        place = {
            "x": channel("a", "ordinal", sort=columns, axis=x_axis),
            "y": channel("b", "ordinal", sort=rows, axis=y_axis),
        }
        colours = {"type": "log", "domain": [low, high], "range": [DEEP, LIGHT], "clamp": True}
        tile = {
            "color": channel("v", scale=colours, legend=None),
            "tooltip": tooltip({"a": self.x_title, "b": self.y_title, "t": "value"}),
        }
        white = {"test": f"datum.v < {math.sqrt(low * high)}", "value": "white"}
        ink = {"condition": white, "value": "#1c2734"}
        square = {"type": "rect", "stroke": "white", "strokeWidth": 1}
        number = {"text": channel("t", "nominal"), "color": ink}
        layers = [
            {"mark": square, "encoding": tile},
            {"mark": {"type": "text", "fontSize": 11}, "encoding": number},
        ]
        size = {"width": TILE * len(columns), "height": TILE * 3 / 4 * len(rows)}
        header = {"title": None, "labelFontSize": 13, "labelColor": INK}
        return {
            "data": {"values": data},
            "facet": {"column": channel("p", "nominal", sort=panels, header=header)},
            "spec": {"encoding": place, "layer": layers, **size},
        }
