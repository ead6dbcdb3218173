"""What is said of data: sentences of a paper, judged, and what else is seen."""

from collections.abc import Iterable
from dataclasses import dataclass

from momentum_rl.report.page import Table

CONFIRMED, HOLDS = "Confirmed", "Holds"
"""What is said of an observation that the data repeat, and of a theorem that they do not break."""


@dataclass(frozen=True)
class Verdict:
    """A claim, what the data show, and whether they confirm it.

    It exists only for a sentence of a paper, which it quotes with its place.
    """

    claim: str
    """What the paper says, and where."""
    seen: str
    """What the data show, with numbers."""
    confirmed: bool | None
    """None if these data cannot decide."""
    waiting: str = ""
    """What is missing before anything can be decided, if that is so: "9 of 30 runs"."""
    denied: str = "Not confirmed"
    """What it is called if the data do not confirm it."""
    affirmed: str = CONFIRMED
    """What it is called if they do."""
    but: str = ""
    """What the verdict is not without: a limit of what was asked."""

    def __post_init__(self) -> None:
        if self.confirmed is not None:  # comparisons of arrays' entries give NumPy's own truth
            object.__setattr__(self, "confirmed", bool(self.confirmed))

    @property
    def word(self) -> str:
        """The verdict in words."""
        word = self.affirmed if self.confirmed else self.denied
        if self.confirmed is None:
            word = f"Not decided yet, {self.waiting}" if self.waiting else "Not decided"
        return f"{word}, {self.but}" if self.but else word

    @property
    def heading(self) -> str:
        """Its first line in a terminal."""
        return f"{self.word}: {self.claim}"


@dataclass(frozen=True)
class Finding:
    """What the data show of something on which the paper makes no statement: not judged."""

    about: str
    """What is described, and that the paper does not decide it."""
    seen: str
    """What the data show, with numbers."""

    @property
    def heading(self) -> str:
        """Its first line in a terminal."""
        return f"Seen: {self.about}"


def said(remarks: Iterable[Verdict | Finding]) -> Table:
    """What the page shows of them."""
    rows = [
        {"verdict": one.word, "claim": one.claim, "seen": one.seen}
        if isinstance(one, Verdict)
        else {"verdict": "described", "claim": one.about, "seen": one.seen}
        for one in remarks
    ]
    return Table("What was asked, and what was seen", rows)
