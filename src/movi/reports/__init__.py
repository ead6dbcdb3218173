"""From results to figures, verdicts and one self-contained HTML page.

The rooms: ``tables`` reads results, ``verdicts`` judges the paper's claims on them, ``figures``
draws them, ``sections`` declares what goes on the page, ``page`` writes it. Nothing here imports
Altair before a figure is drawn, and nothing at all before a name is used: the help needs none.
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
