"""The parts of the report, as data: a section loads its data and declares its figures.

A new part is a new ``Section``: a function that loads its data from a results directory (None if
there are none), and its figures, each with the verdicts that belong to it.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from momentum_rl.plumbing.reading import read
from momentum_rl.report.drawing.figure import Figure
from momentum_rl.report.verdict import Finding, Verdict


@dataclass(frozen=True)
class PageTable:
    """A table for the page."""

    caption: str
    rows: Sequence[Mapping[str, str | int | Path]]
    """By column, the same in every row; a path becomes a link."""
    folded: bool = False
    """Shown when asked for."""


@dataclass(frozen=True)
class Provenance:
    """What made a results file: the JSON beside it."""

    command: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)
    """Every setting, possibly nested."""
    seed: int | None = None
    version: str = ""
    """This package's; ``versions`` are of what it ran on."""
    versions: Mapping[str, str] = field(default_factory=dict)
    seconds: float | None = None

    @property
    def rows(self) -> list[tuple[str, object]]:
        """Settings, versions and time, by name."""
        rows = list(_flat(self.config))
        if self.seed is not None and "seed" not in self.config:
            rows.append(("seed", self.seed))
        if self.version:
            rows.append(("movi", self.version))
        rows += sorted(self.versions.items())
        if self.seconds is not None:
            rows.append(("time", f"{self.seconds:,.1f} s"))
        return rows


def _flat(config: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Nested settings as dotted names."""
    for key, value in config.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", json.dumps(value) if isinstance(value, list) else value


def read_provenance(path: Path) -> Provenance | None:
    """The provenance in a JSON file; None if there is none. Unknown keys are ignored."""
    return read(path, Provenance) if path.exists() else None


@dataclass(frozen=True)
class Loaded:
    """A section's data and where they came from."""

    data: Any
    """Whatever the section's figures and verdicts take."""
    files: tuple[Path, ...]
    """The files that the page links to."""
    provenance: Provenance | None = None
    notes: tuple[str, ...] = ()
    """What a reader must know of them: shown before the figures."""
    tables: tuple[PageTable, ...] = ()
    """Shown after the figures."""
    said: tuple[Verdict | Finding, ...] = ()
    """What is said of the data as a whole, whatever figures there are: shown before these."""


@dataclass(frozen=True)
class Entry:
    """A figure, the paper's claims that it illustrates, and what else it shows."""

    figure: Callable[[Any], Figure | None]
    """Draws the data; None if they lack what it draws."""
    verdicts: tuple[Callable[[Any], Verdict | Finding | None], ...] = ()
    """Judge or describe the data; None if they have nothing to say."""


@dataclass(frozen=True)
class Section:
    """A part of the page."""

    name: str
    """Its anchor."""
    title: str
    intro: str
    """What it is about, in a sentence or two."""
    made_by: str
    """The command that makes its data."""
    load: Callable[[Path], Loaded | None]
    """Its data in a results directory; None if there are none, UserError if they are not good."""
    entries: tuple[Entry, ...]
    expected: bool = True
    """Whether the page says that it is absent."""
    file: str = ""
    """The name of its CSV file, without the ending, if it is of one."""
