"""The licences of what we depend on, from the metadata of what is installed: `make licences`."""

import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageMetadata, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PAGE = ROOT / "docs" / "licences.md"
DEVELOPERS = ("dev", "docs")
LONGEST = 60  # characters of a licence's name; what is longer is its text

HEAD = """# Licences

`momentum-rl` is under the Apache licence 2.0. This is what its authors say of the licence of each
package that comes with it, and with which extra first; those for developers alone are not here.
`make licences` writes this page from what is installed. Mind the extra `atari`: ale-py is under the
GPL.

| package | comes with | licence |
|---|---|---|
"""


def needed(line: str) -> Iterator[str]:
    """The distributions that a requirement brings with it on this machine, itself first."""
    seen: set[tuple[str, str]] = set()
    waiting = [Requirement(line)]
    while waiting:
        own = waiting.pop()
        name = canonicalize_name(own.name)
        if name == PROJECT["name"]:
            continue  # an extra that includes another, which has rows of its own
        for extra in ("", *own.extras):
            if (name, extra) in seen:
                continue
            seen.add((name, extra))
            for text in distribution(name).requires or ():
                below = Requirement(text)
                if below.marker is None or below.marker.evaluate({"extra": extra}):
                    waiting.append(below)
        yield name


def licence(metadata: PackageMetadata) -> str:
    """Its expression; else its name; else what the classifiers say."""
    said = metadata.get("License-Expression") or metadata.get("License") or ""
    if said and said != "UNKNOWN" and len(said) <= LONGEST and "\n" not in said:
        return said
    prefix = "License :: "
    classifiers = [c for c in metadata.get_all("Classifier") or () if c.startswith(prefix)]
    return "; ".join(c.rpartition(" :: ")[2] for c in classifiers) or "not stated"


def rows() -> dict[str, tuple[str, str]]:
    """By a distribution's name, the extra that it first comes with and its licence."""
    found: dict[str, tuple[str, str]] = {}
    extras = {k: v for k, v in PROJECT["optional-dependencies"].items() if k not in DEVELOPERS}
    for extra, lines in {"every installation": PROJECT["dependencies"], **extras}.items():
        for name in (name for line in lines for name in needed(line)):
            found.setdefault(name, (extra, licence(distribution(name).metadata)))
    return dict(sorted(found.items()))


def page() -> str:
    """The page."""
    lines = (f"| {name} | {extra} | {said} |\n" for name, (extra, said) in rows().items())
    return HEAD + "".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page())
