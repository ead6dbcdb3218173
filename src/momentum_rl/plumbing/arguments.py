"""From the words of a command line to a command: a dataclass whose fields are its options.

A class with options that depend on others has ``given(words)``, which makes the class and the
defaults that these words ask for; and ``hint(words)``, what to say of an option it does not have.
"""

import contextlib
import difflib
import io
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import is_dataclass
from types import NoneType
from typing import Annotated, Any, get_args, get_type_hints

import tyro

from momentum_rl.errors import UserError, in_words

_TRUST = (
    "A module that the environment or the algorithm names (MODULE:NAME) and whose code may run; "
    "this option may be repeated. Files alone are not believed."
)
Trust = Annotated[
    tuple[str, ...], tyro.conf.UseAppendAction, tyro.conf.arg(metavar="MODULE", help=_TRUST)
]
_CONFIG = (tyro.conf.FlagCreatePairsOff, tyro.conf.OmitArgPrefixes)


def value_of(arguments: Sequence[str], option: str) -> str | None:
    """The value of an option, if it is given.

    >>> value_of(["file.npz", "--scheme", "movi"], "--scheme"), value_of(["--tau=1"], "--tau")
    ('movi', '1')
    """
    for i, word in enumerate(arguments):
        if word == option and i + 1 < len(arguments):
            return arguments[i + 1]
        if word.startswith(f"{option}="):
            return word.partition("=")[2]
    return None


def with_options(kind: Any, words: Sequence[str], program: str) -> Any:
    """A command with the options that the words mean; a mistake is one line (UserError)."""
    defaults = {}
    if hasattr(kind, "given"):
        kind, defaults["default"] = kind.given(words)

    def refuse(event: Any) -> None:
        line = _line(event, kind, words)
        if hasattr(kind, "hint") and type(event).__name__ == "UnrecognizedArgs":
            line += f"; {kind.hint(words)}"
        raise _Refused(f"{line} (see {program} --help)")

    try:
        # Without the hook, which is not promised by tyro, there is still one line.
        with _on_parse_error(refuse), contextlib.redirect_stderr(io.StringIO()):
            return tyro.cli(kind, prog=program, args=words, config=_CONFIG, **defaults)
    except _Refused as refused:
        raise UserError(str(refused)) from None
    except SystemExit as stop:
        if stop.code in (0, None):
            raise
        raise UserError(f"options: {' '.join(words)!r} (see {program} --help)") from None


class _Refused(Exception):
    """Carries a line past tyro, which catches every ValueError."""


def _on_parse_error(hook: Any) -> contextlib.AbstractContextManager[None]:
    try:
        from tyro._errors import on_parse_error
    except ImportError:
        return contextlib.nullcontext()
    return on_parse_error(hook)


def _line(event: Any, kind: Any, words: Sequence[str]) -> str:
    """What is wrong, by tyro's event: see `tyro._errors`."""
    match type(event).__name__:
        case "MissingArgs":
            missing = [one.arg for one in event.missing_arguments]
            return "; ".join(f"{_name(one)}: missing, expected {_expected(one)}" for one in missing)
        case "BadValue":
            name, expected = _name(event.argument), _expected(event.argument)
            return f"{name}: no value, expected {expected}"
        case "InvalidChoice":
            name, choices = _name(event.argument), ", ".join(event.choices)
            return f"{name}: {event.value!r}, expected one of {choices}"
        case "UnrecognizedArgs":
            return f"Unrecognized options: {', '.join(event.tokens)}{_meant(event.tokens, kind)}"
        case "InstantiationFailure" if event.argument is not None:
            name, expected = _name(event.argument), _expected(event.argument)
            return f"{name}: {_given(words, name)!r}, expected {expected}"
        case _:
            return str(getattr(event, "message", "options: not understood"))


def _name(argument: Any) -> str:
    """An argument as it is written: --states, FILE."""
    lowered = argument.lowered
    return str(lowered.metavar if argument.is_positional() else lowered.name_or_flags[0])


def _given(words: Sequence[str], option: str) -> str:
    """All values of an option, as they were given."""
    first = value_of(words, option) or ""
    after = words[words.index(first) + 1 :] if first in words else []
    return " ".join([first, *itertools.takewhile(lambda word: not word.startswith("--"), after)])


def _expected(argument: Any) -> str:
    """What values an argument takes, in words."""
    kinds = get_args(argument.field.type_stripped) or (argument.field.type_stripped,)
    known = [in_words(kind) for kind in kinds if kind not in (NoneType, ...)]
    return " or ".join(dict.fromkeys(known))


def _meant(tokens: Sequence[str], kind: Any) -> str:
    """A suggestion, where an option is nearly one of the command's."""
    known = list(_fields(kind))
    for token in tokens:
        own = token.partition("=")[0].removeprefix("--").replace("-", "_")
        if near := token.startswith("--") and difflib.get_close_matches(own, known, 1, 0.7):
            return f"; did you mean --{near[0].replace('_', '-')}?"
    return ""


def _fields(kind: Any) -> Iterator[str]:
    """The names of a dataclass's fields, of the dataclasses within it too."""
    hints = get_type_hints(kind)
    for name in kind.__dataclass_fields__:
        yield from _fields(hints[name]) if is_dataclass(hints[name]) else (name,)
