"""``python -m movi`` is ``movi``."""

import sys

from momentum_rl import main

sys.exit(main())
