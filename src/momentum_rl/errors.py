"""The exceptions that callers are meant to see: one line, no traceback."""

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from functools import cache, wraps
from os import PathLike
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

Called = TypeVar("Called", bound=Callable[..., Any])

LONGEST = 290  # characters of a line, so that with the program's name it has at most 300
WORD = 40  # a name in a list is shorter


def plain(text: str) -> str:
    """A text on one line, without what a terminal would take for a command.

    >>> plain("a\\x1b[2Jb\\nc")
    'a [2Jb c'
    """
    return "".join(c if c.isprintable() else " " for c in text)


def one_line(text: str, most: int = LONGEST) -> str:
    """A text on one line, without the middle of a long one.

    What a file or a user says may be long or hold characters that a terminal takes for commands;
    what was expected stands at the end of a line.

    >>> one_line("label: " + 5000 * "x" + ", expected a short one", 60)
    'label: xxxxxxxxxxxxxxxxxxxxxxxxxxxxx …  expected a short one'
    >>> one_line("one of " + ", ".join(["CartPole"] * 9), 60)  # names of a list stay whole
    'one of CartPole, CartPole, … CartPole, CartPole'
    """
    text = plain(text)
    if len(text) <= most:
        return text
    head = most * 3 // 5
    before, after = text[:head], text[head + 3 - most :]
    if (comma := before.rfind(", ", max(0, head - WORD))) >= 0:
        before = f"{before[:comma]},"
    if (comma := after.find(", ", 0, WORD)) >= 0:
        after = after[comma + 2 :]
    return f"{before} … {after}"


class UserError(ValueError):
    """The user's mistake: names the thing, the value found and what was expected, in one line."""

    def __init__(self, line: str) -> None:
        super().__init__(one_line(line))


class MissingExtra(UserError):
    """Optional parts are not installed; the line says how to install them.

    >>> print(MissingExtra("record", "video"))
    record needs the extra `video`: pip install 'momentum-rl[video]' (in a clone: '.[video]')
    """

    def __init__(self, what: str, *extras: str) -> None:
        """What needs them, and the extras' names in pyproject.toml."""
        names, together = " and ".join(f"`{extra}`" for extra in extras), ",".join(extras)
        plural = "extras" if len(extras) > 1 else "extra"
        super().__init__(
            f"{what} needs the {plural} {names}: "
            f"pip install 'momentum-rl[{together}]' (in a clone: '.[{together}]')"
        )


AGENTS = frozenset({"flax", "gymnasium", "optax", "safetensors", "tensorboardX"})
"""What is imported under these names is not of the core but of the extra `agents`."""


@contextmanager
def needing_agents(what: str) -> Iterator[None]:
    """What trains an agent or plays with it: where its packages are missing, a ``MissingExtra``.

    >>> with needing_agents("momentum_rl.train"):
    ...     raise ModuleNotFoundError("No module named 'optax'", name="optax")
    Traceback (most recent call last):
    momentum_rl.errors.MissingExtra: momentum_rl.train needs the extra `agents`: ...
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in AGENTS:
            raise
        raise MissingExtra(what, "agents") from None


class NoRoom(UserError):
    """More memory or disk than there is."""


class Damaged(UserError):
    """What was read is not what was written."""


class Unwritable(UserError):
    """A file that cannot be written: a full disk, a directory without permission."""


class ToleranceMissed(ArithmeticError):
    """An answer that could not be proven to the tolerance that was asked for; exit status 3.

    Attributes:
      answer: the best that was found.
      bound: how far from the truth it is proven to be at most.
    """

    def __init__(self, line: str, answer: Any = None, bound: float = float("inf")) -> None:
        super().__init__(line)
        self.answer, self.bound = answer, bound


class Interrupted(Exception):
    """A run that was asked to stop by a signal, and stopped; its one line says how to go on."""

    def __init__(self, line: str, signal: int) -> None:
        super().__init__(line)
        self.signal = signal


WORDS: Mapping[Any, str] = {
    str: "a text",
    int: "an integer",
    float: "a number",
    bool: "true or false",
    type: "a class",
    NoneType: "None",
    **dict.fromkeys((list, tuple, Sequence, Collection), "a list"),
    **dict.fromkeys((Path, PathLike), "a path"),
}
"""What types are called in a line; others by their own name."""


def in_words(expected: Any, words: Mapping[Any, str] = WORDS) -> str:
    """A type as a line says it; ``words[object]`` is for those without a word of their own."""
    origin, inner = get_origin(expected) or expected, get_args(expected)
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(in_words(one, words) for one in inner))
    if origin is Literal:
        return f"one of {', '.join(map(str, inner))}"
    return str(words.get(origin) or words.get(object) or getattr(origin, "__name__", origin))


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is of the type that a hint declares; of an array, whether it may be."""
    kind, inner = get_origin(hint) or hint, get_args(hint)
    if kind in (Union, UnionType):
        return any(fits(value, one) for one in inner)
    if kind is Literal:
        return isinstance(value, str) and value in inner
    if kind is int or (kind is float and type(value) is int):
        return type(value) is int and -(2**63) <= value < 2**63
    if kind is Any or not isinstance(kind, type) or kind.__name__ == "ndarray":
        return True
    if getattr(kind, "_is_protocol", False):
        names = [name for name in dir(kind) if name[0] != "_" or name == "__call__"]
        return all(hasattr(value, name) for name in (*names, *kind.__annotations__))
    if isinstance(value, str) or hasattr(value, "__array__"):  # a text is a list of texts, too
        return kind is (str if isinstance(value, str) else Sequence)
    of = (list, tuple) if kind is tuple else kind
    if not isinstance(value, of) or not inner or not issubclass(kind, Collection):
        return isinstance(value, of)
    parts: Any = value
    if kind is Mapping:
        return all(fits(one, inner[1]) for one in parts.values())
    return all(fits(one, inner[0]) for one in parts)


def of_type(name: str, value: Any, hint: Any) -> Any:
    """A value of the type that a hint declares, a number of NumPy's as Python's; or one line."""
    number = getattr(value, "shape", None) == () and hasattr(value, "item")
    value = value.item() if number and not fits(value, hint) else value
    if not fits(value, hint):
        raise UserError(f"{name}: {value!r}, expected {in_words(hint)}")
    return value


_hints: Callable[[Any], dict[str, Any]] = cache(get_type_hints)


def check_fields(of: Any) -> None:
    """The fields of a dataclass made of the types that it declares, or one line."""
    for field in fields(of):
        value = of_type(field.name, getattr(of, field.name), _hints(type(of))[field.name])
        object.__setattr__(of, field.name, value)


def door(function: Called) -> Called:
    """A public function: an argument of another type than its hint's is one line."""
    called: Any = function
    signature = inspect.signature(called)

    @wraps(called)
    def checked(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs)
        for name, value in given.arguments.items():
            given.arguments[name] = of_type(name, value, _hints(called).get(name, Any))
        return called(*given.args, **given.kwargs)

    return checked  # type: ignore[return-value]


LARGEST_COUNT = 2**31 - 1


def check_count(name: str, value: int | None, least: int = 1, most: int = LARGEST_COUNT) -> None:
    """A number of things, which compiled code counts in 32 bits; or None, where there is none."""
    of_type(name, value, int | None)
    if value is None:
        return
    if value < least:
        raise UserError(f"{name}: {value}, expected at least {least}")
    if value > most:
        raise UserError(f"{name}: {value}, expected at most {most}")


def check_seed(seed: int) -> None:
    """A seed is an integer in [0, 2**63)."""
    if not 0 <= of_type("seed", seed, int) < 2**63:
        raise UserError(f"seed: {seed}, expected an integer in 0..2**63 - 1")


def check_fraction(name: str, value: float) -> None:
    """A share or a probability."""
    if not 0 <= of_type(name, value, float) <= 1:
        raise UserError(f"{name}: {value!r}, expected a number in [0, 1]")


def check_not_negative(name: str, value: float) -> None:
    """A finite number of at least 0."""
    if not 0 <= of_type(name, value, float) < float("inf"):
        raise UserError(f"{name}: {value!r}, expected a number of at least 0")
