"""The command line: find the command, import it, run it, and say mistakes in one line."""

import importlib
import sys
from collections.abc import Sequence

# name: (module, function of the remaining arguments, what it does)
COMMANDS = {
    "train": ("movi.training.commands", "train", "train a deep agent"),
    "evaluate": ("movi.training.commands", "evaluate", "play episodes with a trained agent"),
    "record": ("movi.training.commands", "record", "write a video of a trained agent"),
    "export": ("movi.training.commands", "export", "write a run's agent to one file"),
}


def usage() -> str:
    """What ``movi --help`` prints."""
    lines = [f"  {name:<10} {about}" for name, (_, _, about) in COMMANDS.items()]
    return "\n".join(["usage: movi COMMAND …", "", *lines, "", "movi COMMAND --help says more"])


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command; the exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0] in ("-h", "--help"):
        print(usage())
        return 0
    name, *rest = words
    from movi.errors import UserError

    try:
        if name not in COMMANDS:
            raise UserError(f"command: {name!r}, expected one of {', '.join(COMMANDS)}")
        module, function, _ = COMMANDS[name]
        getattr(importlib.import_module(module), function)(rest)
    except UserError as error:
        print(f"movi: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("movi: interrupted", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
