"""The one exception that means "the user's mistake": one line, exit status 2, no traceback."""


class UserError(ValueError):
    """Names the thing, the value found and what was expected, in one line."""
