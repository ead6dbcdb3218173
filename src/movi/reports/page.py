"""The report: one HTML page that needs no network, with the figures' files beside it.

Every figure is on the page twice: as a static drawing, which is all that a reader without
JavaScript needs, and as a specification that replaces it when the page has loaded. The same data
give the same bytes.
"""

import html
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import quote

from movi.errors import UserError
from movi.files import (
    check_own_directory,
    check_replaceable,
    directory_to_write,
    file_to_write,
    write_aside,
    writing,
)
from movi.reports.charts import (
    FORMATS,
    Figure,
    check_formats,
    page_libraries,
    save,
    static_svg,
)
from movi.reports.deep_sections import deep_sections
from movi.reports.references import read_references
from movi.reports.sections import SECTIONS, Loaded, PageTable, Section
from movi.reports.series import DARK, INK, MUTED
from movi.reports.tables import Provenance
from movi.reports.verdicts import Finding, Verdict
from movi.version import __version__

FIGURES = "figures"
"""Directory beside the page that gets the figures' files."""

MOST_PROBLEMS = 20
"""Of a section that the page names; ``notify`` is told all."""

_PAGE_COLOURS = {
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

_MARKS = {True: ("yes", "✓"), False: ("no", "✗"), None: ("open", "?")}


@dataclass(frozen=True)
class Part:
    """A figure with what is said about it."""

    figure: Figure
    """What is drawn."""
    verdicts: tuple[Verdict | Finding, ...]
    """The paper's claims, judged; and what else is seen, described."""

    @property
    def judged(self) -> list[Verdict]:
        """The verdicts alone."""
        return [said for said in self.verdicts if isinstance(said, Verdict)]


@dataclass(frozen=True)
class Chapter:
    """A section with its data: what the page shows, before it is HTML."""

    section: Section
    """What was declared."""
    loaded: Loaded | None
    """Its data, if they are there and good."""
    parts: tuple[Part, ...]
    """Its figures; none without data."""
    problems: tuple[str, ...] = ()
    """What is wrong with the data, if anything: each begins with the file in the directory."""


def read_chapters(
    directory: Path, references: Sequence[Path] = (), game: str | None = None
) -> list[Chapter]:
    """Everything that a results directory has to show; bad files become problems, not errors.

    Raises UserError if the directory has nothing to show, or a reference cannot be used.
    """
    _check(directory)
    reference = read_references(references)
    deep = deep_sections(directory, reference, game)
    chapters = [_read_chapter(directory, section) for section in (*SECTIONS, *deep.sections)]
    first = chapters[len(SECTIONS)]
    chapters[len(SECTIONS)] = replace(first, problems=(*deep.problems, *first.problems))
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
        return Chapter(section, None, (), (str(error).removeprefix(f"{directory}{os.sep}"),))
    if loaded is None:
        return Chapter(section, None, ())
    parts = []
    for entry in section.entries:
        figure = entry.figure(loaded.data)
        if figure is not None:
            judged = [judge(loaded.data) for judge in entry.verdicts]
            parts.append(Part(figure, tuple(v for v in judged if v is not None)))
    if parts:
        return Chapter(section, loaded, tuple(parts))
    name = loaded.files[0].name if loaded.files else section.title
    return Chapter(section, loaded, (), (f"{name}: nothing that the report knows how to draw",))


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
      references: published curves to lay over those of Atari games.
      game: the one that is drawn large.
      formats: in which the figures are written.
      notify: is told what could not be used.
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
                save(part.figure, file.parent / FIGURES, formats=formats)
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
    files = [path for part in parts for path in save(part.figure, directory / FIGURES)]
    return files, [verdict for part in parts for verdict in part.verdicts]


def render(chapters: Sequence[Chapter], beside: Path, formats: Sequence[str] = FORMATS) -> str:
    """The page's HTML; links are relative to the directory ``beside``."""
    shown = [chapter for chapter in chapters if chapter.parts or chapter.problems]
    missing = [c for c in chapters if not (c.parts or c.problems) and c.section.expected]
    verdicts = [v for chapter in shown for part in chapter.parts for v in part.judged]
    body = "".join(_chapter(chapter, beside, formats) for chapter in shown)
    absent = "".join(
        f"<li>{_text(c.section.title)}: run <code>{_text(c.section.made_by)}</code></li>"
        for c in missing
    )
    if absent:
        body += f'<h2 id="absent">Not in these results</h2><ul>{absent}</ul>'
    return _FRAME.format(
        style=_colours() + _asset("page.css"),
        version=_text(__version__),
        summary=_text(_summary(verdicts)),
        contents=_contents(shown),
        body=body,
        libraries=page_libraries().replace("</script", "<\\/script").replace("<!--", "<\\!--"),
        script=_asset("page.js"),
    )


_FRAME = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; \
script-src 'unsafe-inline' 'unsafe-eval'; img-src data:">
<title>Momentum in Reinforcement Learning: the results</title>
<style>
{style}</style>
</head>
<body>
<a class="skip" href="#main">Skip to the results</a>
<header>
<div class="top"><h1>Momentum in Reinforcement Learning: the results</h1>
<button id="theme" type="button" hidden>Theme</button></div>
<p class="lead">What the paper claims, what these runs show, and the verdict computed from the \
data. A verdict stands only where the paper makes a statement, and quotes it. {summary}</p>
</header>
<main id="main">
{contents}
{body}
</main>
<footer class="quiet">Made by <code>movi report</code>, version {version}. The figures are \
interactive: point at one to read its values.</footer>
<script>{libraries}</script>
<script>
{script}</script>
</body>
</html>
"""


def _text(value: object) -> str:
    return html.escape(str(value), quote=True)


def _prose(value: str) -> str:
    """Text with the paper's indices (q_π, β_k) set as such."""
    text = re.sub(r"\b([qβπεhP])_\{([jkl+:−0-9]+)\}", r"\1<sub>\2</sub>", _text(value))
    return re.sub(r"\b([qβπεhF])_(?:\{(j−1)\}|([jkπ])\b)", r"\1<sub>\2\3</sub>", text)


def _asset(name: str) -> str:
    return resources.files("movi.reports").joinpath("assets", name).read_text(encoding="utf-8")


def _variable(colour: str) -> str:
    return f"var(--f{colour[1:]})"


def _colours() -> str:
    """The CSS variables of both themes; print is always light."""

    def block(dark: bool) -> str:
        page = {name: pair[dark] for name, pair in _PAGE_COLOURS.items()}
        figures = {f"f{light[1:]}": (on_dark if dark else light) for light, on_dark in DARK.items()}
        values = "".join(f"--{name}:{value};" for name, value in (page | figures).items())
        return f"{{{values}color-scheme:{'dark' if dark else 'light'}}}\n"

    return (
        f":root{block(False)}"
        f"@media (prefers-color-scheme: dark){{:root:not([data-theme=light]){block(True)}}}\n"
        f":root[data-theme=dark]{block(True)}"
        f"@media print{{:root:root:root{block(False)}}}\n"
    )


def _themed_spec(figure: Figure) -> str:
    """The interactive specification as JSON, its colours as CSS variables, safe in a script."""
    text = json.dumps(figure.spec(interactive=True), separators=(",", ":"), sort_keys=True)
    for colour in DARK:
        text = text.replace(f'"{colour}"', f'"{_variable(colour)}"')
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _themed_svg(figure: Figure) -> str:
    """The static drawing, its colours as CSS variables."""
    text = static_svg(figure)
    for colour in DARK:
        text = text.replace(f'"{colour}"', f'"{_variable(colour)}"')
    return text


def _summary(verdicts: Sequence[Verdict]) -> str:
    confirmed = sum(verdict.confirmed is True for verdict in verdicts)
    undecided = sum(verdict.confirmed is None for verdict in verdicts)
    text = f"{confirmed} of {len(verdicts)} claims are confirmed"
    return text + (f", {undecided} cannot be decided." if undecided else ".")


def _badge(verdict: Verdict) -> str:
    kind, mark = _MARKS[verdict.confirmed]
    return (
        f'<span class="badge {kind}">{mark}<span class="word"> {_text(verdict.word)}</span></span>'
    )


def _contents(chapters: Sequence[Chapter]) -> str:
    items = []
    for chapter in chapters:
        entries = "".join(
            f'<li class="entry"><a href="#{_text(part.figure.name)}">{_text(part.figure.title)}</a>'
            f"<span>{' '.join(_badge(verdict) for verdict in part.judged)}</span></li>"
            for part in chapter.parts
        )
        name, title = _text(chapter.section.name), _text(chapter.section.title)
        items.append(f'<li><a href="#section-{name}">{title}</a><ul>{entries}</ul></li>')
    return (
        '<nav aria-labelledby="contents"><h2 id="contents">Contents</h2>'
        f"<ul>{''.join(items)}</ul></nav>"
    )


def _chapter(chapter: Chapter, beside: Path, formats: Sequence[str]) -> str:
    section = chapter.section
    parts = [
        f'<section aria-labelledby="section-{_text(section.name)}">',
        f'<h2 id="section-{_text(section.name)}">{_text(section.title)}</h2>',
        f"<p>{_prose(section.intro)}</p>",
    ]
    if chapter.problems:
        parts.append(_notice(chapter.problems))
    if chapter.loaded is not None:
        parts += [f'<p class="note">{_text(note)}</p>' for note in chapter.loaded.notes]
    parts += [_part(part, formats) for part in chapter.parts]
    if chapter.loaded is not None:
        parts += [_table(table, beside) for table in chapter.loaded.tables]
        parts.append(_origin(chapter.loaded, beside))
    return "\n".join([*parts, "</section>\n"])


def _notice(problems: Sequence[str]) -> str:
    lines = [_text(problem) for problem in problems[:MOST_PROBLEMS]]
    if len(problems) > MOST_PROBLEMS:
        lines.append(f"and {len(problems) - MOST_PROBLEMS} more")
    return f'<p class="notice" role="note">{"<br>".join(lines)}</p>'


def _table(table: PageTable, beside: Path) -> str:
    def cell(value: object) -> str:
        if isinstance(value, Path):
            return f'<a href="{_address(value, beside)}">{_text(value.parent.name)}</a>'
        return _text(value)

    head = "".join(f'<th scope="col">{_text(name)}</th>' for name in table.header)
    body = "".join(
        f"<tr>{''.join(f'<td>{cell(value)}</td>' for value in row)}</tr>" for row in table.rows
    )
    whole = f'<div class="wide"><table class="data"><tr>{head}</tr>{body}</table></div>'
    if table.folded:
        return f"<details><summary>{_text(table.caption)}</summary>{whole}</details>"
    return f'<div class="card"><h3>{_text(table.caption)}</h3>{whole}</div>'


def _address(path: Path, beside: Path) -> str:
    return quote(Path(os.path.relpath(path, beside)).as_posix())


def _part(part: Part, formats: Sequence[str]) -> str:
    figure = part.figure
    name = _text(figure.name)
    files = "".join(
        f'<a href="{FIGURES}/{quote(figure.name)}.{form}">{form.upper()}</a>' for form in formats
    )
    return "\n".join(
        [
            f'<article class="card" id="{name}" aria-labelledby="title-{name}">',
            f'<h3 id="title-{name}">{_text(figure.title)}</h3>',
            f'<p class="quiet">{_text(figure.subtitle)}</p>',
            "<figure>",
            f'<div class="plot" id="plot-{name}" role="img" aria-label="{_text(figure.alt)}">'
            f"{_themed_svg(figure)}</div>",
            f"<figcaption>{_text(figure.caption)}</figcaption>",
            "</figure>",
            *(_said(said) for said in part.verdicts),
            f'<p class="files">Figure for print: {files}</p>' if files else "",
            f'<script type="application/json" data-plot="plot-{name}">{_themed_spec(figure)}'
            "</script>",
            "</article>",
        ]
    )


def _said(said: Verdict | Finding) -> str:
    if isinstance(said, Finding):
        return (
            f'<div class="verdict"><dl><dt>About</dt><dd>{_prose(said.about)}</dd>'
            f"<dt>Seen</dt><dd>{_prose(said.seen)}</dd></dl></div>"
        )
    verdict = said
    kind, _ = _MARKS[verdict.confirmed]
    return (
        f'<div class="verdict {kind}"><dl><dt>Claim</dt><dd>{_prose(verdict.claim)}</dd>'
        f"<dt>Seen</dt><dd>{_prose(verdict.seen)}</dd>"
        f"<dt>Verdict</dt><dd>{_badge(verdict)}</dd></dl></div>"
    )


def _origin(loaded: Loaded, beside: Path) -> str:
    """The data's files, and the settings and versions that made them."""
    links = "".join(
        f'<a href="{_address(path, beside)}">{_text(path.name)}</a>' for path in loaded.files
    )
    data = f'<p class="files">Data: {links}</p>' if links else ""
    if loaded.provenance is None:
        return data + '<p class="quiet">How these data were made is not recorded.</p>'
    return data + _provenance(loaded.provenance)


def _provenance(origin: Provenance) -> str:
    rows: list[tuple[str, object]] = list(_flat(origin.config).items())
    if origin.seed is not None and "seed" not in origin.config:
        rows.append(("seed", origin.seed))
    if origin.version:
        rows.append(("movi", origin.version))
    rows += sorted(origin.versions.items())
    if origin.seconds is not None:
        rows.append(("time", f"{origin.seconds:,.1f} s"))
    table = "".join(
        f'<tr><th scope="row">{_text(key)}</th><td>{_text(value)}</td></tr>' for key, value in rows
    )
    command = f"<pre><code>{_text(origin.command)}</code></pre>" if origin.command else ""
    return (
        f"<details><summary>Settings and versions that made these data</summary>{command}"
        f"<table>{table}</table></details>"
    )


def _flat(config: Mapping[str, Any], prefix: str = "") -> dict[str, object]:
    """Nested settings as dotted names."""
    flat: dict[str, object] = {}
    for key, value in config.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = json.dumps(value) if isinstance(value, list) else value
    return flat
