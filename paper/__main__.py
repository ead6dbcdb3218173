"""The paper's commands: ``python -m paper COMMAND``, from the repository's root."""

import sys
from collections.abc import Sequence

from momentum_rl import cli

PROGRAM = "python -m paper"
COMMANDS = {
    "compare": "paper.tables.experiments:Compare",
    "assumption": "paper.tables.experiments:Assumption",
    "bounds": "paper.tables.experiments:Bounds",
    "averaging": "paper.tables.experiments:Averaging",
    "family": "paper.tables.experiments:Family",
    "report": "paper.report:Report",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; the exit status."""
    return cli.main(argv, COMMANDS, PROGRAM)


if __name__ == "__main__":
    sys.exit(main())
