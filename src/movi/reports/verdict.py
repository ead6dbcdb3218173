"""What the report says beside a figure: claims of a paper, judged, and what else is seen."""

from dataclasses import dataclass


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

    def __post_init__(self) -> None:
        if self.confirmed is not None:  # comparisons of arrays' entries give NumPy's own truth
            object.__setattr__(self, "confirmed", bool(self.confirmed))

    @property
    def word(self) -> str:
        """The verdict in words."""
        if self.confirmed is None:
            return f"Not decided yet, {self.waiting}" if self.waiting else "Not decided"
        return "Confirmed" if self.confirmed else self.denied

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
