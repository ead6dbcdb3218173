"""The files of a sweep: the user's own (TOML or JSON), and ``sweep.json`` in its directory.

sweep.json          the matrix, with the command and the version that made it
runs/ENV/LABEL/seed-N/    the run directories
logs/ENV/LABEL/seed-N.txt   what the workers said; seed-N.json: how far they are
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from movi.agents.registry import find
from movi.errors import UserError
from movi.files import write_aside, writing
from movi.reading import checked, parsed, text
from movi.sweeps.matrix import Cell, Job, Sweep, Variant, cross
from movi.training.run_files import (
    LARGEST_SWEEP,
    SWEEP_FILE,
    SWEEP_FORMAT,
    cell_config,
    sweep_of,
)
from movi.version import __version__

MOST_SEEDS = 10_000


@dataclass(frozen=True)
class Stored:
    """A sweep that has a directory."""

    sweep: Sweep
    """The matrix."""
    command: str
    """What made it."""
    version: str
    """Of movi, then."""


def run_directory(directory: Path, cell: Cell, seed: int) -> Path:
    """Where a run is."""
    return directory / "runs" / cell.place(seed)


def log_file(directory: Path, job: Job) -> Path:
    """What a job's workers printed, one after the other."""
    return directory / "logs" / job.place.with_suffix(".txt")


def progress_file(directory: Path, job: Job) -> Path:
    """How far a job is."""
    return directory / "logs" / job.place.with_suffix(".json")


def write_sweep(directory: Path, sweep: Sweep, command: str) -> None:
    """Writes ``sweep.json`` into a directory, which is made if need be."""
    with writing(directory):
        directory.mkdir(parents=True, exist_ok=True)
        write_aside(directory / SWEEP_FILE, to_json(sweep, command))


def to_json(sweep: Sweep, command: str) -> str:
    """The text of ``sweep.json``."""
    data = {
        "format": SWEEP_FORMAT,
        "name": sweep.name,
        "scale": sweep.scale,
        "version": __version__,
        "command": command,
        "cells": [
            {
                "env": cell.env,
                "label": cell.label,
                "seeds": list(cell.seeds),
                "together": cell.together,
                "config": {k: v for k, v in cell.config.to_dict().items() if k != "seed"},
            }
            for cell in sweep.cells
        ],
    }
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def read_sweep(directory: Path) -> Stored:
    """The inverse of ``write_sweep``; whatever is wrong with the file is one clear line."""
    file = directory / SWEEP_FILE
    return from_json(text(file, LARGEST_SWEEP), str(file))


def from_json(content: str, file: str = SWEEP_FILE) -> Stored:
    """The inverse of ``to_json``."""
    found = sweep_of(content, file)
    cells = []
    for i, cell in enumerate(found.cells):
        config = cell_config(cell, f"{file}: cell {i}: config")
        cells.append(Cell(cell.env, cell.label, tuple(cell.seeds), config, cell.together))
    try:
        return Stored(Sweep(found.name, found.scale, tuple(cells)), found.command, found.version)
    except UserError as error:
        raise UserError(f"{file}: {error}") from None


@dataclass(frozen=True)
class _Matrix:
    """A user's own sweep."""

    environments: list[str]
    algorithms: list[str | dict[str, Any]]
    seeds: int | list[int]
    name: str = ""
    preset: str | None = None
    config: dict[str, Any] = field(default_factory=dict)
    together: int | None = None


@dataclass(frozen=True)
class _Variant:
    """One of its algorithms; what else is there are fields of a config."""

    algorithm: str
    label: str = ""
    preset: str | None = None


def read_sweep_file(file: Path, trust: Collection[str] = ()) -> Sweep:
    """A user's own sweep.

    A table with ``environments`` (ids), ``algorithms`` (names, or tables with ``algorithm``,
    ``label``, ``preset``, options and any fields of a config), ``seeds`` (how many, or which), and,
    if need be, ``name``, ``preset``, ``config`` (fields that all runs share) and ``together`` (how
    many seeds one task takes side by side; all of them, if it is left out). ``trust`` are the
    modules that algorithms may name (MODULE:NAME).
    """
    kind = file.suffix.lower().removeprefix(".")
    if kind not in ("toml", "json"):
        raise UserError(f"sweep: {file}, expected a file that ends in .toml or .json")
    data = checked(parsed(text(file), str(file), kind), dict[str, Any], str(file))
    known = {own.name for own in fields(_Matrix)}
    unknown = sorted(set(data) - known)
    if unknown:
        raise UserError(
            f"{file}: unknown: {', '.join(unknown)}; expected some of {', '.join(sorted(known))}"
        )
    given: _Matrix = checked(data, _Matrix, str(file))
    _check_options(given.config, f"{file}: config")
    variants = [_variant(own, f"{file}: algorithms") for own in given.algorithms]
    try:
        for variant in variants:
            find(variant.algorithm, trust)
        return cross(
            given.name or file.stem,
            given.environments,
            variants,
            _seeds(given.seeds),
            preset=given.preset,
            options=given.config,
            together=given.together,
        )
    except UserError as error:
        line = str(error)
        raise UserError(line if line.startswith(str(file)) else f"{file}: {line}") from None


def _variant(data: str | dict[str, Any], name: str) -> Variant:
    if isinstance(data, str):
        return Variant(data)
    own: _Variant = checked(data, _Variant, name)
    options = {k: v for k, v in data.items() if k not in ("algorithm", "label", "preset")}
    _check_options(options, f"{name}: {own.algorithm}")
    return Variant(own.algorithm, own.label, own.preset, tuple(options.items()))


def _check_options(options: Mapping[str, Any], name: str) -> None:
    """Options do not say again what the matrix says."""
    for taken in ("algorithm", "env", "seed", "preset"):
        if taken in options:
            raise UserError(f"{name}: {taken}, expected beside the others, not among the options")


def _seeds(data: int | list[int]) -> Sequence[int]:
    if isinstance(data, list):
        return data
    if 1 <= data <= MOST_SEEDS:
        return range(data)
    raise UserError(f"seeds: {data!r}, expected how many (from 1 to {MOST_SEEDS}) or a list")
