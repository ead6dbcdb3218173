"""Doctests in docstrings are shown as code: an extension of griffe, which reads the package."""

import re
from typing import Any

import griffe

_BLOCK = re.compile(r"^(?P<indent> *)>>> .*(?:\n(?! *\n| *$).*)*", re.M)


def fenced(text: str) -> str:
    """A docstring whose doctests are fenced as code.

    >>> fenced("Twice.\\n\\n>>> 1 + 1\\n2\\n")
    'Twice.\\n\\n```pycon\\n>>> 1 + 1\\n2\\n```\\n'
    """
    return _BLOCK.sub(
        lambda block: f"{block['indent']}```pycon\n{block[0]}\n{block['indent']}```", text
    )


_STAR = re.compile(r"(?<=[\w_])\*(?=[\s,;:.)‖]|$)")


def starred(text: str) -> str:
    """A docstring whose q* is no beginning of emphasis.

    >>> print(starred("within x of q*, or of v^τ_*; *never* more"))
    within x of q\\*, or of v^τ_\\*; *never* more
    """
    return _STAR.sub(lambda star: star[0] if _closes(text, star.start()) else "\\*", text)


def _closes(text: str, at: int) -> bool:
    """Whether a star ends emphasis that begins before it on the same line."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return re.search(r"(?<!\w)\*\w[^*]*$", line) is not None


class Doctests(griffe.Extension):
    """Fences the doctests of every object, and leaves stars alone that are part of a name."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """An object has been read."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(starred(obj.docstring.value))
