from pathlib import Path

import pytest

from paper.report import write_report
from tests.paper import synthetic_results


@pytest.fixture(scope="session")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tabular results of every kind that the paper has. Nobody writes into them."""
    return synthetic_results.write_all(tmp_path_factory.mktemp("tables"), iterations=1000)


@pytest.fixture(scope="session")
def tables_page(tables: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Their page, with its figures in every format."""
    return write_report(tables, tmp_path_factory.mktemp("page") / "report.html")
