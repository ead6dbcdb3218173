"""What the site is made of beside its written pages: mkdocs calls these functions as it builds."""

from pathlib import Path
from typing import Any

import ziamath
from algorithms import curves, filled
from commands import command_line
from links import ELSEWHERE, ROOT, for_site, pictures
from mathematics import drawn, protected, scripts
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from notebooks import executed, page_of

from momentum_rl.agents.registry import names

WHERE_THERE = ("evidence.md",)
"""Pages of the navigation that a tree may lack."""
FONT = Path(ziamath.__file__).parent / "fonts" / "STIXTwoMath-Regular.ttf"


def on_config(config: Any) -> Any:
    """The navigation without pages that are not there."""
    absent = {name for name in WHERE_THERE if not (Path(config.docs_dir) / name).exists()}
    config.nav = [_without(entry, absent) for entry in config.nav]
    return config


def _without(entry: Any, absent: set[str]) -> Any:
    if isinstance(entry, str):
        return entry
    return {
        title: [_without(one, absent) for one in below if _target(one) not in absent]
        if isinstance(below, list)
        else below
        for title, below in entry.items()
    }


def _target(entry: Any) -> str | None:
    values = [entry] if isinstance(entry, str) else list(entry.values())
    return values[0] if isinstance(values[0], str) else None


def on_files(files: Files, config: Any) -> Files:
    """The written pages, and those that are made from the code and from files beside docs/."""
    made: dict[str, str | bytes] = {
        "reference/commands.md": command_line(),
        "assets/STIXTwoMath-Regular.ttf": FONT.read_bytes(),
    }
    for source, page in ELSEWHERE.items():
        if page != "index.md":
            made[page] = for_site((ROOT / source).read_text(), source, page)
    for file in files.documentation_pages():
        made |= pictures(file.content_string, f"docs/{file.src_uri}")
    for name in names():
        if figure := curves(name):
            made[f"algorithms/curves-{name}.svg"] = figure
    for source in sorted((ROOT / "docs" / "tutorials").glob("*.py")):
        for name, content in page_of(executed(source), source.stem).items():
            made[f"tutorials/{name}"] = content
    for name, content in made.items():
        files.append(File.generated(config, name, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: Any, files: Files) -> str:
    """A written page with its tables, and with links that hold on the site."""
    if page.file.generated_by:
        return markdown
    source = f"docs/{page.file.src_uri}"
    return protected(for_site(filled(markdown), source, page.file.src_uri))


def on_page_content(html: str, page: Page, config: Any, files: Files) -> str:
    """A page with its mathematics drawn."""
    html = drawn(html)
    return html if page.file.src_uri == "reference/python.md" else scripts(html)
