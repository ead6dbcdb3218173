"""Mathematics is drawn by the browser: LaTeX becomes MathML when the site is built.

Letters in running text are written as they are said (q_{π_k}, γ^j), so that the pages can be read
as they are; on the site their indices are set lower, and their exponents higher.
"""

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


_BASE = r"(?:\b(?:max|min|lim|argmax)|(?<![A-Za-z0-9_/`])[A-Za-zα-ωΑ-Ωℓ‖ΣΠ)\]][̂̄']*|(?<=</su[bp]>))"
_INDEX = r"(?:\{(?:[^{}]|\{[^{}]*\})*\}|[A-Za-zα-ωΑ-Ω0-9]+|[*∞−+])"
_SCRIPT = re.compile(f"({_BASE})([_^])({_INDEX})")
_TAG = re.compile(r"(<[^>]+>)")
_VERBATIM = re.compile(r"(```.*?```|`[^`]*`|\$\$.*?\$\$|\$[^$\n]*\$)", re.S)
_AS_IT_IS = ("code", "pre", "math", "script", "style", "svg")


def protected(markdown: str) -> str:
    """A page whose indices in braces are not mistaken for the marks of emphasis.

    >>> print(protected("E'_{k,j} and `a_{b}`"))
    E'\\_{k,j} and `a_{b}`
    """
    parts = _VERBATIM.split(markdown)
    return "".join(p if i % 2 else p.replace("_{", "\\_{") for i, p in enumerate(parts))


def scripts(html: str) -> str:
    """A page with indices and exponents set as such, but for what is code or drawn already.

    >>> scripts("<p>q_{π_k}, γ^j, <code>x_1</code>, r_max, score_std</p>")
    '<p>q<sub>π<sub>k</sub></sub>, γ<sup>j</sup>, <code>x_1</code>, r<sub>max</sub>, score_std</p>'
    """
    parts, inside = [], 0
    for part in _TAG.split(html):
        if part.startswith("<"):
            name = part.strip("</>").split()[0].split(">")[0] if part.strip("</>") else ""
            if name in _AS_IT_IS and not part.endswith("/>"):
                inside += -1 if part.startswith("</") else 1
            parts.append(part)
        else:
            parts.append(part if inside else _set(part))
    return "".join(parts)


def _set(text: str) -> str:
    """A text with its indices and exponents set, the inner ones too."""

    def one(found: re.Match[str]) -> str:
        index = found[3]
        if index.startswith("{"):
            index = _set(index[1:-1])
        tag = "sub" if found[2] == "_" else "sup"
        return f"{found[1]}<{tag}>{index}</{tag}>"

    before = None
    while text != before:  # what follows an index, as in q^τ_*, is found in the next turn
        before, text = text, _SCRIPT.sub(one, text)
    return text
