"""``python -m movi`` is ``movi``."""

import sys

from movi.cli import main

sys.exit(main())
