"""What every figure has in common: its words, its look, and the way to files and to the page.

A figure makes its Vega-Lite specification through Altair, once for the interactive page and once
for print, from the same layers. Altair is imported when the first one is drawn.
"""

import csv
import io
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module, resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from momentum_rl.errors import MissingExtra, UserError
from momentum_rl.plumbing.files import write_aside

FORMATS = ("pdf", "png", "svg")
"""What figures are written as, unless others are asked for."""
KNOWN = (*FORMATS, "csv")
"""What ``Picture.save`` can write; csv has the numbers of a figure."""
WIDTH, HEIGHT = 520, 320
"""Size of the plot area in print, in points."""
LEGEND_LINE = 75
"""Letters that fit into one line of the legend; longer ones get columns."""

_FORBIDDEN = re.compile("[^\t\n\r -\u2027\u202a-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
Row = dict[str, Any]
"""Of a data set in Vega-Lite's form."""


@dataclass(frozen=True)
class Figure(ABC):
    """Whatever can be put on the page and into a paper: data, and the words around them."""

    name: str
    """File name without its ending, and anchor on the page."""
    title: str
    subtitle: str
    """What is drawn, in a line."""
    note: str = field(default="", kw_only=True)
    """What a reader must know beside what the caption says by itself."""

    @property
    def caption(self) -> str:
        """What a reader must know to read the picture."""
        return " ".join([*self.remarks(), *([self.note] if self.note else [])])

    @abstractmethod
    def remarks(self) -> list[str]:
        """The caption's sentences, but for the note."""

    @property
    def alt(self) -> str:
        """What is drawn, for those who cannot see it; the page's tables have the numbers."""
        return f"{self.title}: {self.subtitle}. {self.caption}"

    @abstractmethod
    def numbers(self) -> list[Row]:
        """Every number that the picture shows, none left out: rows with the same columns."""

    @abstractmethod
    def spec(self, *, interactive: bool) -> dict[str, Any]:
        """The Vega-Lite specification: for the page (fluid width, hover), or for print (title)."""


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


class Picture:
    """A figure, drawn: each form of it is made once, when it is first asked for."""

    def __init__(self, figure: Figure) -> None:
        """Nothing is drawn yet."""
        self._figure = figure

    @cached_property
    def _print(self) -> dict[str, Any]:
        return drawable(self._figure.spec(interactive=False))

    @cached_property
    def spec(self) -> dict[str, Any]:
        """The interactive specification."""
        return drawable(self._figure.spec(interactive=True))

    @cached_property
    def svg(self) -> str:
        """The print version without title and background, as SVG text to put into a page."""
        plain = {k: v for k, v in self._print.items() if k not in ("title", "background")}
        return str(library("vl_convert").vegalite_to_svg(plain))

    def save(
        self, directory: Path, formats: Sequence[str] = FORMATS, *, scale: float = 3
    ) -> list[Path]:
        """Writes it into a directory in each of the formats; the paths written.

        A PNG has ``scale`` times as many pixels as the figure has points.
        """
        check_formats(formats)
        if not formats:
            return []
        convert = library("vl_convert")
        svg = convert.vegalite_to_svg(self._print)
        directory.mkdir(parents=True, exist_ok=True)
        paths = [directory / f"{self._figure.name}.{form}" for form in formats]
        for form, path in zip(formats, paths):
            if form == "csv":
                write_aside(path, table_of(self._figure.numbers()))
            elif form == "pdf":
                write_aside(path, convert.svg_to_pdf(svg))
            else:
                write_aside(path, convert.svg_to_png(svg, scale=scale) if form == "png" else svg)
        return paths


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
    """Raises for one that ``Picture.save`` cannot write."""
    for form in formats:
        if form not in KNOWN:
            raise UserError(f"figure format: {form!r}, expected one of {', '.join(KNOWN)}")


def check_drawing() -> None:
    """Raises, with the one line that says how to get them, if what draws figures is missing."""
    if not all(find_spec(name) for name in ("altair", "vl_convert")):
        raise MissingExtra("report", "report")


def library(name: str = "altair") -> Any:
    """Altair, or another library of the extra; or the one line that says how to get it."""
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingExtra("report", "report") from error


def page_libraries() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script without any address to load from."""
    return str(library("vl_convert").javascript_bundle())


def finished(
    chart: Any, figure: Figure, labels: Sequence[str], *, interactive: bool, sized: bool = True
) -> dict[str, Any]:
    """A chart's specification with the look that all figures share, and a legend of these labels.

    And with their size, unless not ``sized``: panels have sizes of their own.
    """
    alt = library()
    letters = [len(label) + 6 for label in labels]
    columns = len(labels) if sum(letters) <= LEGEND_LINE else LEGEND_LINE // max(letters)
    if interactive and sized:
        size = alt.AutoSizeParams(type="fit-x", contains="padding")
        chart = chart.properties(width="container", height=HEIGHT, autosize=size)
    elif not interactive:
        title = alt.TitleParams(figure.title, subtitle=figure.subtitle)
        chart = chart.properties(title=title, background="white")
        if sized:
            chart = chart.properties(width=WIDTH, height=HEIGHT)
    look = json.loads(asset("figure.json"))
    look["legend"]["columns"] = max(1, columns)
    spec: dict[str, Any] = chart.configure(**look).to_dict()
    del spec["$schema"]  # an address; the converter and the page know the language without it
    return spec


def asset(name: str) -> str:
    """The text of a file of this package."""
    return resources.files("momentum_rl.report").joinpath("assets", name).read_text("utf-8")
