"""The one exception that means "the user's mistake": one line, exit status 2, no traceback."""


class UserError(ValueError):
    """Names the thing, the value found and what was expected, in one line."""


def check_seed(seed: int) -> None:
    """A seed is an integer in [0, 2**63)."""
    if not 0 <= seed < 2**63:
        raise UserError(f"seed: {seed}, expected an integer in 0..2**63 - 1")
