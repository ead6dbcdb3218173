"""Anybody's runs, from their files to statistics, figures and one self-contained HTML page.

Nothing here is imported before a name is used: the help needs none.
"""

from typing import TYPE_CHECKING

from momentum_rl.plumbing.modules import lazy_attributes

if TYPE_CHECKING:
    from momentum_rl.report.chapters import write_report as write_report

__all__ = ["write_report"]
__getattr__, __dir__ = lazy_attributes(__name__, {".chapters": __all__})
