"""The schemes by name, with their options and schedules.

>>> scheme("md-vi:lambda=0.01:tau=0.001").algorithm.tau
0.001
>>> label("md-vi:tau=1e-3"), label("movi")
('md-vi:tau=0.001', 'movi')
>>> scheme("md-vi:eta=3")
Traceback (most recent call last):
momentum_rl.errors.UserError: scheme: md-vi has no option 'eta', expected some of lambda, tau, ...
"""

from dataclasses import fields
from typing import Any, get_type_hints

from momentum_rl.core.schedules import Mean, Schedule
from momentum_rl.core.targets import Algorithm
from momentum_rl.errors import UserError, door
from momentum_rl.planning.engine import Scheme
from momentum_rl.planning.options import SCHEMES, Options
from momentum_rl.plumbing.reading import checked

_WRITTEN = {"lam": "lambda"}  # a word of Python's that cannot be a field


def find(name: str) -> type[Options]:
    """The options of a scheme."""
    if name not in SCHEMES:
        raise UserError(f"scheme: {name!r}, expected one of {', '.join(SCHEMES)}")
    return SCHEMES[name]


def option_names(kind: type[Options]) -> list[str]:
    """The options of a scheme as they are written."""
    return [_WRITTEN.get(field.name, field.name) for field in fields(kind)]


def options_of(which: "str | Options") -> Options:
    """What a label means, ``name`` or ``name:option=value:…``."""
    if isinstance(which, Options):
        return which
    name, *given = which.split(":")
    kind = find(name)
    by_name = dict(zip(option_names(kind), fields(kind)))
    hints, found = get_type_hints(kind), dict[str, Any]()
    for text in given:
        key, equals, value = text.partition("=")
        if key not in by_name:
            expected = f"some of {', '.join(by_name)}" if by_name else "none"
            raise UserError(f"scheme: {name} has no option {key!r}, expected {expected}")
        if not equals:
            raise UserError(f"scheme: {name}: {text!r}, expected {key}=VALUE")
        field = by_name[key].name
        found[field] = checked(_read(value), hints[field], f"scheme: {name}: {key}")
    return kind(**found)


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


def label(which: "str | Algorithm | Options") -> str:
    """What a scheme is called: its name, and the options that are not the default."""
    if isinstance(which, Algorithm):
        return which.name
    own = options_of(which)
    name = next(name for name, kind in SCHEMES.items() if kind is type(own))
    changed = [field for field in fields(own) if getattr(own, field.name) != field.default]
    parts = [name]
    for field in changed:
        value = getattr(own, field.name)
        text = f"{value:.12g}" if isinstance(value, float) else str(value).lower()
        parts.append(f"{_WRITTEN.get(field.name, field.name)}={text}")
    return ":".join(parts)


@door
def scheme(which: "str | Algorithm | Options", beta: Schedule | None = None) -> Scheme:
    """The scheme of this name, of these options, or of any algorithm; β_k = k/(k+1) for those.

    ``beta`` is another schedule for MoVI, SQL and algorithms of one's own.
    """
    if isinstance(which, Algorithm):
        return Scheme(which, Mean() if beta is None else beta)
    return options_of(which).scheme(beta)
