"""Pages refer to each other, and to files of the repository that are not on the site."""

import os.path
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ELSEWHERE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
"""Files beside docs/ that are pages of the site, with their names there."""
_PICTURE = re.compile(r"!\[(?P<label>[^\]]*)\]\((?P<target>[^)\s#:]+)\)")
_LINK = re.compile(r"(?<!!)\[(?P<label>[^\]]*)\]\((?P<target>[^)\s#:]+)(?P<anchor>#[^)\s]*)?\)")


def for_site(markdown: str, source: str, page: str) -> str:
    """The text of a file of the repository with links that hold on the site.

    A link to a page leads to the page, one to a tutorial's file to the page that is made of it.
    One to any other file keeps its label alone: the file is in the repository and not on the site.

    >>> for_site("[how](docs/report.md#rules), [code](Makefile)", "README.md", "index.md")
    '[how](report.md#rules), code'
    """
    here = (ROOT / source).parent

    def rewritten(link: re.Match[str]) -> str:
        path = Path(os.path.normpath(here / link["target"]))
        if not path.is_relative_to(ROOT):
            return link[0]
        name = path.relative_to(ROOT).as_posix()
        if name.startswith("docs/") or name in ELSEWHERE:
            target = ELSEWHERE.get(name, name.removeprefix("docs/"))
            if target.startswith("tutorials/"):  # a page that is made of a Python file
                target = f"{target.removesuffix('.py').removesuffix('.md')}.md"
            relative = os.path.relpath(target, Path(page).parent)
            return f"[{link['label']}]({relative}{link['anchor'] or ''})"
        return link["label"] if path.exists() else link[0]

    def moved(picture: re.Match[str]) -> str:
        path = _outside(here / picture["target"])
        return (
            f"![{picture['label']}]({os.path.relpath(path, Path(page).parent)})"
            if path
            else picture[0]
        )

    return _LINK.sub(rewritten, _PICTURE.sub(moved, markdown))


def _outside(path: Path) -> str | None:
    """The name of a file of the repository that is not below docs/; None for any other."""
    name = os.path.relpath(path, ROOT)
    return None if name.startswith(("..", "docs/")) or not path.exists() else name


def pictures(markdown: str, source: str) -> dict[str, bytes]:
    """The pictures of a page that are not below docs/: on the site they have the same names.

    >>> list(pictures("![a map](figures/family.svg)", "docs/family.md"))
    []
    """
    found = (ROOT / source).parent
    named = (_outside(found / picture["target"]) for picture in _PICTURE.finditer(markdown))
    return {name: (ROOT / name).read_bytes() for name in named if name}
