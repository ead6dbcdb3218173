"""The paper's schemes by name, with their schedules."""

from movi.errors import UserError
from movi.planning.engine import Scheme
from movi.schedules import Mean, Schedule
from movi.targets import SCHEMES, Algorithm


def scheme(which: str | Algorithm, beta: Schedule | None = None) -> Scheme:
    """The scheme of this name (avi, movi, sql, dpp), or of any algorithm; β_k = k/(k+1)."""
    if isinstance(which, str):
        if which not in SCHEMES:
            raise UserError(f"scheme: {which!r}, expected one of {', '.join(SCHEMES)}")
        which = SCHEMES[which]
    return Scheme(which, Mean() if beta is None else beta)
