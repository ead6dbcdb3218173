"""From results to figures, verdicts and one self-contained HTML page.

``tabular`` and ``deep`` read their results, judge the paper's claims on them and declare their
sections; ``drawing`` has the figures; ``page`` writes them down. Nothing here imports Altair before
a figure is drawn, and nothing at all before a name is used: the help needs none.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from movi.reports.page import draw, write_report

__all__ = ["draw", "write_report"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'movi.reports' has no attribute {name!r}")
    from movi.reports import page

    return getattr(page, name)
