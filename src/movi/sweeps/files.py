"""The files of a sweep: the user's own (TOML or JSON), and ``sweep.json`` in its directory.

sweep.json          the matrix, with the command and the version that made it
runs/ENV/LABEL/seed-N/    the run directories
logs/ENV/LABEL/seed-N.txt   what the workers said; seed-N.json: how far they are
"""

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from movi.errors import UserError
from movi.files import write_aside
from movi.sweeps.matrix import Cell, Job, Sweep, Variant, cross
from movi.training.config import Config
from movi.version import __version__

FORMAT = 1
SWEEP_FILE = "sweep.json"
LARGEST_FILE = 64 * 2**20


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
    try:
        directory.mkdir(parents=True, exist_ok=True)
        write_aside(directory / SWEEP_FILE, to_json(sweep, command))
    except OSError as error:
        raise UserError(f"out: {directory} cannot be written: {error.strerror}") from None


def to_json(sweep: Sweep, command: str) -> str:
    """The text of ``sweep.json``."""
    data = {
        "format": FORMAT,
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
                "config": {k: v for k, v in asdict(cell.config).items() if k != "seed"},
            }
            for cell in sweep.cells
        ],
    }
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def read_sweep(directory: Path) -> Stored:
    """The inverse of ``write_sweep``; whatever is wrong with the file is one clear line."""
    file = directory / SWEEP_FILE
    return from_json(_text(file), str(file))


def from_json(text: str, file: str = SWEEP_FILE) -> Stored:
    """The inverse of ``to_json``."""
    data = _table(_parsed(text, "json", file), file)
    number = data.get("format")
    if isinstance(number, int) and number > FORMAT:
        raise UserError(
            f"{file}: format {number}, written by a newer version of movi; this one reads {FORMAT}"
        )
    if number != FORMAT:
        raise UserError(f"{file}: not a sweep's file (format {number!r}, expected {FORMAT})")
    texts = {name: data.get(name) for name in ("name", "scale", "command", "version")}
    for name, value in texts.items():
        if not isinstance(value, str):
            raise UserError(f"{file}: {name}: {value!r}, expected a text")
    cells = tuple(
        _stored_cell(cell, f"{file}: cell {i}")
        for i, cell in enumerate(_list(data.get("cells"), f"{file}: cells"))
    )
    try:
        sweep = Sweep(str(texts["name"]), str(texts["scale"]), cells)
    except UserError as error:
        raise UserError(f"{file}: {error}") from None
    return Stored(sweep, str(texts["command"]), str(texts["version"]))


def _stored_cell(data: Any, name: str) -> Cell:
    data = _table(data, name)
    for key in ("env", "label"):
        if not isinstance(data.get(key), str):
            raise UserError(f"{name}: {key}: {data.get(key)!r}, expected a text")
    seeds = tuple(_list(data.get("seeds"), f"{name}: seeds"))
    fields = {**_table(data.get("config"), f"{name}: config"), "seed": seeds[0] if seeds else 0}
    config = Config.from_dict(fields, f"{name}: config")
    return Cell(data["env"], data["label"], seeds, config, data.get("together"))


def read_sweep_file(file: Path) -> Sweep:
    """A user's own sweep.

    A table with ``environments`` (ids), ``algorithms`` (names, or tables with ``algorithm``,
    ``label``, ``preset`` and any fields of a config), ``seeds`` (how many, or which), and, if need
    be, ``name``, ``preset``, ``config`` (fields that all runs share) and ``together`` (how many
    seeds one task takes side by side; all of them, if it is left out).
    """
    kind = file.suffix.lower().removeprefix(".")
    if kind not in ("toml", "json"):
        raise UserError(f"sweep: {file}, expected a file that ends in .toml or .json")
    data = _table(_parsed(_text(file), kind, str(file)), str(file))
    known = {"name", "environments", "algorithms", "seeds", "preset", "config", "together"}
    unknown = sorted(set(data) - known)
    if unknown:
        raise UserError(
            f"{file}: unknown: {', '.join(unknown)}; expected some of {', '.join(sorted(known))}"
        )
    missing = sorted({"environments", "algorithms", "seeds"} - set(data))
    if missing:
        raise UserError(f"{file}: missing: {', '.join(missing)}")
    for name in ("name", "preset"):
        if not isinstance(data.get(name, ""), str):
            raise UserError(f"{file}: {name}: {data[name]!r}, expected a text")
    environments = _list(data["environments"], f"{file}: environments")
    for env in environments:
        if not isinstance(env, str):
            raise UserError(f"{file}: environments: {env!r}, expected a text")
    options = _table(data.get("config", {}), f"{file}: config")
    _check_options(options, f"{file}: config")
    try:
        return cross(
            data.get("name") or file.stem,
            environments,
            [_variant(v, str(file)) for v in _list(data["algorithms"], f"{file}: algorithms")],
            _seeds(data["seeds"]),
            preset=data.get("preset"),
            options=options,
            together=data.get("together"),
        )
    except UserError as error:
        text = str(error)
        raise UserError(text if text.startswith(str(file)) else f"{file}: {text}") from None


def _variant(data: Any, file: str) -> Variant:
    if isinstance(data, str):
        return Variant(data)
    data = _table(data, f"{file}: algorithms")
    for name in ("algorithm", "label", "preset"):
        if not isinstance(data.get(name, ""), str):
            raise UserError(f"{file}: {name}: {data[name]!r}, expected a text")
    if "algorithm" not in data:
        raise UserError(f"{file}: algorithms: {dict(data)!r} has no algorithm")
    options = {k: v for k, v in data.items() if k not in ("algorithm", "label", "preset")}
    _check_options(options, f"{file}: {data['algorithm']}")
    return Variant(
        data["algorithm"], data.get("label", ""), data.get("preset"), tuple(options.items())
    )


def _check_options(options: Mapping[str, Any], name: str) -> None:
    """Options do not say again what the matrix says."""
    for taken in ("algorithm", "env", "seed", "preset"):
        if taken in options:
            raise UserError(f"{name}: {taken}, expected beside the others, not among the options")


def _seeds(data: Any) -> Sequence[int]:
    if isinstance(data, list):
        return data
    if isinstance(data, int) and not isinstance(data, bool) and 1 <= data <= 10_000:
        return range(data)
    raise UserError(f"seeds: {data!r}, expected how many (from 1 to 10000) or a list")


def _text(file: Path) -> str:
    try:
        if file.stat().st_size > LARGEST_FILE:
            raise UserError(f"{file}: larger than {LARGEST_FILE >> 20} MB, expected a sweep")
        return file.read_bytes().decode()
    except OSError as error:
        raise UserError(f"{file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"{file}: not a text in UTF-8") from None


def _parsed(text: str, kind: str, name: str) -> Any:
    try:
        return tomllib.loads(text) if kind == "toml" else json.loads(text)
    except (ValueError, RecursionError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise UserError(f"{name}: not {kind.upper()}: {reason}") from None


def _table(data: Any, name: str) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise UserError(f"{name}: {type(data).__name__}, expected a table")
    return data


def _list(data: Any, name: str) -> list[Any]:
    if not isinstance(data, list) or not data:
        raise UserError(f"{name}: {data!r}, expected a list with something in it")
    return data
