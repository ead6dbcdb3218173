"""Tables of what can be set, from the dataclasses that are the options."""

import ast
import inspect
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from pathlib import Path
from types import NoneType
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import tyro

_WORDS = {int: "integer", float: "number", str: "text", Path: "path"}


class Setting(NamedTuple):
    """A field of a dataclass: its name, what it may be, its default, and what it means."""

    name: str
    values: str
    default: Any
    meaning: str
    positional: bool


@cache
def _docstrings(kind: type) -> dict[str, str]:
    """The texts beneath the fields of one class; none of a class that was made and not written."""
    try:
        (own,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    except OSError:
        return {}
    assert isinstance(own, ast.ClassDef)
    return {
        field.target.id: inspect.cleandoc(text.value.value)
        for field, text in zip(own.body, own.body[1:])
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }


def settings(kind: type) -> Iterator[Setting]:
    """The fields of a dataclass, in order; those of a dataclass within it in their place."""
    hints, annotated = get_type_hints(kind), get_type_hints(kind, include_extras=True)
    for field in fields(kind):
        hint = hints[field.name]
        if is_dataclass(hint):
            yield from settings(hint)
            continue
        marks = getattr(annotated[field.name], "__metadata__", ())
        meanings = [_docstrings(one).get(field.name) for one in kind.__mro__ if is_dataclass(one)]
        meanings += [getattr(mark, "help", None) for mark in marks]
        meaning = next((text for text in meanings if text), None)
        assert meaning is not None, f"{kind.__name__}.{field.name} says nothing"
        positional = tyro.conf.Positional in marks
        made = field.default_factory
        default = field.default if made is MISSING else made()
        yield Setting(field.name, _values(hint), default, " ".join(meaning.split()), positional)


def _values(hint: Any) -> str:
    if hint is bool:
        return "flag"
    if get_origin(hint) is Literal:
        return ", ".join(f"`{one}`" for one in get_args(hint))
    kinds = [kind for kind in get_args(hint) or (hint,) if kind not in (NoneType, ...)]
    return " or ".join(dict.fromkeys(_WORDS.get(kind) or _values(kind) for kind in kinds))


def table(rows: Sequence[Setting]) -> str:
    """A table of options as the command line spells them."""
    lines = ["| option | values | default | meaning |", "|---|---|---|---|"]
    for row in rows:
        name = row.name.upper() if row.positional else f"--{row.name.replace('_', '-')}"
        cells = (f"`{name}`", row.values, _shown(row), row.meaning)
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(lines)


def _shown(row: Setting) -> str:
    if row.default is MISSING:
        return "*required*"
    if row.default is None or row.default == () or row.values == "flag":
        return ""
    value = row.default
    return f"`{' '.join(map(str, value)) if isinstance(value, tuple) else value}`"
