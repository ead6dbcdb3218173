"""Every variant of an algorithm on every environment with every seed; also from a user's file."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from momentum_rl.agents.registry import find, known
from momentum_rl.errors import UserError
from momentum_rl.plumbing.reading import checked, parsed, text
from momentum_rl.runs.config import FIELDS, Config
from momentum_rl.runs.presets import chosen_fields
from momentum_rl.runs.sweep import Cell, Sweep, check_size

AS_WRITTEN = "as written"
"""The scale of a sweep from a user's file."""
MOST_SEEDS = 10_000


@dataclass(frozen=True)
class Variant:
    """An algorithm with options, under a label of its own."""

    algorithm: str
    label: str = ""
    """Tells it from the sweep's other variants; by default the algorithm's name."""
    preset: str | None = None
    """The preset, if it is not the sweep's."""
    options: tuple[tuple[str, Any], ...] = ()
    """The algorithm's options, and fields of the config, that differ from the sweep's, such as
    (("beta", 0.5),)."""


def cross(
    name: str,
    environments: Sequence[str],
    variants: Sequence[Variant],
    seeds: Sequence[int],
    *,
    scale: str = AS_WRITTEN,
    preset: str | None = None,
    options: Mapping[str, Any] | None = None,
    together: int | None = None,
) -> Sweep:
    """Every variant on every environment with every seed.

    Args:
      name: of the sweep.
      environments: ids.
      variants: their labels all different.
      seeds: all different.
      scale: what the sweep's size is called.
      preset: of every variant that has none of its own; by default the environment's usual one.
      options: fields of the config that differ from the preset's, and options of those algorithms
        that have them; a variant's own come after them.
      together: how many seeds one task takes; by default as many as the plan finds room for.

    >>> sweep = cross("mine", ["CartPole-v1"], [Variant("dqn"), Variant("deep-sql")], range(3))
    >>> sweep.runs, str(sweep.cells[1].place(2))
    (6, 'CartPole-v1/deep-sql/seed-2')
    """
    check_size(name, len(environments) * len(variants) * len(seeds))
    options = options or {}
    kinds = [known(variant.algorithm) for variant in variants]
    has = FIELDS.union(*(_names(kind) for kind in kinds))
    if None not in kinds and (unknown := sorted(set(options) - has)):
        raise UserError(f"config: unknown or missing fields: {', '.join(unknown)}")
    cells = []
    for env in environments:
        for variant, kind in zip(variants, kinds):
            theirs = FIELDS | _names(kind)
            config = {
                **chosen_fields(variant.preset or preset, env, variant.algorithm),
                **{k: value for k, value in options.items() if kind is None or k in theirs},
                **dict(variant.options),
                "algorithm": variant.algorithm,
                "env": env,
            }
            label = variant.label or variant.algorithm
            one = Config.from_flat(config, f"{label} on {env}")
            cells.append(Cell(env, label, tuple(seeds), one, together))
    return Sweep(name, scale, tuple(cells))


def _names(kind: Any) -> set[str]:
    return set() if kind is None else {option.name for option in fields(kind)}


@dataclass(frozen=True)
class _Matrix:
    """A sweep as a file describes it."""

    environments: list[str]
    algorithms: list[str | dict[str, Any]]
    seeds: int | list[int]
    name: str = ""
    preset: str | None = None
    config: dict[str, Any] = field(default_factory=dict)
    together: int | None = None
    scales: dict[str, dict[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class _Algorithm:
    """One of its algorithms; what else is there are fields of a config."""

    algorithm: str
    label: str = ""
    preset: str | None = None


def read_sweep_file(file: Path, trust: Collection[str] = (), scale: str | None = None) -> Sweep:
    """A sweep from a file (.toml or .json).

    A table with ``environments`` (ids), ``algorithms`` (names, or tables with ``algorithm``,
    ``label``, ``preset``, options and any fields of a config), ``seeds`` (how many, or which), and,
    if need be, ``name``, ``preset``, ``config`` (fields that all runs share), ``together`` (how
    many seeds one task takes side by side; all of them, if it is left out) and ``scales``: by name,
    what replaces these keys at that scale. ``trust`` are the modules that algorithms may name
    (MODULE:NAME).
    """
    matrix = _at_scale(file, scale)
    variants = [_variant(data, f"{file}: algorithms") for data in matrix.algorithms]
    _check_options(matrix.config, f"{file}: config")
    try:
        for variant in variants:
            find(variant.algorithm, trust)
        return cross(
            matrix.name or file.stem,
            matrix.environments,
            variants,
            _seeds(matrix.seeds),
            scale=scale or AS_WRITTEN,
            preset=matrix.preset,
            options=matrix.config,
            together=matrix.together,
        )
    except UserError as error:
        line = str(error)
        raise UserError(line if line.startswith(str(file)) else f"{file}: {line}") from None


def _at_scale(file: Path, scale: str | None) -> _Matrix:
    """What a file says at one of its scales; it may have none."""
    kind = file.suffix.lower().removeprefix(".")
    if kind not in ("toml", "json"):
        raise UserError(f"sweep: {file}, expected a file that ends in .toml or .json")
    data = checked(parsed(text(file), str(file), kind), dict[str, Any], str(file))
    scales = checked(data.get("scales", {}), dict[str, dict[str, Any]], f"{file}: scales")
    if scale not in (scales or (None,)):
        expected = f"one of {', '.join(scales)}" if scales else f"none: {file} has no scales"
        raise UserError(f"scale: {scale!r}, expected {expected}")
    keys = {**data, **scales.get(scale, {})}
    if unknown := sorted(set(keys) - _names(_Matrix)):
        expected = ", ".join(sorted(_names(_Matrix)))
        raise UserError(f"{file}: unknown: {', '.join(unknown)}; expected some of {expected}")
    matrix: _Matrix = checked(keys, _Matrix, str(file))
    return matrix


def _variant(data: str | dict[str, Any], name: str) -> Variant:
    if isinstance(data, str):
        return Variant(data)
    head: _Algorithm = checked(data, _Algorithm, name)
    options = {k: v for k, v in data.items() if k not in _names(_Algorithm)}
    _check_options(options, f"{name}: {head.algorithm}")
    return Variant(head.algorithm, head.label, head.preset, tuple(options.items()))


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
