"""The page "Solve your own MDP": what its Python shows is what it gives."""

import doctest
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "docs" / "solving.md"


def test_the_python_of_the_page_gives_what_it_shows():
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    result = doctest.testfile(str(PAGE), module_relative=False, optionflags=flags)
    assert result.attempted > 8
    assert result.failed == 0
