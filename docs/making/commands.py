"""The page of the command line, from the commands themselves."""

import inspect

from fields import settings, table

from momentum_rl.cli import COMMANDS, command

OPENING = """\
# The command line

This page is made from the commands' own descriptions; `movi COMMAND --help` prints the same. Exit
status 0 means success, 1 that runs of a sweep failed, 2 a mistake in the command (one line says
which), 3 that a solution missed its tolerance, and 130 or 143 that a signal stopped it.

Some options depend on others. `movi train ALGORITHM --help` adds the options of the algorithm,
which are on its page under [Algorithms](../algorithms/index.md), and shows the defaults of the
preset. The defaults below are those of the preset `control`. `movi solve --scheme SCHEME --help`
adds the options of the scheme, `movi mdp NAME --help` those of the family.
"""


def command_line() -> str:
    """The page's Markdown."""
    parts = [OPENING]
    for words in COMMANDS:
        kind = command(words)
        rows = list(settings(kind))
        positional = [row for row in rows if row.positional]
        usage = " ".join([f"movi {words}", *(row.name.upper() for row in positional), "…"])
        ordered = positional + [row for row in rows if not row.positional]
        parts += [
            f"## movi {words}",
            inspect.getdoc(kind) or "",
            f"```\n{usage}\n```",
            table(ordered),
        ]
    return "\n\n".join(parts) + "\n"
