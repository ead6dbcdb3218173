"""Run directories as they are found: whole, half-written, foreign, from a newer version."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from momentum_rl.errors import UserError
from momentum_rl.runs.config import FORMAT, Config
from momentum_rl.runs.finding import find_runs, read_run
from momentum_rl.runs.sweep import read_sweep
from tests.report import synthetic_runs as synthetic

CONFIG = Config("dqn", "CartPole-v1", steps=4_500, iteration_steps=1_000)


def test_a_finished_run_is_read(tmp_path: Path) -> None:
    scores = [1.0, None, 3.0, 4.0, 5.0]
    path = synthetic.write_run(tmp_path / "run", CONFIG, scores, evaluation=7.5)
    run, odd = read_run(path)
    assert (run.config, run.state, run.evaluation, odd) == (CONFIG, "finished", 7.5, "")
    np.testing.assert_array_equal(run.training.scores, [1, math.nan, 3, 4, 5])
    assert run.diverged_at is None


def test_a_diverged_run_knows_the_iteration_that_it_did_not_complete(tmp_path: Path) -> None:
    for step, iteration in ((1, 0), (2_500, 2), (3_000, 2), (3_001, 3)):
        path = tmp_path / str(step)
        synthetic.write_run(path, CONFIG, [1.0, 2.0, 3.0], status="diverged", step=step)
        run, _ = read_run(path)
        assert (run.state, run.diverged_at, run.training.diverged_in) == (
            "diverged",
            step,
            iteration,
        )


EVALUATED = replace(CONFIG, evaluate_every=1_500)
"""Iterations end at 1,000, 2,000, 3,000, 4,000 and 4,500; due are 2,000, 3,000 and 4,500."""


def test_evaluations_during_a_run_are_a_curve_of_their_own(tmp_path: Path) -> None:
    path = synthetic.write_run(tmp_path / "run", EVALUATED, [1.0] * 5, greedy=[7.0, 8.0, 9.0])
    run, odd = read_run(path)
    assert odd == ""
    assert run.greedy is not None
    assert run.greedy.steps.tolist() == [2_000, 3_000, 4_500]
    assert run.greedy.scores.tolist() == [7, 8, 9]
    assert run.training.steps.tolist() == [1_000, 2_000, 3_000, 4_000, 4_500]
    assert run.training.scores.tolist() == [1] * 5
    without, _ = read_run(synthetic.write_run(tmp_path / "without", CONFIG, [1.0] * 5))
    assert without.greedy is None


def test_a_lost_evaluation_has_no_score_and_one_that_was_not_due_is_named(tmp_path: Path) -> None:
    path = synthetic.write_run(tmp_path / "run", EVALUATED, [1.0] * 5)
    synthetic.write_evaluations(path, {2_000: 7.0, 2_500: 100.0, 4_500: 9.0})
    run, odd = read_run(path)
    assert run.greedy is not None
    np.testing.assert_array_equal(run.greedy.scores, [7, math.nan, 9])
    assert odd == f"{path}/evaluations.jsonl: step 2500, at which no evaluation was due"
    (path / "evaluations.jsonl").write_text('{"step": 2000}\n{}\n')
    run, odd = read_run(path)
    assert run.greedy is None
    assert "evaluations.jsonl: line 1" in odd


def test_a_diverged_run_knows_the_evaluation_that_it_did_not_reach(tmp_path: Path) -> None:
    for step, point in ((1, 0), (2_000, 0), (2_001, 1), (4_000, 2)):
        path = tmp_path / str(step)
        synthetic.write_run(
            path, EVALUATED, [1.0] * 4, status="diverged", step=step, greedy=[5.0, 6.0]
        )
        run, _ = read_run(path)
        assert run.greedy is not None
        assert run.greedy.diverged_in == point


@pytest.mark.parametrize("status", ["running", "failed", "interrupted"])
def test_a_run_that_has_not_ended_is_unfinished(status: str, tmp_path: Path) -> None:
    run, odd = read_run(synthetic.write_run(tmp_path / "run", CONFIG, [1.0, 2.0], status=status))
    assert (run.state, run.training.scores.size, odd) == ("unfinished", 2, "")


def test_a_last_line_in_the_making_is_left_out(tmp_path: Path) -> None:
    path = synthetic.write_run(tmp_path / "run", CONFIG, [1.0, 2.0, 3.0], status="running")
    text = (path / "metrics.jsonl").read_text()
    (path / "metrics.jsonl").write_text(text[:-20])
    run, odd = read_run(path)
    assert run.training.scores.tolist() == [1, 2]
    assert odd == ""


def test_a_finished_run_with_lost_rows_is_named_and_unfinished(tmp_path: Path) -> None:
    run, odd = read_run(synthetic.write_run(tmp_path / "run", CONFIG, [1.0, 2.0]))
    assert run.state == "unfinished"
    assert "2 of 5 iterations of a run that finished" in odd


@pytest.mark.parametrize(
    ("file", "text", "complaint"),
    [
        ("metrics.jsonl", '{"step": 1000, "score": "high"}\n', "line 1: score: 'high', expected"),
        (
            "metrics.jsonl",
            '{"step": 1000, "score": NaN}\n',
            "line 1: cannot be read as JSON: the number NaN",
        ),
        ("metrics.jsonl", '{"step": 1000, "score": true}\n', "line 1: score: True, expected"),
        ("metrics.jsonl", "[]\n", "line 1: [], expected an object"),
        ("metrics.jsonl", '{"step": 9}\n{"step": 9}\n', "line 2: step 9, expected increasing"),
        ("metrics.jsonl", "no\n{}\n", "line 1: cannot be read as JSON"),
        ("metrics.jsonl", "[" * 100_000 + "\n{}\n", "line 1: cannot be read as JSON"),
        ("config.json", "{}", "format None"),
        ("config.json", "[" * 100_000, "cannot be read as JSON: too deep"),
        (
            "config.json",
            f'{{"format": {FORMAT}, "algorithm": "dqn", "env": "x", "gamma": "x"}}',
            "config.json: ",
        ),
        (
            "config.json",
            f'{{"format": {FORMAT}, "algorithm": "dqn", "env": 3}}',
            "env: 3, expected a text",
        ),
        (
            "config.json",
            '{"format": 99, "algorithm": "dqn"}',
            "format 99, this version of movi reads",
        ),
        (
            "config.json",
            f'{{"format": {FORMAT}, "algorithm": "dqn", "env": "x", "new": 1}}',
            "unknown or",
        ),
    ],
)
def test_a_run_that_cannot_be_used_is_one_line_and_the_others_are_read(
    file: str, text: str, complaint: str, tmp_path: Path
) -> None:
    synthetic.write_run(tmp_path / "good", CONFIG, [1.0] * 5)
    bad = synthetic.write_run(tmp_path / "bad", CONFIG, [1.0] * 5)
    (bad / file).write_text(text)
    found = find_runs(tmp_path)
    assert [run.path.name for run in found.runs] == ["good"]
    assert len(found.problems) == 1
    assert found.problems[0].startswith(f"bad/{file}")
    assert complaint in found.problems[0]
    assert "\n" not in found.problems[0]


@pytest.mark.parametrize(
    "text", ["", "[]", '{"status": "resting", "step": 1}', '{"status": "finished"}', "\0"]
)
def test_a_run_of_unknown_status_is_shown_as_unfinished(text: str, tmp_path: Path) -> None:
    path = synthetic.write_run(tmp_path / "run", CONFIG, [1.0] * 5)
    (path / "status.json").write_text(text)
    run, odd = read_run(path)
    assert run.state == "unfinished"
    assert "status.json" in odd
    assert "counted as unfinished" in odd


@given(st.binary(max_size=200))
def test_no_bytes_in_a_file_are_a_traceback(content: bytes) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = synthetic.write_run(Path(folder) / "run", CONFIG, [1.0] * 5)
        for name in ("metrics.jsonl", "status.json", "evaluation.json", "config.json"):
            (path / name).write_bytes(content)
            find_runs(Path(folder))


def test_a_folder_of_nothing_or_of_others_has_no_runs(tmp_path: Path) -> None:
    assert find_runs(tmp_path) == find_runs(tmp_path / "absent")
    (tmp_path / "node").mkdir()
    (tmp_path / "node" / "config.json").write_text('{"name": "somebody else\'s"}')
    found = find_runs(tmp_path)
    assert found.runs == ()
    assert found.problems == (
        f"node/config.json: format None, this version of movi reads {FORMAT}",
    )


def test_a_link_back_is_not_followed(tmp_path: Path) -> None:
    synthetic.write_run(tmp_path / "run", CONFIG, [1.0] * 5)
    (tmp_path / "again").symlink_to(tmp_path, target_is_directory=True)
    assert len(find_runs(tmp_path).runs) == 1


def test_a_sweep_names_the_runs_that_are_its_cells(tmp_path: Path) -> None:
    other = CONFIG.replace(algorithm="momentum-dqn")
    synthetic.write_sweep(tmp_path, [("plain", CONFIG, 2), ("mine β=0.5", other, 2)])
    place = tmp_path / "runs" / "CartPole-v1" / "mine-beta-0.5"
    for seed, changes in ((0, {}), (1, {"save_every": 7}), (2, {}), (3, {"gamma": 0.5})):
        own = replace(other, seed=seed if seed < 3 else 1, **changes)
        synthetic.write_run(place / f"seed-{seed}", own, [1.0])
    synthetic.write_run(tmp_path / "runs" / "else" / "seed-0", CONFIG, [1.0])
    runs = find_runs(tmp_path).runs
    assert all(run.sweep is not None and run.sweep.runs == 4 for run in runs)
    # Files at other times are the same run; a seed or a discount that the matrix lacks is not. One
    # that was put elsewhere is known by its config.
    assert [run.label for run in runs] == ["mine β=0.5", "mine β=0.5", None, None, "plain"]
    assert [run.cell for run in runs] == [1, 1, None, None, 0]


def test_a_sweep_that_cannot_be_read_does_not_hide_its_runs(tmp_path: Path) -> None:
    synthetic.write_sweep(tmp_path, [("my label", CONFIG, 2)])
    synthetic.write_run(tmp_path / "runs" / "CartPole-v1" / "my-label" / "seed-0", CONFIG, [1.0])
    assert find_runs(tmp_path).runs[0].label == "my label"
    data = json.loads((tmp_path / "sweep.json").read_text())
    (tmp_path / "sweep.json").write_text(json.dumps({**data, "format": 2}))
    found = find_runs(tmp_path)
    assert (found.runs[0].sweep, found.runs[0].root) == (None, None)
    assert "sweep.json: format 2, this version of movi reads 1" in found.problems[0]
    for wrong in ({"cells": 3}, {"cells": [3]}, {"cells": [{"config": {}}]}, {"name": 1}):
        (tmp_path / "sweep.json").write_text(json.dumps({**data, **wrong}))
        with pytest.raises(UserError, match=r"sweep\.json"):
            read_sweep(tmp_path)


def test_the_committed_evidence_is_read_run_by_run() -> None:
    folder = Path(__file__).parents[2] / "paper" / "evidence" / "runs" / "1-momentum"
    found = find_runs(folder)
    assert found.problems == ()
    files = sorted(folder.glob("runs/*/*/seed-*/config.json"))
    assert [run.path / "config.json" for run in found.runs] == files
    for run in found.runs:  # of format 2, with the options of all algorithms among the fields
        assert (run.state, run.label, run.training.scores.size) == (
            "finished",
            run.config.algorithm,
            20,
        )
