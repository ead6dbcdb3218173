"""``evidence.toml``: which matrices were planned, and what others have published."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from momentum_rl.errors import UserError
from momentum_rl.plumbing.reading import checked, parsed, text
from momentum_rl.runs.sweep import Sweep, read_sweep_file
from paper.claims.tables import read_table

PLAN_FILE = "evidence.toml"


@dataclass(frozen=True)
class _PlanFile:
    title: str
    matrices: list[str]
    published: str
    protocols: dict[str, list[str]]


@dataclass(frozen=True)
class PublishedScore:
    """What others found after so many agent steps."""

    env: str
    label: str
    steps: int
    score: float
    source: str


@dataclass(frozen=True)
class Plan:
    """The matrices, in the order in which they are run, and the published scores."""

    title: str
    matrices: tuple[Sweep, ...]
    published: tuple[PublishedScore, ...]
    protocols: Mapping[str, Sequence[str]]
    """By name: the matrices of runs with these settings, which alone are compared."""

    def protocol_of(self, matrix: str) -> str:
        """The protocol of a matrix."""
        return next(name for name, files in self.protocols.items() if f"{matrix}.toml" in files)


def read_plan(folder: Path) -> Plan:
    """The plan of a folder; whatever is wrong with it is one clear line."""
    file = folder / PLAN_FILE
    given: _PlanFile = checked(parsed(text(file), str(file), "toml"), _PlanFile, str(file))
    for name in (*given.matrices, given.published):
        if Path(name).name != name:
            raise UserError(f"{file}: {name!r}, expected the name of a file beside it")
    for name in given.matrices:
        if sum(name in files for files in given.protocols.values()) != 1:
            raise UserError(f"{file}: {name}, expected in one of the protocols")
    matrices = tuple(read_sweep_file(folder / name) for name in given.matrices)
    return Plan(given.title, matrices, _published(folder / given.published), given.protocols)


def _published(file: Path) -> tuple[PublishedScore, ...]:
    table = read_table(file, ("steps", "score"), words=("env", "label", "source"))
    steps, scores = (table.numbers[name].tolist() for name in ("steps", "score"))
    for n, x in zip(steps, scores):
        if not (1 <= n < 2**63 and n == int(n) and math.isfinite(x)):
            raise UserError(f"{file}: {x} after {n} steps, expected a score after whole steps")
    words = (table.words[name] for name in ("env", "label", "source"))
    return tuple(
        PublishedScore(env, label, int(n), x, source)
        for env, label, source, n, x in zip(*words, steps, scores)
    )
