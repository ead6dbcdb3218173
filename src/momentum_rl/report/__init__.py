"""From results to figures, verdicts and one self-contained HTML page.

``tabular`` and ``deep`` read their results, judge the paper's claims on them and declare their
sections; ``drawing`` has the figures; ``page`` writes them down. Nothing here imports Altair before
a figure is drawn, and nothing at all before a name is used: the help needs none.
"""

from typing import TYPE_CHECKING

from momentum_rl.plumbing.modules import lazy_attributes

if TYPE_CHECKING:
    from momentum_rl.report.page import draw as draw
    from momentum_rl.report.page import write_report as write_report

__all__ = ["draw", "write_report"]
__getattr__, __dir__ = lazy_attributes(__name__, {".page": __all__})
