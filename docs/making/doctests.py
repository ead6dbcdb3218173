"""Doctests in docstrings are shown as code: an extension of griffe, which reads the package."""

import re
from typing import Any

import griffe

_BLOCK = re.compile(r"^(?P<indent> *)>>> .*(?:\n(?! *\n| *$).*)*", re.M)


def fenced(text: str) -> str:
    """A docstring whose doctests are fenced as code.

    >>> print(fenced("Twice.\\n\\n>>> 1 + 1\\n2\\n"))
    Twice.
    <BLANKLINE>
    ```pycon
    >>> 1 + 1
    2
    ```
    <BLANKLINE>
    """
    return _BLOCK.sub(
        lambda block: f"{block['indent']}```pycon\n{block[0]}\n{block['indent']}```", text
    )


class Doctests(griffe.Extension):
    """Fences the doctests of every object."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """An object has been read."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)
