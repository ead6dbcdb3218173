"""From the words of a command line to a command: a dataclass whose fields are its options.

A class with options that depend on others has ``given(words)``, which makes the class and the
defaults that these words ask for; and ``hint(words)``, what to say of an option it does not have.
"""

import contextlib
import difflib
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import is_dataclass
from itertools import takewhile
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import tyro

from momentum_rl.errors import UserError, in_words

_TRUST = (
    "A module that the environment or the algorithm names (MODULE:NAME) and whose code may run; "
    "this option may be repeated. A file cannot grant this itself."
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
    words = ["None" if word == "none" else word for word in words]
    drawn = io.StringIO()
    try:
        with contextlib.redirect_stderr(drawn):
            command, unknown = tyro.cli(
                kind, prog=program, args=words, config=_CONFIG, return_unknown_args=True, **defaults
            )
    except SystemExit as stop:
        if stop.code in (0, None):
            raise
        line = _refusal(stop) or _mistake(drawn.getvalue(), dict(_options(kind)), words)
        raise UserError(f"{line} (see {program} --help)") from None
    if unknown:
        line = f"Unrecognized options: {', '.join(unknown)}{_meant(unknown, kind)}"
        if hasattr(kind, "hint"):
            line += f"; {kind.hint(words)}"
        raise UserError(f"{line} (see {program} --help)")
    return command


def _options(kind: Any) -> Iterator[tuple[str, Any]]:
    """The options of a dataclass, and of those within it, as they are written; and their types."""
    hints = get_type_hints(kind, include_extras=True)
    for name in kind.__dataclass_fields__:
        expected, *marks = get_args(hints[name]) if _is_annotated(hints[name]) else (hints[name],)
        if is_dataclass(expected):
            yield from _options(expected)
            continue
        metavars = (mark.metavar for mark in marks if getattr(mark, "metavar", None))
        yield next(metavars, name.upper()), expected  # as one without a name is called
        written = next((mark.name for mark in marks if getattr(mark, "name", None)), name)
        yield f"--{written.replace('_', '-')}", expected


def _is_annotated(hint: Any) -> bool:
    return hasattr(hint, "__metadata__")


def _refusal(error: BaseException) -> str | None:
    """What a command or its options say of their values, if that is what made the parser end."""
    context = error.__context__
    if isinstance(context, UserError):
        return str(context)
    return None if context is None else _refusal(context)


def _mistake(drawn: str, options: dict[str, Any], words: Sequence[str]) -> str:
    """What is wrong, by what tyro draws: the option, what was given, and what was expected."""
    lines = [line.strip("│╭╮╰╯─ ") for line in drawn.splitlines()]
    text = " ".join(filter(None, lines)).partition(" For full helptext")[0]
    if "Missing from" in text:
        missing = [line.split()[0] for line in lines if line and line.split()[0] in options]
        return "; ".join(
            f"{name}: missing, expected {_expected(options[name])}" for name in missing
        )
    named = re.search(r"(?:Error parsing |argument ')([\w-]+)", text)
    if named is None or named[1] not in options:
        return f"options: {' '.join(words)!r}"
    given = "no value" if "Missing value" in text else repr(_given(words, named[1]))
    return f"{named[1]}: {given}, expected {_expected(options[named[1]])}"


def _given(words: Sequence[str], option: str) -> str:
    """All values of an option, as they were given."""
    first = value_of(words, option) or ""
    after = words[words.index(first) + 1 :] if first in words else []
    return " ".join([first, *takewhile(lambda word: not word.startswith("--"), after)])


def _expected(hint: Any) -> str:
    """What values an option takes, in words; of a list, what each of them is."""
    hint = hint.__origin__ if _is_annotated(hint) else hint  # without the mark of a range
    inner = [one for one in get_args(hint) if one not in (NoneType, ...)]
    if get_origin(hint) is Literal or not inner:
        return in_words(hint)
    return " or ".join(dict.fromkeys(map(_expected, inner)))


def _meant(unknown: Sequence[str], kind: Any) -> str:
    """A suggestion, where an option is nearly one of the command's."""
    known = [name for name, _ in _options(kind) if name.startswith("--")]
    for word in unknown:
        near = difflib.get_close_matches(word.partition("=")[0], known, 1, 0.7)
        if near and word.startswith("--"):
            return f"; did you mean {near[0]}?"
    return ""
