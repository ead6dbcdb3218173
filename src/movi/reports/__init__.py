"""From results to figures, verdicts and one self-contained HTML page.

The rooms: ``tables`` reads results, ``verdicts`` judges the paper's claims on them, ``figures``
draws them, ``sections`` declares what goes on the page, ``page`` writes it. Nothing here imports
Altair before a figure is drawn.
"""

from movi.reports.page import draw, write_report

__all__ = ["draw", "write_report"]
