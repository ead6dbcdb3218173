"""What `make bench` says while it runs; its figures are measured, not tested."""

import importlib.util
import re
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
