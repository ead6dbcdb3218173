"""``python -m movi`` is ``movi``."""

from movi.cli import main

main()
