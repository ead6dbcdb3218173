"""The command ``movi``, of the distribution ``momentum-rl``, whose package is ``movi``.

There is another distribution with a package ``movi`` on the index, of a voice shield. Where both
are installed, Python finds one of them, and if it is the other one, nothing of ours can be
imported. So the command starts here, in a module whose name nobody else has, and looks at what
Python would import before it does.
"""

import signal
import sys
from importlib.util import find_spec
from pathlib import Path


def main() -> int:
    """Entry point of ``movi``; the exit status."""
    # Until the command listens, an interrupt ends the process as any other: without a traceback.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    spec = find_spec("movi")
    found = Path((spec and spec.origin) or "movi")
    if 'DISTRIBUTION = "momentum-rl"' not in _text(found):
        print(
            f"movi: {found} is not of momentum-rl but of another package with the same name; "
            "pip uninstall movi, then install momentum-rl again",
            file=sys.stderr,
        )
        return 2
    from movi.cli import main as run

    return run()


def _text(file: Path) -> str:
    return file.read_text("utf-8", "replace") if file.is_file() else ""


if __name__ == "__main__":
    sys.exit(main())
