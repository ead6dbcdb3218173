"""``movi`` and ``python -m momentum_rl``."""

import signal
import sys

# Until the command listens, an interrupt ends the process as any other: without a traceback.
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from momentum_rl.cli import program as main

if __name__ == "__main__":
    sys.exit(main())
