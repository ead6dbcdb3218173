"""Where ``movi`` and ``python -m momentum_rl`` begin, before anything heavy is imported."""

import contextlib
import io
import os
import signal
import sys


def main() -> int:
    """Entry point of ``movi``; the exit status."""
    _open_streams()
    # Until the command listens, an interrupt ends the process as any other: without a traceback.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from momentum_rl.cli import main as run

    status = run()
    if status > 128:  # by a signal: compiled code may still run, and would crash in a tear-down
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(status)
    return status


def _open_streams() -> None:
    """Makes the three standard streams ones that anything can be written to.

    The number of one that is closed would be that of the next file to be opened, into which the
    libraries' messages would then go. A character that a terminal does not have is spelled out.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    sys.stdout = sys.stdout or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    sys.stderr = sys.stderr or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


if __name__ == "__main__":
    sys.exit(main())
