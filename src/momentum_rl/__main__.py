"""``movi`` and ``python -m momentum_rl``."""

import sys

from momentum_rl.cli import program as main

if __name__ == "__main__":
    sys.exit(main())
