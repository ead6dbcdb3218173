"""Schemes on tables by name, as they are written: ``name`` or ``name:option=value:…``.

>>> options_of("md-vi:lambda=0.01:tau=0.001").tau
0.001
>>> label("md-vi:tau=1e-3"), label("movi")
('md-vi:tau=0.001', 'movi')
>>> options_of("md-vi:eta=3")
Traceback (most recent call last):
momentum_rl.errors.UserError: scheme: md-vi has no option 'eta', expected some of lambda, tau, ...
"""

from dataclasses import fields
from typing import Any, get_type_hints

from momentum_rl.core import family  # noqa: F401  (declares its schemes)
from momentum_rl.core.algorithm import Algorithm
from momentum_rl.core.options import TABLES as TABLES
from momentum_rl.core.options import WRITTEN as WRITTEN
from momentum_rl.core.options import Options
from momentum_rl.errors import UserError
from momentum_rl.plumbing.reading import checked


def find(name: str) -> type[Options]:
    """The options of a scheme."""
    if name not in TABLES:
        raise UserError(f"scheme: {name!r}, expected one of {', '.join(TABLES)}")
    return TABLES[name]


def written_options(kind: type[Options]) -> list[str]:
    """The options of an algorithm as they are written."""
    return [WRITTEN.get(field.name, field.name) for field in fields(kind)]


def options_of(which: str | Options) -> Options:
    """What a label means."""
    if isinstance(which, Options):
        return which
    name, *parts = which.split(":")
    kind = find(name)
    by_name = dict(zip(written_options(kind), fields(kind)))
    hints, values = get_type_hints(kind), dict[str, Any]()
    for text in parts:
        key, equals, value = text.partition("=")
        if key not in by_name:
            expected = f"some of {', '.join(by_name)}" if by_name else "none"
            raise UserError(f"scheme: {name} has no option {key!r}, expected {expected}")
        if not equals:
            raise UserError(f"scheme: {name}: {text!r}, expected {key}=VALUE")
        field = by_name[key].name
        values[field] = checked(_read(value), hints[field], f"scheme: {name}: {key}")
    return kind(**values)


def _read(text: str) -> Any:
    """A number if it is one, None for none, else the text."""
    if text.lower() == "none":
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def label(which: str | Algorithm | Options) -> str:
    """What a scheme is called: its name, and the options that are not the default."""
    if isinstance(which, Algorithm):
        return which.name
    options = options_of(which)
    parts = [_name_of(type(options))]
    for field in fields(TABLES[parts[0]]):
        value = getattr(options, field.name)
        if value != field.default:
            text = f"{value:.12g}" if isinstance(value, float) else str(value).lower()
            parts.append(f"{WRITTEN.get(field.name, field.name)}={text}")
    return ":".join(parts)


def _name_of(kind: type[Options]) -> str:
    same = [name for name, other in TABLES.items() if issubclass(kind, other)]
    return (same or [name for name, other in TABLES.items() if issubclass(other, kind)])[0]
