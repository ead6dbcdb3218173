"""A sweep: environments × variants of algorithms × seeds, its matrix in a file, its directory.

A cell is one environment and one variant; its runs differ in the seed alone. ``sweep.json`` has the
cells, with the command and the version that made it, and every run its place:

    runs/MinAtar-Breakout/momentum-dqn-beta-0.5/seed-3/

with the environment's id, the variant's label and the seed as their names.
"""

import re
import shutil
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from momentum_rl.agents.registry import find
from momentum_rl.core.options import LARGEST_STEP
from momentum_rl.errors import UserError, check_count
from momentum_rl.plumbing.files import write_aside, writing
from momentum_rl.plumbing.reading import as_json, checked, of_format, parsed, text
from momentum_rl.runs.config import FIELDS, Config, changes
from momentum_rl.runs.presets import chosen_fields
from momentum_rl.version import __version__

SWEEP_FILE = "sweep.json"
RUNS = "runs"
FORMAT = 1
LARGEST = 64 * 2**20
"""Bytes of a ``sweep.json``."""
MOST_RUNS = 100_000
"""Runs of a sweep: the paper's largest has 400."""
AS_WRITTEN = "as written"
"""The scale of a sweep from a file that has no scales."""
LONGEST_LABEL = 100
"""Characters of a label: file systems have names of up to 255 bytes."""


@dataclass(frozen=True)
class Cell:
    """The runs of one variant on one environment: they differ in the seed alone."""

    env: str
    label: str
    seeds: tuple[int, ...]
    """One run for each."""
    config: Config
    """The config of the first seed's run."""

    def __post_init__(self) -> None:
        """Checks what becomes the name of a directory, and the seeds."""
        plain = re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._:/+-]*", self.env) and ".." not in self.env
        if not plain or len(self.env) > LONGEST_LABEL:
            raise UserError(f"env: {self.env!r}, expected an id such as MinAtar/Breakout")
        if self.env != self.config.env:
            raise UserError(f"env: {self.env!r}, but its config says {self.config.env!r}")
        _check_label("label", self.label)
        for seed in self.seeds:
            if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= LARGEST_STEP:
                raise UserError(f"seeds: {seed!r}, expected integers from 0 to {LARGEST_STEP}")
        if not self.seeds or len(set(self.seeds)) != len(self.seeds):
            raise UserError(f"seeds: {list(self.seeds)}, expected at least one, all different")
        object.__setattr__(self, "config", self.config_of(self.seeds[0]))

    def config_of(self, seed: int) -> Config:
        """The config of a seed's run."""
        return replace(self.config, seed=seed)

    def place(self, seed: int) -> PurePosixPath:
        """A run's place below ``runs/`` (and its log's below ``logs/``)."""
        return PurePosixPath(self.env.replace("/", "-"), slug(self.label), f"seed-{seed}")


@dataclass(frozen=True)
class Sweep:
    """A matrix of runs."""

    name: str
    scale: str
    """quick, laptop or paper; or "as written", from a file."""
    cells: tuple[Cell, ...]
    """In the order in which they are run."""
    command: str = ""
    """The command that made it."""
    version: str = __version__
    """The version of movi that made it."""

    def __post_init__(self) -> None:
        """Checks that every run has a place of its own."""
        _check_label("name", self.name)
        if not self.cells:
            raise UserError(f"sweep {self.name}: no runs, expected at least one")
        check_size(self.name, self.runs)
        seen: dict[PurePosixPath, Cell] = {}
        for cell in self.cells:
            other = seen.setdefault(cell.place(0).parent, cell)
            if other is not cell:
                raise UserError(
                    f"label: {cell.label!r} on {cell.env} has the directory of {other.label!r} on "
                    f"{other.env}, expected labels that differ in letters or digits"
                )

    @property
    def runs(self) -> int:
        """The number of runs."""
        return sum(len(cell.seeds) for cell in self.cells)

    @property
    def steps(self) -> int:
        """Agent steps of all runs."""
        return sum(len(cell.seeds) * cell.config.steps for cell in self.cells)

    @cached_property
    def _places(self) -> dict[PurePosixPath, int]:
        return {cell.place(0).parent: i for i, cell in enumerate(self.cells)}

    def index_of(self, place: PurePosixPath, config: Config) -> int | None:
        """The number of the cell that a run with this place below ``runs/`` belongs to.

        The one whose place it is; for a run that was put elsewhere, the first one with its config.
        None if the config of neither is the run's.
        """
        placed = self._places.get(place.parent)
        for i in range(len(self.cells)) if placed is None else [placed]:
            cell = self.cells[i]
            ours = cell.env == config.env and config.seed in cell.seeds
            if ours and not changes(cell.config_of(config.seed), config):
                return i
        return None


def check_size(name: str, runs: int) -> None:
    """That a sweep does not have too many."""
    if runs > MOST_RUNS:
        raise UserError(f"sweep {name}: {runs} runs, expected at most {MOST_RUNS}")


def slug(label: str) -> str:
    """A label as a name of a directory or a file.

    >>> slug("momentum-dqn β=0.5"), slug("deep-sql (printed)")
    ('momentum-dqn-beta-0.5', 'deep-sql-printed')
    """
    for letter, word in (("β", "beta"), ("η", "eta"), ("κ", "kappa")):
        label = label.replace(letter, word)
    return re.sub(r"[^A-Za-z0-9.]+", "-", label).strip("-.")


def _check_label(name: str, label: str) -> None:
    """What becomes the name of a directory: short, and of characters that are seen."""
    if not slug(label) or not label.isprintable() or len(label) > LONGEST_LABEL:
        raise UserError(
            f"{name}: {label!r}, expected letters or digits, at most {LONGEST_LABEL} characters"
        )


@dataclass(frozen=True)
class Matrix:
    """Every algorithm on every environment with every seed: a sweep as a file describes it.

    >>> sweep = Matrix(["CartPole-v1"], ["dqn", "deep-sql"], 3, "mine").sweep()
    >>> sweep.runs, str(sweep.cells[1].place(2))
    (6, 'CartPole-v1/deep-sql/seed-2')
    """

    environments: list[str]
    """Ids."""
    algorithms: list[str | dict[str, Any]]
    """Names; or tables with ``algorithm`` and whatever tells it from the others: ``label``,
    ``preset``, its options, and fields of a config."""
    seeds: int | list[int]
    """How many, or which."""
    name: str
    """Of the sweep."""
    preset: str | None = None
    """Of every algorithm that has none of its own; by default the environment's usual one."""
    config: dict[str, Any] = field(default_factory=dict)
    """Fields of the config that differ from the preset's, and options of those algorithms that have
    them; an algorithm's own come after them."""

    def sweep(self, scale: str = AS_WRITTEN, trust: Collection[str] = ()) -> Sweep:
        """The sweep at its scale; ``trust`` are the modules that algorithms may name."""
        seeds = self.seeds
        if isinstance(seeds, int):
            check_count("seeds", seeds, most=MOST_RUNS)
            seeds = list(range(seeds))
        check_size(self.name, len(self.environments) * len(self.algorithms) * len(seeds))
        variants = [_variant(data) for data in self.algorithms]
        allowed = [FIELDS | _names(find(variant.algorithm, trust)) for variant in variants]
        if unknown := sorted(set(self.config).difference(*allowed)):
            raise UserError(f"config: unknown or missing fields: {', '.join(unknown)}")
        for given in (self.config, *(variant.options for variant in variants)):
            for taken in {"algorithm", "env", "seed", "preset"} & set(given):
                raise UserError(f"{taken}: among the options, expected beside them")
        cells = []
        for env in self.environments:
            for variant, names in zip(variants, allowed):
                config = {
                    **chosen_fields(variant.preset or self.preset, env, variant.algorithm),
                    **{name: value for name, value in self.config.items() if name in names},
                    **variant.options,
                    "algorithm": variant.algorithm,
                    "env": env,
                }
                label = variant.label or variant.algorithm
                one = Config.from_flat(config, f"{label} on {env}")
                cells.append(Cell(env, label, tuple(seeds), one))
        return Sweep(self.name, scale, tuple(cells))


@dataclass(frozen=True)
class Variant:
    """One of a matrix's algorithms."""

    algorithm: str
    label: str = ""
    preset: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    """Its options, and fields of the config, that differ from the matrix's."""


def _variant(data: str | dict[str, Any]) -> Variant:
    """What is no field of a variant is an option."""
    if isinstance(data, str):
        return Variant(data)
    head = {key: data[key] for key in ("algorithm", "label", "preset") if key in data}
    options = {key: value for key, value in data.items() if key not in head}
    variant: Variant = checked({**head, "options": options}, Variant, "algorithms")
    return variant


def _names(kind: Any) -> set[str]:
    return {option.name for option in fields(kind)}


def read_sweep_file(file: Path, trust: Collection[str] = (), scale: str | None = None) -> Sweep:
    """A sweep from a file (.toml or .json) with the fields of a ``Matrix``.

    It may have ``scales``: by name, what replaces these fields at that scale. ``trust`` are the
    modules that algorithms may name (MODULE:NAME).
    """
    kind = file.suffix.lower().removeprefix(".")
    if kind not in ("toml", "json"):
        raise UserError(f"sweep: {file}, expected a file that ends in .toml or .json")
    data = checked(parsed(text(file), str(file), kind), dict[str, Any], str(file))
    scales = checked(data.pop("scales", {}), dict[str, dict[str, Any]], f"{file}: scales")
    if scale not in (scales or (None,)):
        expected = f"one of {', '.join(scales)}" if scales else f"none: {file} has no scales"
        raise UserError(f"scale: {scale!r}, expected {expected}")
    keys = {"name": file.stem, **data, **scales.get(scale, {})}
    if unknown := sorted(set(keys) - _names(Matrix)):
        expected = ", ".join(sorted({*_names(Matrix), "scales"}))
        raise UserError(f"{file}: unknown: {', '.join(unknown)}; expected some of {expected}")
    matrix: Matrix = checked(keys, Matrix, str(file))
    try:
        return matrix.sweep(scale or AS_WRITTEN, trust)
    except UserError as error:
        raise UserError(f"{file}: {error}") from None


def run_directory(directory: Path, cell: Cell, seed: int) -> Path:
    """Where a run of a sweep is."""
    return directory / RUNS / cell.place(seed)


@dataclass(frozen=True)
class Job:
    """A run of a cell: what one worker process does."""

    index: int
    """The number of the cell in the sweep."""
    cell: Cell
    seed: int

    def run(self, directory: Path) -> Path:
        """The run's directory, in a sweep's directory."""
        return run_directory(directory, self.cell, self.seed)

    def log(self, directory: Path) -> Path:
        """What its workers printed, one after the other: logs/ENV/LABEL/seed-N.txt."""
        return directory / "logs" / self.cell.place(self.seed).with_suffix(".txt")

    def discard(self, directory: Path) -> None:
        """Removes checkpoints and replay, when it is complete: 400 Atari replays are 3 TB."""
        for name in ("checkpoint", "replay"):
            shutil.rmtree(self.run(directory) / name, ignore_errors=True)

    def __str__(self) -> str:
        return f"{self.cell.env} {self.cell.label}, seed {self.seed}"


def jobs_of(sweep: Sweep) -> Iterator[Job]:
    """The jobs of a sweep, in its order."""
    for index, cell in enumerate(sweep.cells):
        for seed in cell.seeds:
            yield Job(index, cell, seed)


def write_sweep(directory: Path, sweep: Sweep) -> None:
    """Writes ``sweep.json`` into a directory, which is made if need be."""
    with writing(directory):
        directory.mkdir(parents=True, exist_ok=True)
        write_aside(directory / SWEEP_FILE, to_json(sweep))


def to_json(sweep: Sweep) -> str:
    """The text of ``sweep.json``."""
    cells = [
        {
            "env": cell.env,
            "label": cell.label,
            "seeds": cell.seeds,
            "config": {k: v for k, v in cell.config.to_dict().items() if k != "seed"},
        }
        for cell in sweep.cells
    ]
    names = ("name", "scale", "version", "command")
    data = {"format": FORMAT, **{name: getattr(sweep, name) for name in names}, "cells": cells}
    return as_json(data, indent=1, ensure_ascii=False) + "\n"


def read_sweep(directory: Path) -> Sweep:
    """The inverse of ``write_sweep``; whatever is wrong with the file is one clear line."""
    file = directory / SWEEP_FILE
    return from_json(text(file, LARGEST), str(file))


def from_json(content: str, file: str = SWEEP_FILE) -> Sweep:
    """The inverse of ``to_json``."""
    data = of_format(content, FORMAT, file)
    cells = checked(data.get("cells"), list[Any], f"{file}: cells")
    for i, cell in enumerate(cells):
        if isinstance(cell, dict) and isinstance(cell.get("config"), dict):
            place = f"{file}: cell {i}: config"
            cell["config"] = Config.from_dict({**cell["config"], "seed": 0}, place)
    sweep: Sweep = checked({"command": None, "version": None, **data, "cells": cells}, Sweep, file)
    return sweep


def find_job(directory: Path, index: int, seed: int) -> Job:
    """A job of a sweep's directory, by its cell and its seed."""
    for job in jobs_of(read_sweep(directory)):
        if (job.index, job.seed) == (index, seed):
            return job
    raise UserError(f"{directory}: no run of cell {index} with seed {seed}")


def difference(old: Sweep, new: Sweep) -> str:
    """How a matrix differs from another, in one line; empty if it does not."""
    before = {(cell.env, cell.label): cell for cell in old.cells}
    after = {(cell.env, cell.label): cell for cell in new.cells}
    parts = [f"without {env} {label}" for env, label in before if (env, label) not in after]
    parts += [f"new {env} {label}" for env, label in after if (env, label) not in before]
    for key in before.keys() & after.keys():
        one, other = before[key], after[key]
        changed = config_changes(one.config, other.config_of(one.config.seed))
        if one.seeds != other.seeds:
            changed.insert(0, f"seeds {list(one.seeds)} → {list(other.seeds)}")
        if changed:
            parts.append(f"{' '.join(key)}: {', '.join(changed)}")
    if len(parts) > 4:
        parts[4:] = [f"and {len(parts) - 4} more"]
    return "; ".join(parts)


def config_changes(old: Config, new: Config) -> list[str]:
    """The fields in which a config differs from another, of those that decide results."""
    return [f"{name} {a} → {b}" for name, (a, b) in changes(old, new).items()]
