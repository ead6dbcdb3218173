"""What `make bench` says while it runs; its figures are measured, not tested."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"
BENCHMARKS = sorted(FOLDER.glob("bench_*.py"))


@pytest.fixture
def processes():
    spec = importlib.util.spec_from_file_location("processes", FOLDER / "processes.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_stage_says_what_begins_and_then_how_long_it_took(processes, capsys):
    with processes.stage("atari", processes.repetition(0, 3), "movi SAME"):
        assert capsys.readouterr().err == "atari, repetition 1 of 3, movi SAME …\n"
    line = capsys.readouterr().err
    assert re.fullmatch(r"atari, repetition 1 of 3, movi SAME: \d+\.\d s\n", line)


def test_a_stage_that_fails_took_no_time_that_counts(processes, capsys):
    with pytest.raises(processes.ProgramFailed), processes.stage("solve", "QuantEcon"):
        raise processes.ProgramFailed("no result within 900 s")
    assert capsys.readouterr().err == "solve, QuantEcon …\n"


@pytest.mark.parametrize("file", BENCHMARKS, ids=lambda file: file.stem)
def test_every_repetition_of_every_benchmark_is_a_stage(file):
    text = file.read_text()
    name = file.stem.removeprefix("bench_")
    assert re.search(rf'with stage\("{name}",[^)]*repetition\(\w+, repetitions\)', text)


def module(name, monkeypatch):
    """A benchmark, with what it imports from beside it."""
    monkeypatch.syspath_prepend(FOLDER)
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_a_whole_command_is_timed_from_outside(processes):
    assert 0.05 <= processes.seconds(sys.executable, "-c", "import time; time.sleep(0.05)") < 60
    with pytest.raises(processes.ProgramFailed, match="non-zero exit status 3"):
        processes.seconds(sys.executable, "-c", "raise SystemExit(3)")


def test_a_slow_problem_whose_tolerance_is_missed_is_a_row_that_fails(monkeypatch):
    slow = module("bench_slow", monkeypatch)
    missed = {"family": "maze", "states": 100, "discount": 0.999, "missed": 2e-6}
    row = slow.comparison(missed, "QuantEcon")
    assert (row["ratio"], row["to_reach"]) == (pytest.approx(0.5), 1.0)


def test_the_command_is_to_start_as_quickly_as_quantecon(monkeypatch):
    solve = module("bench_solve", monkeypatch)
    median = {"movi solve": 0.5, "QuantEcon": 1.0, "mdpsolver": 0.1}
    rows = solve.start_up_rows({"states": 1000, "median": median})
    assert [(r["peer"], r["ratio"], r["to_reach"]) for r in rows] == [
        ("QuantEcon", 2.0, 1.0),
        ("mdpsolver", 0.2, None),
    ]


def test_large_problems_are_held_against_what_was_promised(monkeypatch):
    """A Garnet of ten states has 10 · 4 · (4 · 12 + 8) bytes; ratios above 1 keep the promise."""
    large = module("bench_large", monkeypatch)
    assert large.model_bytes(10) == 2240
    garnet = {"states": 10, "model_gb": 2.0, "peak_gb": 4.0, "gb_s": 5.0, "gathers_m_s": 60.0}
    rows = large.comparisons(garnet, {"copy_gb_s": 20.0, "gathers_m_s": 120.0})
    assert [row["ratio"] for row in rows] == pytest.approx([1.1, 0.25, 0.5])
    assert [row["to_reach"] for row in rows] == [1, None, None]
    assert len(large.comparisons(garnet, None)) == 1
