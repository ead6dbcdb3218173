"""The one door for files from outside: every reader of this package goes through it.

Nobody knows who wrote a file. What passes the door is a regular file of limited size; text in
UTF-8; JSON or TOML of limited depth, whose numbers are finite and fit into 64 bits; and values of
the types that a schema declares. A schema is a type: a dataclass of such types, or
``list[int]``, ``dict[str, float | None]``, ``Literal["q", "h"]``. Whatever else a file holds is one
line (``UserError``) that names the file, the place, the value and what was expected.

>>> @dataclasses.dataclass
... class Point:
...     x: int
...     names: list[str] = dataclasses.field(default_factory=list)
>>> checked(parsed('{"x": 3, "names": ["a"], "more": true}', "f.json"), Point, "f.json")
Point(x=3, names=['a'])
>>> checked({"x": 3, "names": ["a", 5]}, Point, "f.json")
Traceback (most recent call last):
momentum_rl.errors.UserError: f.json: names: 5, expected a text
"""

import dataclasses
import json
import math
import os
import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from momentum_rl.errors import WORDS, UserError, fits, in_words
from momentum_rl.plumbing.sizes import readable, require

if TYPE_CHECKING:
    import numpy as np

LARGEST = 2**20
"""Bytes of a file, unless its reader says otherwise."""
LARGEST_TOML = 2**14
"""Bytes of a text of TOML: Python's parser takes memory by the square of a dotted key's length."""
LARGE = 256 * 2**20
"""Bytes of a file with a row per iteration: 100 times the metrics of the paper's runs."""
DEEPEST = 32
"""Lists and objects within each other."""
LARGEST_NUMBER = 1e300
"""Of a file; what is beyond it or not finite is written as null."""

T = TypeVar("T")


def content(file: Path, largest: int = LARGEST) -> bytes:
    """The bytes of a regular file."""
    try:
        # Without waiting: a pipe would be waited for until somebody writes to it.
        number = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(number, "rb") as opened:
            status = os.fstat(number)
            if not stat.S_ISREG(status.st_mode):
                raise UserError(f"{file}: not a file, expected one")
            # Python allocates what it is asked to read, however little there is.
            most = min(largest, 2 * max(status.st_size, LARGEST))  # it may be growing
            data = opened.read(most + 1)
    except (OSError, ValueError) as error:
        if isinstance(error, UserError):
            raise
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"{file}: cannot be read: {reason}") from None
    if len(data) > largest:
        raise UserError(f"{file}: larger than {readable(largest)}, expected a smaller file")
    return data


def text(file: Path, largest: int = LARGEST) -> str:
    """The text of a file."""
    try:
        decoded = content(file, largest).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UserError(f"{file}: not a text in UTF-8") from None
    _require_room(decoded, str(file))
    return decoded


def _require_room(text: str, name: str) -> None:
    """Raises if what a parser makes of a large text may not fit: of ``[],[],…``, of empty lines."""
    if len(text) > LARGEST:
        require(name, memory=28 * len(text) + 100 * text.count("\n"))


def parsed(text: str, name: str, kind: str = "json") -> Any:
    """The content of a text in JSON or TOML."""
    _require_room(text, name)
    try:
        if kind == "toml":
            if len(text) > LARGEST_TOML:
                raise ValueError(f"longer than {readable(LARGEST_TOML)}; JSON may be longer")
            data: Any = tomllib.loads(text, parse_float=_finite)
        else:
            data = json.loads(text, parse_float=_finite, parse_int=_whole, parse_constant=_finite)
        _check_depth(data, DEEPEST)
    except (ValueError, RecursionError) as error:
        reason = "too deep" if isinstance(error, RecursionError) else error
        raise UserError(f"{name}: cannot be read as {kind.upper()}: {reason}") from None
    return data


def as_json(data: Any, **layout: Any) -> str:
    """The text of JSON that every file of ours has, and ``parsed`` reads.

    >>> as_json({"score": float("inf"), "returns": [1.5, float("nan")]})
    '{"score": null, "returns": [1.5, null]}'
    """
    return json.dumps(without_infinite(data), allow_nan=False, **layout)


def without_infinite(data: Any) -> Any:
    """The same data; a number that no file holds is None."""
    if isinstance(data, Mapping):
        return {key: without_infinite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [without_infinite(value) for value in data]
    return None if isinstance(data, float) and not abs(data) <= LARGEST_NUMBER else data


def _finite(number: str) -> float:
    if not math.isfinite(value := float(number)):
        raise ValueError(f"the number {number[:20]} is not finite")
    return value


def _whole(number: str) -> int:
    if len(number) > 20 or not -(2**63) <= int(number) < 2**63:
        raise ValueError(f"the number {number[:20]}… has more than 64 bits")
    return int(number)


def _check_depth(data: Any, left: int) -> None:
    if isinstance(data, dict | list):
        if not left:
            raise RecursionError
        for value in data.values() if isinstance(data, dict) else data:
            _check_depth(value, left - 1)


def read(file: Path, expected: type[T], largest: int = LARGEST) -> T:
    """The content of a file of JSON, of the type that is expected."""
    return checked(parsed(text(file, largest), str(file)), expected, str(file))


def of_format(text: str, expected: int, name: str) -> dict[str, Any]:
    """The object in a text of JSON that names this format, without the name."""
    data: dict[str, Any] = checked(parsed(text, name), dict[str, Any], name)
    number = data.pop("format", None)
    if type(number) is not int or number != expected:
        raise UserError(f"{name}: format {number!r}, this version of movi reads {expected}")
    return data


def read_rows(file: Path, expected: type[T]) -> list[T]:
    """The rows of a file of JSON lines; one that is only half written yet is left out."""
    return rows(text(file, LARGE), str(file), expected)


def rows(text: str, name: str, expected: type[T]) -> list[T]:
    """The rows of a text of JSON lines."""
    lines = text.rpartition("\n")[0].split("\n")
    named = ((f"{name}: line {i}", line) for i, line in enumerate(lines, start=1) if line)
    return [checked(parsed(line, place), expected, place) for place, line in named]


_WORDS = {**WORDS, float: "a finite number", NoneType: "null", object: "an object"}


def checked(data: Any, expected: Any, name: str) -> Any:
    """The data as a value of the expected type; keys that a dataclass does not have are left out.

    Args:
      data: as JSON or TOML give it.
      expected: a type.
      name: of the file and the place in it, for the line.
    """
    if expected is Any or (dataclasses.is_dataclass(data) and isinstance(data, expected)):
        return data
    origin, inner = get_origin(expected) or expected, get_args(expected)
    if origin in (Union, UnionType):
        for one in inner:
            if _is(data, get_origin(one) or one):
                return checked(data, one, name)
    elif origin is Literal:
        if isinstance(data, str) and data in inner:
            return data
    elif dataclasses.is_dataclass(origin) and isinstance(data, dict):
        return _object(data, origin, name)
    elif _is(data, origin):
        if origin in (list, tuple) and inner:
            entry = f"{name}: entry " if dataclasses.is_dataclass(inner[0]) else ""
            places = (f"{entry}{i}" if entry else name for i in range(len(data)))
            return origin(checked(value, inner[0], place) for value, place in zip(data, places))
        if origin in (dict, Mapping) and inner:
            return {key: checked(value, inner[1], f"{name}: {key}") for key, value in data.items()}
        return data
    raise UserError(f"{name}: {data!r}, expected {in_words(expected, _WORDS)}")


def _is(data: Any, kind: Any) -> bool:
    if kind in (list, tuple):
        return isinstance(data, list | tuple)
    if kind in (dict, Mapping) or dataclasses.is_dataclass(kind):
        return isinstance(data, dict)
    if get_origin(kind) is Literal or kind is Literal:
        return isinstance(data, str)
    return fits(data, kind) and not (kind is float and not abs(data) <= LARGEST_NUMBER)


def _object(data: dict[str, Any], kind: Any, name: str) -> Any:
    """A dataclass from its fields; what its own checks say names the file."""
    hints, values = get_type_hints(kind), {}
    for field in dataclasses.fields(kind):
        if field.name in data:
            value, place = data[field.name], f"{name}: {field.name}"
            values[field.name] = checked(value, hints[field.name], place)
        elif field.default is field.default_factory is dataclasses.MISSING:
            wanted = in_words(hints[field.name], _WORDS)
            raise UserError(f"{name}: no {field.name}, expected {wanted}")
    try:
        return kind(**values)
    except UserError as error:
        raise UserError(f"{name}: {error}") from None


def tensors(file: Path) -> "tuple[dict[str, str], dict[str, np.ndarray]]":
    """The texts and the arrays of a safetensors file; nothing in it runs, whatever it says."""
    from safetensors import safe_open

    if not file.is_file():
        raise UserError(f"{file}: no such file")
    require(str(file), memory=file.stat().st_size)
    try:
        with safe_open(file, framework="numpy") as opened:
            texts = dict(opened.metadata() or {})
            return texts, {key: opened.get_tensor(key) for key in opened.keys()}  # noqa: SIM118
    except Exception as error:  # whatever the parser says to bytes that make no sense
        raise UserError(f"{file}: damaged, or not a file of ours: {error}") from None
