import contextlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from momentum_rl.errors import UserError
from paper.claims.tables import (
    read_assumption,
    read_bounds,
    read_compare,
    read_table,
)
from tests.paper import synthetic_results as synthetic

COMPARE = "scheme,iteration,l1_mean,l1_std\n"


def _file(tmp_path: Path, text: str, name: str = "compare.csv") -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def _complaint(error: pytest.ExceptionInfo[UserError]) -> str:
    text = str(error.value)
    assert "\n" not in text
    return text


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    wrote = synthetic.compare(30)
    synthetic.write_compare(tmp_path / "compare.csv", wrote)
    read = read_compare(tmp_path / "compare.csv")
    np.testing.assert_array_equal(read.iteration, np.arange(1, 31))
    assert list(read.mean) == ["avi", "movi", "sql", "dpp"]
    np.testing.assert_array_equal(read.std["sql"], wrote.std["sql"])

    errors = synthetic.assumptions(12)
    synthetic.write_assumption(tmp_path / "assumption.csv", errors)
    back = read_assumption(tmp_path / "assumption.csv")
    assert list(back.parts) == [("printed", "j+1"), ("assumed", "j+1"), ("assumed", "j")]
    for product, own in errors.parts.items():
        assert list(back.of(product)) == [10, 100, 1000]
        for j, part in own.items():
            read_part = back.of(product)[j]
            assert list(read_part.mean) == [0, 1, 2, 5, 10]
            np.testing.assert_array_equal(read_part.mean[10], part.mean[10])
            np.testing.assert_array_equal(read_part.std[2], part.std[2])
            assert read_part.proven == part.proven

    synthetic.write_bounds(tmp_path / "bounds.csv", synthetic.bounds(5))
    assert read_bounds(tmp_path / "bounds.csv").columns["supremum"].shape == (5,)


def test_a_missing_column_is_named_with_the_file(tmp_path: Path) -> None:
    path = _file(tmp_path, "scheme,iteration,l1_mean\navi,1,2\n")
    with pytest.raises(UserError) as error:
        read_compare(path)
    assert str(path) in _complaint(error)
    assert "no column 'l1_std'" in str(error.value)


@pytest.mark.parametrize("value", ["", "abc", "nan", "1.2.3"])
def test_what_is_not_a_number_is_named_with_line_and_column(tmp_path: Path, value: str) -> None:
    path = _file(tmp_path, COMPARE + f"avi,1,2,3\navi,2,{value},3\n")
    with pytest.raises(UserError) as error:
        read_compare(path)
    assert f"line 3, column 'l1_mean': {value!r}, expected a number" in _complaint(error)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("", "no rows"),
        ("avi,1,2\n", "line 2 has 3 values, expected 4"),
        ("avi,1,-0.5,1\n", "column 'l1_mean': -0.5, expected a finite number of at least 0"),
        ("avi,1,inf,1\n", "column 'l1_mean': inf, expected a finite number"),
        ("avi,0,1,1\n", "avi: 0.0, expected a whole number from 1"),
        ("avi,1.5,1,1\n", "avi: 1.5, expected a whole number from 1"),
        ("avi,2,1,1\navi,1,1,1\n", "1 after 2, expected increasing"),
        ("avi,1,1,1\navi,2,1,1\nmovi,1,1,1\n", "movi has 1 rows up to iteration 1"),
    ],
)
def test_a_bad_table_is_refused_in_one_line(tmp_path: Path, body: str, expected: str) -> None:
    with pytest.raises(UserError) as error:
        read_compare(_file(tmp_path, COMPARE + body))
    assert expected in _complaint(error)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("guessed,j+1,10,0,1,2,3,1", "column 'reading': 'guessed', expected one of printed, assum"),
        ("printed,k,10,0,1,2,3,1", "column 'lowest': 'k', expected one of j+1, j"),
        ("printed,j+1,0,0,1,2,3,1", "column 'j': 0.0, expected a whole number"),
        ("printed,j+1,10,-1,1,2,3,1", "column 'l': -1.0, expected a whole number"),
        ("printed,j+1,10,0,1,-2,3,1", "column 'mean': -2.0, expected a finite number"),
        ("printed,j+1,10,0,2,2,3,1\nprinted,j+1,10,0,1,2,3,1", "1 after 2, expected increasing"),
    ],
)
def test_a_bad_assumption_check_is_refused_in_one_line(
    tmp_path: Path, row: str, expected: str
) -> None:
    header = "reading,lowest,j,l,n,mean,std,settled\n"
    with pytest.raises(UserError) as error:
        read_assumption(_file(tmp_path, f"{header}{row}\n"))
    assert expected in _complaint(error)


def test_an_assumption_check_without_readings_is_of_an_older_version(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no column 'j'"):
        read_assumption(_file(tmp_path, "l,n,mean,std\n0,1,2,3\n"))


def test_empty_and_binary_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="empty, expected a header"):
        read_table(_file(tmp_path, ""), ("iteration",))
    (tmp_path / "compare.csv").write_bytes(b"\xff\xfe\x00\x81")
    with pytest.raises(UserError, match="not a text in UTF-8"):
        read_compare(tmp_path / "compare.csv")
    with pytest.raises(UserError, match="occurs twice"):
        read_table(_file(tmp_path, "a,a\n1,2\n"), ("a",))


def test_a_bound_may_be_infinite_and_a_file_needs_something_to_bound(tmp_path: Path) -> None:
    data = read_bounds(_file(tmp_path, "iteration,loss_sup,supremum\n1,2,inf\n"))
    assert data.columns["supremum"][0] == np.inf
    with pytest.raises(UserError, match="no column beside 'iteration'"):
        read_bounds(_file(tmp_path, "iteration\n1\n"))


@given(st.text(max_size=300))
def test_no_text_at_all_makes_a_traceback(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    path = tmp_path_factory.mktemp("any") / "compare.csv"
    path.write_text(COMPARE + text, encoding="utf-8", errors="replace")
    with contextlib.suppress(UserError):
        read_compare(path)
