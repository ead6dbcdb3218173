"""What every figure has in common: its look, and the way to PDF, PNG, SVG and the page.

A figure makes its own Vega-Lite specification through Altair, once for the interactive page and
once for print, from the same layers. Altair is imported when the first one is drawn.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from movi.errors import MissingExtra, UserError
from movi.files import write_aside
from movi.reports.series import GRID, INK, MUTED

FORMATS = ("pdf", "png", "svg")
"""What ``save`` can write."""
FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
"""Every figure's font; the first one comes with the converter, so print looks the same anywhere."""
WIDTH, HEIGHT = 520, 320
"""Size of the plot area in print, in points."""


class Figure(Protocol):
    """Whatever can be put on the page and into a paper."""

    @property
    def name(self) -> str:
        """File name without its ending, and anchor on the page."""
        ...

    @property
    def title(self) -> str:
        """The heading."""
        ...

    @property
    def subtitle(self) -> str:
        """What is drawn, in a line."""
        ...

    @property
    def caption(self) -> str:
        """What a reader must know to read the picture."""
        ...

    @property
    def alt(self) -> str:
        """The picture in words, for those who cannot see it."""
        ...

    def spec(self, *, interactive: bool) -> dict[str, Any]:
        """The Vega-Lite specification: for the page (fluid width, hover), or for print (title)."""
        ...


def check_formats(formats: Sequence[str]) -> None:
    """Raises for one that ``save`` cannot write."""
    for form in formats:
        if form not in FORMATS:
            raise UserError(f"figure format: {form!r}, expected one of {', '.join(FORMATS)}")


def save(
    figure: Figure, directory: Path, name: str | None = None, formats: Sequence[str] = FORMATS
) -> list[Path]:
    """Write a figure into a directory as each of the formats; the paths written."""
    check_formats(formats)
    convert = _converter()
    svg = convert.vegalite_to_svg(figure.spec(interactive=False))
    directory.mkdir(parents=True, exist_ok=True)
    paths = []
    for form in formats:
        path = directory / f"{name or figure.name}.{form}"
        if form == "pdf":
            write_aside(path, convert.svg_to_pdf(svg))
        elif form == "png":
            write_aside(path, convert.svg_to_png(svg, scale=3))
        else:
            write_aside(path, svg)
        paths.append(path)
    return paths


def static_svg(figure: Figure) -> str:
    """The print version without title and background, as SVG text to put into a page."""
    spec = figure.spec(interactive=False)
    del spec["title"], spec["background"]
    return str(_converter().vegalite_to_svg(spec))


def altair() -> Any:
    """Altair, or the one line that says how to get it."""
    try:
        import altair
    except ImportError as error:
        raise MissingExtra("report", "report") from error
    return altair


def _converter() -> Any:
    try:
        import vl_convert
    except ImportError as error:
        raise MissingExtra("report", "report") from error
    return vl_convert


def page_libraries() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script without any address to load from."""
    return str(_converter().javascript_bundle())


def finished(
    chart: Any, figure: Figure, *, legend_columns: int, interactive: bool, sized: bool = True
) -> dict[str, Any]:
    """A chart's specification with the look that all figures share.

    And with their size, unless not ``sized``: panels have sizes of their own.
    """
    alt = altair()
    if not sized:
        if not interactive:
            title = alt.TitleParams(figure.title, subtitle=figure.subtitle)
            chart = chart.properties(title=title, background="white")
    elif interactive:
        size = alt.AutoSizeParams(type="fit-x", contains="padding")
        chart = chart.properties(width="container", height=HEIGHT, autosize=size)
    else:
        title = alt.TitleParams(figure.title, subtitle=figure.subtitle)
        chart = chart.properties(width=WIDTH, height=HEIGHT, title=title, background="white")
    spec: dict[str, Any] = chart.configure(**_config(legend_columns)).to_dict()
    del spec["$schema"]  # an address; the converter and the page know the language without it
    return spec


def _config(legend_columns: int) -> dict[str, Any]:
    axis = {
        "labelColor": INK,
        "titleColor": INK,
        "domainColor": MUTED,
        "tickColor": MUTED,
        "gridColor": GRID,
        "labelFontSize": 12,
        "titleFontSize": 13,
        "titleFontWeight": "normal",
        "titlePadding": 8,
        "tickSize": 4,
    }
    legend = {
        "orient": "top",
        "direction": "horizontal",
        "labelColor": INK,
        "labelFontSize": 13,
        "symbolType": "stroke",
        "symbolSize": 500,
        "symbolStrokeWidth": 2.2,
        "labelLimit": 300,
        "columns": legend_columns,
        "columnPadding": 18,
        "offset": 8,
    }
    title = {
        "color": INK,
        "subtitleColor": MUTED,
        "fontSize": 16,
        "subtitleFontSize": 13,
        "anchor": "start",
        "fontWeight": "bold",
        "offset": 10,
        "subtitlePadding": 4,
    }
    return {
        "aria": False,
        "background": "transparent",
        "font": FONT,
        "axis": axis,
        "legend": legend,
        "title": title,
        "view": {"stroke": None},
        "line": {"strokeWidth": 2, "strokeCap": "butt", "strokeJoin": "round"},
    }
