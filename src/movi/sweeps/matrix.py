"""A sweep as data: environments × variants of algorithms × seeds.

A cell is one environment and one variant; its seeds differ in nothing else. Every run of a sweep
has its place in the sweep's directory:

    runs/MinAtar-Breakout/momentum-dqn-beta-0.5/seed-3/

with the environment's id, the variant's label and the seed as their names.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import PurePosixPath
from typing import Any

from movi.agents.options import LARGEST_STEP
from movi.agents.registry import known
from movi.errors import UserError
from movi.training.config import Config, flat
from movi.training.presets import preset_fields, usual_preset

AS_WRITTEN = "as written"
"""The scale of a sweep from a user's file."""
MOST_RUNS = 100_000
"""Runs of a sweep: the paper's largest has 400."""
LONGEST_LABEL = 100
"""Characters of a label: file systems have names of up to 255 bytes."""


@dataclass(frozen=True)
class Variant:
    """An algorithm with options, under a label of its own."""

    algorithm: str
    """Its name."""
    label: str = ""
    """Tells it from the sweep's other variants; by default the algorithm's name."""
    preset: str | None = None
    """In place of the sweep's."""
    options: tuple[tuple[str, Any], ...] = ()
    """The algorithm's options, and fields of the config, that differ from the sweep's, such as
    (("beta", 0.5),)."""


@dataclass(frozen=True)
class Cell:
    """The runs of one variant on one environment: they differ in the seed alone."""

    env: str
    """The environment's id."""
    label: str
    """The variant's."""
    seeds: tuple[int, ...]
    """One run for each."""
    config: Config
    """Of the first seed's run."""
    together: int | None = None
    """How many of the seeds one task takes, side by side; None: left to the plan."""

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
    """What it is called."""
    scale: str
    """quick, laptop or paper; or "as written", from a file."""
    cells: tuple[Cell, ...]
    """In the order in which they are run."""

    def __post_init__(self) -> None:
        """Checks that every run has a place of its own."""
        _check_label("name", self.name)
        if not self.cells:
            raise UserError(f"sweep {self.name}: no runs, expected at least one")
        if self.runs > MOST_RUNS:
            raise UserError(f"sweep {self.name}: {self.runs} runs, expected at most {MOST_RUNS}")
        seen: dict[PurePosixPath, Cell] = {}
        for cell in self.cells:
            _check_cell(cell)
            other = seen.setdefault(cell.place(0).parent, cell)
            if other is not cell:
                raise UserError(
                    f"label: {cell.label!r} on {cell.env} has the directory of {other.label!r} on "
                    f"{other.env}, expected labels that differ in letters or digits"
                )

    @property
    def runs(self) -> int:
        """How many there are."""
        return sum(len(cell.seeds) for cell in self.cells)

    @property
    def steps(self) -> int:
        """Agent steps of all runs."""
        return sum(len(cell.seeds) * cell.config.steps for cell in self.cells)


@dataclass(frozen=True)
class Job:
    """What one worker process does: some seeds of a cell, together."""

    index: int
    """Of the cell in the sweep."""
    cell: Cell
    """The cell."""
    seeds: tuple[int, ...]
    """Some of its seeds."""

    @property
    def place(self) -> PurePosixPath:
        """Of its log and its progress: that of its first run."""
        return self.cell.place(self.seeds[0])

    def __str__(self) -> str:
        """For people."""
        plural = "seeds" if len(self.seeds) > 1 else "seed"
        return f"{self.cell.env} {self.cell.label}, {plural} {', '.join(map(str, self.seeds))}"


def jobs_of(sweep: Sweep) -> Iterator[Job]:
    """The jobs of a sweep, in its order."""
    for index, cell in enumerate(sweep.cells):
        together = cell.together or 1
        for first in range(0, len(cell.seeds), together):
            yield Job(index, cell, cell.seeds[first : first + together])


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
    _check_shared(options or {}, variants)
    return Sweep(
        name,
        scale,
        tuple(
            replace(
                _cell(env, variant, tuple(seeds), preset, dict(options or {})), together=together
            )
            for env in environments
            for variant in variants
        ),
    )


def _check_shared(options: Mapping[str, Any], variants: Sequence[Variant]) -> None:
    """What all runs share is a field of the config, or an option of some algorithm."""
    kinds = [known(variant.algorithm) for variant in variants]
    has = {field.name for field in fields(Config)}
    has |= {field.name for kind in kinds if kind is not None for field in fields(kind)}
    unknown = sorted(set(options) - has)
    if unknown and None not in kinds:
        raise UserError(f"config: unknown or missing fields: {', '.join(unknown)}")


def _cell(
    env: str, variant: Variant, seeds: tuple[int, ...], preset: str | None, options: dict[str, Any]
) -> Cell:
    named = variant.preset or preset or usual_preset(env, variant.algorithm)
    theirs = known(variant.algorithm)
    chosen = preset_fields(named)
    has = {field.name for field in (*fields(Config), *(fields(theirs) if theirs else ()))}
    own = {
        **chosen,
        **{name: value for name, value in options.items() if theirs is None or name in has},
        **dict(variant.options),
        "algorithm": variant.algorithm,
        "env": env,
        "seed": seeds[0] if seeds else 0,
    }
    label = variant.label or variant.algorithm
    return Cell(env, label, seeds, Config.from_flat(own, f"{label} on {env}"))


def slug(label: str) -> str:
    """A label as a name of a directory.

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


def _check_cell(cell: Cell) -> None:
    known = re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._:/+-]*", cell.env) and ".." not in cell.env
    if not known or len(cell.env) > LONGEST_LABEL:
        raise UserError(f"env: {cell.env!r}, expected an id such as MinAtar/Breakout")
    if cell.env != cell.config.env:
        raise UserError(f"env: {cell.env!r}, but its config says {cell.config.env!r}")
    _check_label("label", cell.label)
    for seed in cell.seeds:
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= LARGEST_STEP:
            raise UserError(f"seeds: {seed!r}, expected integers from 0 to {LARGEST_STEP}")
    if not cell.seeds or len(set(cell.seeds)) != len(cell.seeds):
        raise UserError(f"seeds: {list(cell.seeds)}, expected at least one, all different")
    together = cell.together
    if together is not None and not (type(together) is int and 1 <= together <= len(cell.seeds)):
        raise UserError(
            f"together: {cell.together}, expected an integer from 1 to {len(cell.seeds)}"
        )


def difference(old: Sweep, new: Sweep) -> str:
    """How a matrix differs from another, in one line; empty if it does not.

    >>> small = cross("mine", ["CartPole-v1"], [Variant("dqn")], [0], options={"steps": 100})
    >>> large = cross("mine", ["CartPole-v1"], [Variant("dqn")], [0, 1], options={"steps": 200})
    >>> difference(small, large)
    'CartPole-v1 dqn: seeds [0] → [0, 1], steps 100 → 200'
    """
    before = {(cell.env, cell.label): cell for cell in old.cells}
    after = {(cell.env, cell.label): cell for cell in new.cells}
    parts = [f"without {env} {label}" for env, label in before if (env, label) not in after]
    parts += [f"new {env} {label}" for env, label in after if (env, label) not in before]
    for key in before.keys() & after.keys():
        changes = _changes(before[key], after[key])
        if changes:
            parts.append(f"{' '.join(key)}: {', '.join(changes)}")
    if len(parts) > 4:
        parts[4:] = [f"and {len(parts) - 4} more"]
    return "; ".join(parts)


def _changes(old: Cell, new: Cell) -> list[str]:
    changes = []
    if old.seeds != new.seeds:
        changes.append(f"seeds {list(old.seeds)} → {list(new.seeds)}")
    return changes + config_changes(old.config, replace(new.config, seed=old.config.seed))


def config_changes(old: Config, new: Config) -> list[str]:
    """The fields in which a config differs from another, of those that decide results."""
    before, after = flat(old), flat(new)
    return [
        f"{name} {before.get(name)} → {after.get(name)}"
        for name in {**before, **after}
        if name not in ("checkpoint_every", "save_every") and before.get(name) != after.get(name)
    ]
