from pathlib import Path

import pytest

from momentum_rl.report import write_report
from tests.report import synthetic_results, synthetic_runs


@pytest.fixture(scope="session")
def twenty_games(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """400 run directories: four algorithms, twenty games, five seeds. Nobody writes into them."""
    return synthetic_runs.write_atari(tmp_path_factory.mktemp("atari"))


@pytest.fixture(scope="session")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tabular results of every kind that the paper has. Nobody writes into them."""
    return synthetic_results.write_all(tmp_path_factory.mktemp("tables"), iterations=1000)


@pytest.fixture(scope="session")
def tables_page(tables: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Their page, with its figures in every format."""
    return write_report(tables, tmp_path_factory.mktemp("page") / "report.html")
