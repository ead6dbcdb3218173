"""What stands on a command line before it can be parsed: for options that depend on others."""

from collections.abc import Sequence


def value_of(arguments: Sequence[str], option: str) -> str | None:
    """What an option is given, if it is there.

    >>> value_of(["file.npz", "--scheme", "movi"], "--scheme"), value_of(["--tau=1"], "--tau")
    ('movi', '1')
    """
    for i, word in enumerate(arguments):
        if word == option and i + 1 < len(arguments):
            return arguments[i + 1]
        if word.startswith(f"{option}="):
            return word.partition("=")[2]
    return None
