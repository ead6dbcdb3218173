"""The exceptions that mean something to whoever called: one line, no traceback."""

from typing import Any


class UserError(ValueError):
    """The user's mistake: names the thing, the value found and what was expected, in one line."""


class Unwritable(UserError):
    """A file that cannot be written: a full disk, a directory without permission."""


class ToleranceMissed(ArithmeticError):
    """An answer that could not be proven to the tolerance that was asked for; exit status 3.

    Attributes:
      answer: the best that was found.
      bound: how far from the truth it is proven to be at most.
    """

    def __init__(self, line: str, answer: Any = None, bound: float = float("inf")) -> None:
        """The line, the best answer, its bound."""
        super().__init__(line)
        self.answer, self.bound = answer, bound


class Interrupted(Exception):
    """A run that was asked to stop by a signal, and stopped; its one line says how to go on."""

    def __init__(self, line: str, signal: int) -> None:
        """The line, and the number of the signal."""
        super().__init__(line)
        self.signal = signal


def check_seed(seed: int) -> None:
    """A seed is an integer in [0, 2**63)."""
    if not 0 <= seed < 2**63:
        raise UserError(f"seed: {seed}, expected an integer in 0..2**63 - 1")
