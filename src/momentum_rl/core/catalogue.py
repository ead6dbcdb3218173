"""Schemes on tables by name, as they are written: ``name`` or ``name:option=value:…``.

>>> options_of("md-vi:lambda=0.01:tau=0.001").tau
0.001
>>> label("md-vi:tau=1e-3"), label("movi")
('md-vi:tau=0.001', 'movi')
>>> options_of("md-vi:eta=3")
Traceback (most recent call last):
momentum_rl.errors.UserError: scheme: md-vi has no option 'eta', expected some of lambda, tau, ...
"""

from collections.abc import Collection
from dataclasses import fields
from typing import Any, get_type_hints

from momentum_rl.core import family  # noqa: F401  (declares its schemes)
from momentum_rl.core.algorithm import Algorithm
from momentum_rl.core.options import TABLES as TABLES
from momentum_rl.core.options import WRITTEN as WRITTEN
from momentum_rl.core.options import Options
from momentum_rl.errors import UserError
from momentum_rl.plumbing.modules import import_trusted, module_of
from momentum_rl.plumbing.reading import checked


def find(name: str) -> type[Options]:
    """The options of a scheme."""
    if name not in TABLES:
        raise UserError(f"scheme: {name!r}, expected one of {', '.join(TABLES)}")
    return TABLES[name]


def written_options(kind: type[Options]) -> list[str]:
    """The options of an algorithm as they are written."""
    return [WRITTEN.get(field.name, field.name) for field in fields(kind)]


def options_of(which: str | Options, trust: Collection[str] = ()) -> Options:
    """What a label means; MODULE:NAME is a dataclass of a module that is trusted."""
    if isinstance(which, Options):
        return which
    name, *parts = which.split(":")
    if name not in TABLES and parts and "=" not in parts[0]:
        kind = _of_module(name, parts.pop(0), trust)
    else:
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


def _of_module(module: str, attribute: str, trust: Collection[str]) -> type[Options]:
    what = f"scheme: '{module}:{attribute}'"
    module_of(f"{module}:{attribute}", "scheme")
    kind = getattr(import_trusted(module, trust, what), attribute, None)
    if not (isinstance(kind, type) and issubclass(kind, Options)):
        raise UserError(f"{what}: {kind!r}, expected a dataclass of momentum_rl.Options")
    return kind


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
    name, kind = _declared(type(options))
    parts = [name]
    for field in fields(kind):
        value = getattr(options, field.name)
        if value != field.default:
            text = f"{value:.12g}" if isinstance(value, float) else str(value).lower()
            parts.append(f"{WRITTEN.get(field.name, field.name)}={text}")
    return ":".join(parts)


def _declared(kind: type[Options]) -> tuple[str, type[Options]]:
    """A scheme's name and the options that were declared by it; a class's own without any."""
    for name, other in TABLES.items():
        if issubclass(kind, other):
            return name, other
    for name, other in TABLES.items():
        if issubclass(other, kind):  # with other defaults
            return name, other
    return kind.title or kind.__name__, kind
