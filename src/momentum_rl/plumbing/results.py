"""Results on disk: a CSV, and beside it what made it (command, config, seed, versions)."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from momentum_rl.plumbing.files import write_aside, writing
from momentum_rl.plumbing.reading import as_json
from momentum_rl.plumbing.versions import NUMERIC, installed
from momentum_rl.version import __version__


def command_line(words: str, config: Any) -> str:
    """The complete command of a config, every number spelled out, without where it writes."""
    parts = [words]
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if field.name == "out":
            parts.append("--out DIR")
        elif isinstance(value, tuple):
            parts.append(f"--{field.name.replace('_', '-')} {' '.join(map(str, value))}")
        else:
            parts.append(f"--{field.name.replace('_', '-')} {value}")
    return " ".join(parts)


def record(words: str, config: Any, seconds: float) -> dict[str, Any]:
    """What made a result."""
    settings = {k: v for k, v in dataclasses.asdict(config).items() if k != "out"}
    return {
        "command": command_line(words, config),
        "config": settings,
        "seed": settings.get("seed"),
        "version": __version__,
        "versions": installed(NUMERIC),
        "seconds": round(seconds, 1),
    }


def write_table(
    directory: Path, name: str, columns: Mapping[str, Sequence[Any] | np.ndarray], made_by: Any
) -> Path:
    """Write ``name.csv`` and ``name.json``, each aside and then renamed into place."""
    rows = zip(*(_texts(column) for column in columns.values()))
    text = "\n".join([",".join(columns), *(",".join(row) for row in rows)]) + "\n"
    path = directory / f"{name}.csv"
    with writing(path):
        directory.mkdir(parents=True, exist_ok=True)
        write_aside(directory / f"{name}.json", as_json(made_by, indent=2) + "\n")
        write_aside(path, text)
    return path


def _texts(column: Sequence[Any] | np.ndarray) -> list[str]:
    array = np.asarray(column)
    if array.dtype.kind == "f":
        return [f"{x:.10g}" for x in array.tolist()]
    return [str(x) for x in array.tolist()]
