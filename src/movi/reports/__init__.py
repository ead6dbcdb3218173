"""From results to figures, verdicts and one self-contained HTML page.

``tabular`` and ``deep`` read their results, judge the paper's claims on them and declare their
sections; ``drawing`` has the figures; ``page`` writes them down. Nothing here imports Altair before
a figure is drawn.
"""

from movi.reports.page import draw, write_report

__all__ = ["draw", "write_report"]
