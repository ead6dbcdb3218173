"""Mathematics is drawn by the browser: LaTeX becomes MathML when the site is built."""

import re
from html import unescape

from latex2mathml.converter import convert

_MARKED = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\\(?:\(|\[)(?P<latex>.*?)\\(?:\)|\])</(?P=tag)>', re.S
)


def drawn(html: str) -> str:
    """The formulas of a page, which arithmatex has marked, as MathML.

    >>> drawn(r'<span class="arithmatex">\\(x_1\\)</span>')  # doctest: +ELLIPSIS
    '<math ... display="inline"><mrow><msub><mi>x</mi><mn>1</mn></msub></mrow></math>'
    """
    return _MARKED.sub(lambda found: _formula(found["latex"], found["tag"] == "div"), html)


def _formula(latex: str, block: bool) -> str:
    formula = convert(unescape(latex).strip(), display="block" if block else "inline")
    return f'<div class="equation">{formula}</div>' if block else formula
