from pathlib import Path

import pytest

from tests.report import synthetic_runs


@pytest.fixture(scope="session")
def twenty_games(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """400 run directories: four algorithms, twenty games, five seeds. Nobody writes into them."""
    return synthetic_runs.write_atari(tmp_path_factory.mktemp("atari"))
