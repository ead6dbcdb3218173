"""One HTML page that needs no network, of chapters, with the figures' files in a folder next to it.

Every figure is on the page twice: as a static drawing, which is all that a reader without
JavaScript needs, and as a specification that replaces it when the page has loaded. The same data
give the same bytes.
"""

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from momentum_rl.errors import MissingExtra, UserError
from momentum_rl.plumbing.files import (
    check_own_directory,
    check_replaceable,
    directory_to_write,
    file_to_write,
    write_aside,
    writing,
)
from momentum_rl.report.figure import FORMATS, Figure, asset, check_formats, converter
from momentum_rl.version import __version__

FIGURES = "figures"
"""The directory next to the page that gets the figures' files."""
MOST_PROBLEMS = 20
"""Problems of a chapter that the page names."""


@dataclass(frozen=True)
class Table:
    """A table for the page."""

    caption: str
    rows: Sequence[Mapping[str, Any]]
    """By column, the same in every row; a path becomes a link."""
    folded: bool = False
    """Shown when asked for."""


@dataclass(frozen=True)
class Chapter:
    """A part of the page: what is shown of some data."""

    name: str
    """Its anchor."""
    title: str
    intro: str
    """What it is about, in a sentence or two."""
    parts: tuple[Figure | Table, ...] = ()
    files: tuple[Path, ...] = ()
    """The data, to which the page links."""
    problems: tuple[str, ...] = ()
    """What is wrong with the data, if anything: each begins with the file."""

    @property
    def figures(self) -> list[Figure]:
        """Those among the parts."""
        return [part for part in self.parts if isinstance(part, Figure)]


def page_to_write(directory: Path, out: Path | None, formats: Sequence[str]) -> Path:
    """Where the page of a directory goes, after all that can be refused before the work."""
    if not directory.is_dir():
        raise UserError(f"{directory}: no such directory, expected a directory with results")
    if out is None:  # a name of ours in a directory that may be others': a link is not followed
        file = directory / "report.html"
        directory_to_write(directory)
        check_replaceable(file)
    else:
        file = file_to_write(out, new_directory=True)
    check_own_directory(file.parent / FIGURES, file.parent)
    check_formats(formats)
    return file


def write_page(
    file: Path, title: str, lead: str, chapters: Sequence[Chapter], formats: Sequence[str] = FORMATS
) -> None:
    """Writes the page, and the figures in these formats next to it; or neither."""
    page = render(title, lead, chapters, file.parent, formats)
    with writing(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        for chapter in chapters:
            for figure in chapter.figures:
                figure.save(file.parent / FIGURES, formats)
        write_aside(file, page)


def render(
    title: str,
    lead: str,
    chapters: Sequence[Chapter],
    folder: Path,
    formats: Sequence[str] = FORMATS,
) -> str:
    """The page's HTML; links are relative to a folder."""
    try:
        from jinja2 import Environment, StrictUndefined
        from markupsafe import Markup
    except ImportError as error:
        raise MissingExtra("report", "report") from error

    environment = Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    )
    filters: dict[str, Callable[[Any], str]] = {
        "cell": lambda value: _cell(value, Markup),
        "address": lambda path: quote(Path(os.path.relpath(path, folder)).as_posix()),
        "drawing": lambda figure: Markup(_themed(figure.svg)),
        "specification": lambda figure: Markup(_specification(figure.spec)),
    }
    environment.filters.update(filters)
    return environment.from_string(asset("page.html")).render(
        chapters=chapters,
        title=title,
        lead=lead,
        formats=formats,
        figures=FIGURES,
        most_problems=MOST_PROBLEMS,
        version=__version__,
        style=Markup(asset("page.css")),
        libraries=Markup(page_libraries()),
        script=Markup(asset("page.js")),
    )


def page_libraries() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script without any address to load from."""
    text = str(converter().javascript_bundle())
    return text.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _themed(text: str) -> str:
    """A drawing or a specification with its colours as the page's CSS variables."""
    for colour in re.findall(r"--f([0-9a-f]{6}):", asset("page.css")):
        text = text.replace(f'"#{colour}"', f'"var(--f{colour})"')
    return text


def _specification(spec: dict[str, Any]) -> str:
    """The specification as JSON, safe in a script."""
    text = _themed(json.dumps(spec, separators=(",", ":"), sort_keys=True))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _cell(value: object, markup: Callable[[str], Any]) -> Any:
    """A table's value: where a line must be broken, it is before an interval and not within."""
    match = re.fullmatch(r"(.{1,20}) (\[[^]]+\])", str(value))
    if match is None:
        return value
    return markup("<span>{}</span> <span>{}</span>").format(*match.groups())
