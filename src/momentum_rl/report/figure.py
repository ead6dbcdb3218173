"""What every figure has in common: its words, its look, and the way to files and to the page.

A figure is one Vega-Lite specification, for print. The page draws the same one: page.js removes
the title, takes the page's width, and adds what shows the values of points (``usermeta.hover``).
"""

import csv
import io
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module, resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from momentum_rl.errors import MissingExtra, UserError
from momentum_rl.plumbing.files import write_aside
from momentum_rl.report.style import Style

FORMATS = ("pdf", "png", "svg")
"""What figures are written as, unless others are asked for."""
KNOWN = (*FORMATS, "csv")
"""What ``Figure.save`` can write; csv has the numbers of a figure."""
WIDTH, HEIGHT = 520, 320
"""Size of the plot area in print, in points."""
LEGEND_LINE = 75
"""Letters that fit into one line of the legend; longer ones get columns."""

_FORBIDDEN = re.compile("[^\t\n\r -\u2027\u202a-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
Row = dict[str, Any]
"""Of a data set, or a part of a specification."""


@dataclass(frozen=True)
class Figure(ABC):
    """Whatever can be put on the page and into a paper: data, and the words around them."""

    name: str
    """File name without its ending, and anchor on the page."""
    title: str
    subtitle: str
    """What is drawn, in a line."""
    note: str = field(default="", kw_only=True)
    """What a reader must know of this figure beside what the page says of all."""

    @property
    def alt(self) -> str:
        """What is drawn, for those who cannot see it; the page's tables have the numbers."""
        return f"{self.title}: {self.subtitle}. {self.note}".strip()

    @abstractmethod
    def numbers(self) -> list[Row]:
        """Every number that the picture shows, none left out: rows with the same columns."""

    @abstractmethod
    def chart(self) -> Row:
        """The Vega-Lite specification with its data, without its words and its look."""

    @property
    def styles(self) -> Sequence[Style]:
        """In the order of the legend, if it has one."""
        return ()

    @property
    def labels(self) -> list[str]:
        """Of the legend."""
        return [style.label for style in self.styles]

    @cached_property
    def spec(self) -> Row:
        """The Vega-Lite specification."""
        look = json.loads(asset("figure.json"))
        letters = [len(label) + 6 for label in self.labels]
        fits = sum(letters) <= LEGEND_LINE
        look["legend"]["columns"] = len(letters) if fits else max(1, LEGEND_LINE // max(letters))
        words = {"title": {"text": self.title, "subtitle": self.subtitle}, "background": "white"}
        return drawable({**words, **self.chart(), "config": look})

    @property
    def svg(self) -> str:
        """The drawing without title and background, as SVG text to put into a page."""
        plain = {k: v for k, v in self.spec.items() if k not in ("title", "background")}
        return str(converter().vegalite_to_svg(plain))

    def save(
        self, directory: Path, formats: Sequence[str] = FORMATS, *, scale: float = 3
    ) -> list[Path]:
        """Writes it into a directory in each of the formats; the paths written.

        A PNG has ``scale`` times as many pixels as the figure has points.
        """
        check_formats(formats)
        if not formats:
            return []
        convert = converter()
        svg = convert.vegalite_to_svg(self.spec)
        directory.mkdir(parents=True, exist_ok=True)
        paths = [directory / f"{self.name}.{form}" for form in formats]
        for form, path in zip(formats, paths):
            if form == "csv":
                write_aside(path, table_of(self.numbers()))
            elif form == "pdf":
                write_aside(path, convert.svg_to_pdf(svg))
            else:
                write_aside(path, convert.svg_to_png(svg, scale=scale) if form == "png" else svg)
        return paths


def channel(name: str, kind: str = "quantitative", **more: Any) -> Row:
    """A field of the data as a channel of Vega-Lite's encodings."""
    return {"field": name, "type": kind, **more}


def tooltip(titles: Mapping[str, str]) -> list[Row]:
    """What is shown of a point: fields, by the titles that they have there."""
    return [
        channel(name, "quantitative" if name == "x" else "nominal", title=title)
        for name, title in titles.items()
    ]


def table_of(rows: Sequence[Row]) -> str:
    """Rows of the same columns as CSV.

    >>> table_of([{"game": "Pong", "score": 0.1 + 0.2}, {"game": "Zaxxon", "score": None}])
    'game,score\\nPong,0.3\\nZaxxon,\\n'
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(rows[0] if rows else ())
    for row in rows:
        writer.writerow(f"{v:.10g}" if isinstance(v, float) else v for v in row.values())
    return out.getvalue()


def drawable(spec: Any) -> Any:
    """A specification without characters that XML or Vega forbids, which would end the converter.

    >>> drawable({"title": ["a\x1bb", 3]})
    {'title': ['a b', 3]}
    """
    if isinstance(spec, str):
        return _FORBIDDEN.sub(" ", spec)
    if isinstance(spec, dict):
        return {drawable(name): drawable(part) for name, part in spec.items()}
    return [drawable(part) for part in spec] if isinstance(spec, list) else spec


def check_formats(formats: Sequence[str]) -> None:
    """Raises for one that ``Figure.save`` cannot write."""
    for form in formats:
        if form not in KNOWN:
            raise UserError(f"figure format: {form!r}, expected one of {', '.join(KNOWN)}")


def check_drawing() -> None:
    """Raises, with the one line that says how to get it, if what draws figures is missing."""
    if not find_spec("vl_convert"):
        raise MissingExtra("report", "report")


def converter() -> Any:
    """vl-convert, which draws specifications; imported when the first figure is drawn."""
    check_drawing()
    return import_module("vl_convert")


def asset(name: str) -> str:
    """The text of a file of this package."""
    return resources.files("momentum_rl.report").joinpath("assets", name).read_text("utf-8")
