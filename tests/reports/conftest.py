from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.reports import synthetic_runs
from tests.reports.report_browser import Browser


@pytest.fixture(scope="session")
def twenty_games(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """400 run directories: four algorithms, twenty games, five seeds. Nobody writes into them."""
    return synthetic_runs.write_atari(tmp_path_factory.mktemp("atari"))


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.quit()


@pytest.fixture
def browser(chromium: Browser) -> Browser:
    chromium.javascript(True)
    chromium.prefer("light")
    chromium.size(1200, 900)
    return chromium
