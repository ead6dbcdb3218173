"""The report: one HTML page that needs no network, with the figures' files beside it.

Every figure is on the page twice: as a static drawing, which is all that a reader without
JavaScript needs, and as a specification that replaces it when the page has loaded. The same data
give the same bytes.
"""

import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import resources
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
from momentum_rl.report.deep.references import read_references
from momentum_rl.report.deep.sections import deep_sections
from momentum_rl.report.drawing.figure import (
    FORMATS,
    Figure,
    Picture,
    check_formats,
    page_libraries,
)
from momentum_rl.report.drawing.styles import DARK, INK, MUTED
from momentum_rl.report.evidence.plan import has_plan
from momentum_rl.report.evidence.sections import evidence_sections
from momentum_rl.report.sections import Loaded, Section
from momentum_rl.report.tabular.sections import SECTIONS, tabular_sections
from momentum_rl.report.verdict import CONFIRMED, HOLDS, Finding, Verdict
from momentum_rl.version import __version__

FIGURES = "figures"
"""Directory beside the page that gets the figures' files."""

MOST_PROBLEMS = 20
"""Problems of a section that the page names; ``notify`` hears of all."""

PAPER = {"mdps": 100, "states": 30, "actions": 4, "branching": 4}
"""The paper's numbers for Garnets (Section 7.1)."""

PAGE_COLOURS = {
    "page": ("#f6f8fa", "#10151b"),
    "card": ("#ffffff", "#18202a"),
    "ink": (INK, DARK[INK]),
    "muted": (MUTED, DARK[MUTED]),
    "line": ("#dfe4e8", "#2b3541"),
    "edge": ("#b8c1c9", "#4a5765"),
    "link": ("#0a5f9e", "#6cb8f0"),
    "yes": ("#11703c", "#4fce88"),
    "no": ("#b3261e", "#ff8a80"),
    "open": ("#7a5b00", "#e6b422"),
}
"""By CSS variable: its value on a light and on a dark page."""

KINDS = {True: ("yes", "✓"), "but": ("open", "(✓)"), False: ("no", "✗"), None: ("open", "?")}
"""By verdict: its CSS class and its mark; "but" if it is affirmed within a limit."""


@dataclass(frozen=True)
class Part:
    """A figure with what is said about it."""

    figure: Figure
    verdicts: tuple[Verdict | Finding, ...]
    """The paper's claims, judged; and what else is seen, described."""

    @cached_property
    def picture(self) -> Picture:
        """The figure, drawn."""
        return Picture(self.figure)

    @property
    def judged(self) -> list[Verdict]:
        """The verdicts alone."""
        return _judged(self.verdicts)


def _judged(said: Sequence[Verdict | Finding]) -> list[Verdict]:
    return [one for one in said if isinstance(one, Verdict)]


@dataclass(frozen=True)
class Chapter:
    """A section with its data: what the page shows, before it is HTML."""

    section: Section
    loaded: Loaded | None = None
    """Its data, if they are there and good."""
    parts: tuple[Part, ...] = ()
    """Its figures; none without data."""
    problems: tuple[str, ...] = ()
    """What is wrong with the data, if anything: each begins with the file in the directory."""

    @property
    def judged(self) -> list[Verdict]:
        """The verdicts on the data as a whole."""
        return _judged(self.loaded.said) if self.loaded is not None else []


def read_chapters(
    directory: Path, references: Sequence[Path] = (), game: str | None = None
) -> list[Chapter]:
    """Everything that a results directory has to show; bad files become problems, not errors.

    Raises UserError if the directory has nothing to show, or a reference cannot be used.
    """
    _check(directory)
    planned = has_plan(directory)
    found = evidence_sections if planned else deep_sections
    sections, problems = found(directory, read_references(references), game)
    before = () if planned else tabular_sections(directory, FIGURES)
    chapters = [_read_chapter(directory, section) for section in (*before, *sections)]
    first = chapters[len(before)]
    chapters[len(before)] = replace(first, problems=(*problems, *first.problems))
    return _something(directory, chapters)


def _check(directory: Path) -> None:
    if not directory.is_dir():
        raise UserError(f"{directory}: no such directory, expected a directory with results")


def _something(directory: Path, chapters: list[Chapter]) -> list[Chapter]:
    """The chapters, if they have something to show."""
    if not any(chapter.parts for chapter in chapters):
        problems = [problem for chapter in chapters for problem in chapter.problems]
        if problems:
            more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
            raise UserError(f"{directory}{os.sep}{problems[0]}{more}")
        makers = ", ".join(f"`{chapter.section.made_by}`" for chapter in chapters)
        raise UserError(f"{directory}: no results to report, expected files written by {makers}")
    return chapters


def _read_chapter(directory: Path, section: Section) -> Chapter:
    try:
        loaded = section.load(directory)
    except UserError as error:
        # Errors begin with the file's path; the page names it from the results directory.
        problem = str(error).removeprefix(f"{directory}{os.sep}")
        return Chapter(section, problems=(problem,))
    if loaded is None:
        return Chapter(section)
    parts = []
    for entry in section.entries:
        figure = entry.figure(loaded.data)
        if figure is not None:
            said = [judge(loaded.data) for judge in entry.verdicts]
            parts.append(Part(figure, tuple(one for one in said if one is not None)))
    if parts:
        return Chapter(section, loaded, tuple(parts))
    name = loaded.files[0].name if loaded.files else section.title
    problem = f"{name}: nothing that the report knows how to draw"
    return Chapter(section, loaded, problems=(problem,))


def write_report(
    directory: Path,
    out: Path | None = None,
    *,
    references: Sequence[Path] = (),
    game: str | None = None,
    formats: Sequence[str] = FORMATS,
    notify: Callable[[str], None] | None = None,
) -> Path:
    """Write the report on a results directory to ``out``, and its figures beside it.

    Files that cannot be used are named on the page, and to ``notify``; if none can be used, or
    ``out`` cannot be written, a UserError says so and no page is written.

    Args:
      directory: what the commands wrote; run directories may be anywhere below it.
      out: the page; report.html in the directory by default.
      references: published curves to lay over those of the same games.
      game: the one that is drawn large.
      formats: in which the figures are written.
      notify: hears of what could not be used.
    """
    directory = Path(directory)
    if out is None:  # a name of ours in a directory that may be others': a link is not followed
        file = out = directory / "report.html"
        directory_to_write(directory)
        check_replaceable(file)
    else:
        file = file_to_write(out, new_directory=True)
    check_own_directory(file.parent / FIGURES, file.parent)
    check_formats(formats)
    chapters = read_chapters(directory, references, game)
    page = render(chapters, file.parent, formats)
    with writing(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        for chapter in chapters:
            for part in chapter.parts:
                part.picture.save(file.parent / FIGURES, formats)
        write_aside(file, page)
    if notify is not None:
        for chapter in chapters:
            for problem in chapter.problems:
                notify(f"{directory}{os.sep}{problem}")
    return out


def draw(directory: Path, made_by: str) -> tuple[list[Path], list[Verdict | Finding]]:
    """Draw the figures of one command's results into them; the files, and what is said of them."""
    _check(directory)
    sections = [section for section in SECTIONS if section.made_by == made_by]
    chapters = _something(directory, [_read_chapter(directory, section) for section in sections])
    parts = [part for chapter in chapters for part in chapter.parts]
    check_own_directory(directory / FIGURES, directory)
    files = [path for part in parts for path in part.picture.save(directory / FIGURES)]
    return files, [verdict for part in parts for verdict in part.verdicts]


def render(chapters: Sequence[Chapter], beside: Path, formats: Sequence[str] = FORMATS) -> str:
    """The page's HTML; links are relative to the directory ``beside``."""
    try:
        from jinja2 import Environment, StrictUndefined
        from markupsafe import Markup, escape
    except ImportError as error:
        raise MissingExtra("report", "report") from error

    def prose(text: str) -> Markup:
        """Text with the paper's indices (q_π, β_k) set as such."""
        html = re.sub(r"\b([qβπεhP])_\{([jkl+:−0-9]+)\}", r"\1<sub>\2</sub>", str(escape(text)))
        pattern = r"\b([qβπεhF])_(?:\{(j−1)\}|([jkπ])\b)"
        return Markup(re.sub(pattern, r"\1<sub>\2\3</sub>", html))

    environment = Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    )
    filters: dict[str, Callable[[Any], str]] = {
        "prose": prose,
        "cell": lambda value: _cell(value, Markup),
        "address": lambda path: quote(Path(os.path.relpath(path, beside)).as_posix()),
        "drawing": lambda picture: Markup(_themed(picture.svg)),
        "specification": lambda picture: Markup(_specification(picture.spec)),
    }
    environment.filters.update(filters)
    shown = [chapter for chapter in chapters if chapter.parts or chapter.problems]
    is_tabular = any(chapter.section.file for chapter in shown)
    whole = [verdict for chapter in shown for verdict in chapter.judged]
    beside_figures = [v for chapter in shown for part in chapter.parts for v in part.judged]
    settings = [c.loaded.provenance for c in shown if c.section.file and c.loaded]
    papers = [one and PAPER.items() <= one.config.items() for one in settings]
    numbers = " at the paper's numbers" if papers and all(papers) else ""
    title, lead = _opening(whole, beside_figures, numbers)
    libraries = page_libraries().replace("</script", "<\\/script").replace("<!--", "<\\!--")
    return environment.from_string(_asset("page.html")).render(
        shown=shown,
        absent=[
            chapter.section
            for chapter in chapters
            if is_tabular and chapter.section.expected and not (chapter.parts or chapter.problems)
        ],
        title=title,
        lead=lead,
        kinds=KINDS,
        formats=formats,
        figures=FIGURES,
        most_problems=MOST_PROBLEMS,
        version=__version__,
        style=Markup(_colours() + _asset("page.css")),
        libraries=Markup(libraries),
        script=Markup(_asset("page.js")),
    )


def _asset(name: str) -> str:
    return (
        resources.files("momentum_rl.report").joinpath("assets", name).read_text(encoding="utf-8")
    )


def _colours() -> str:
    """The CSS variables of both themes; print is always light."""

    def block(dark: bool) -> str:
        page = {name: pair[dark] for name, pair in PAGE_COLOURS.items()}
        figures = {f"f{light[1:]}": (on_dark if dark else light) for light, on_dark in DARK.items()}
        values = "".join(f"--{name}:{value};" for name, value in (page | figures).items())
        return f"{{{values}color-scheme:{'dark' if dark else 'light'}}}\n"

    return (
        f":root{block(False)}"
        f"@media (prefers-color-scheme: dark){{:root:not([data-theme=light]){block(True)}}}\n"
        f":root[data-theme=dark]{block(True)}"
        f"@media print{{:root:root:root{block(False)}}}\n"
    )


def _themed(text: str) -> str:
    """A drawing or a specification with its colours as CSS variables."""
    for colour in DARK:
        text = text.replace(f'"{colour}"', f'"var(--f{colour[1:]})"')
    return text


def _specification(spec: dict[str, Any]) -> str:
    """The interactive specification as JSON, safe in a script."""
    text = _themed(json.dumps(spec, separators=(",", ":"), sort_keys=True))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _cell(value: object, markup: Callable[[str], Any]) -> Any:
    """A table's value: where a line must be broken, it is before an interval and not within."""
    number, bracket, interval = str(value).partition(" [")
    if not bracket:
        return value
    return markup("<span>{}</span> <span>[{}</span>").format(number, interval)


def _opening(
    whole: Sequence[Verdict], beside_figures: Sequence[Verdict], numbers: str
) -> tuple[str, str]:
    """The page's title and first paragraph: about the paper where its claims can be judged.

    Args:
      whole: the verdicts of an experiment that was planned to judge claims.
      beside_figures: those on what there happens to be.
      numbers: with which they were obtained, if these are the paper's.
    """
    verdicts = [*whole, *beside_figures]
    undecided = sum(verdict.confirmed is None for verdict in verdicts)
    if not whole and undecided == len(verdicts):
        said = "They decide none of the paper's claims that are quoted here."
        none = "None of the paper's claims is judged by them."
        return "The results of these runs", f"What these runs show. {said if verdicts else none}"
    observed, proven = ([v for v in verdicts if v.affirmed == w] for w in (CONFIRMED, HOLDS))
    parts = [f"{_affirmed(observed)} observations are reproduced{numbers}"] if observed else []
    shared = {verdict.but for verdict in observed}
    parts += [but for but in shared if but and len(shared) == 1]
    if proven:
        empty = sum(bool(verdict.but) for verdict in proven)
        parts.append(f"{_affirmed(proven)} theorems hold")
        parts += [f"{empty} of them by bounds that say nothing here"] if empty else []
    parts += [f"{undecided} cannot be decided"] if undecided else []
    return "Momentum in Reinforcement Learning: the results", (
        "What the paper claims, what these runs show, and the verdict computed from the data. A "
        f"verdict stands only where the paper makes a statement, and quotes it. {', '.join(parts)}."
    )


def _affirmed(verdicts: Sequence[Verdict]) -> str:
    return f"{sum(verdict.confirmed is True for verdict in verdicts)} of {len(verdicts)}"
