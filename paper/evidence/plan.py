"""``evidence.toml``: which matrices were planned, and what others have published."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from momentum_rl.runs.sweep import Sweep, read_sweep_file
from paper.claims.tables import read_table

PLAN_FILE = "evidence.toml"


@dataclass(frozen=True)
class PublishedScore:
    """What others found."""

    env: str
    label: str
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
    """The plan of a folder."""
    given = tomllib.loads((folder / PLAN_FILE).read_text(encoding="utf-8"))
    table = read_table(folder / given["published"], ("score",), words=("env", "label", "source"))
    envs, labels, sources = table.words.values()
    scores = table.numbers["score"].tolist()
    return Plan(
        given["title"],
        tuple(read_sweep_file(folder / name) for name in given["matrices"]),
        tuple(map(PublishedScore, envs, labels, scores, sources)),
        given["protocols"],
    )
