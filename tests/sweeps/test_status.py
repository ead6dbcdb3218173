"""How runs stand, whatever their directories look like."""

import json
from contextlib import closing

import pytest

from momentum_rl.cli import main
from momentum_rl.runs.lock import RUN_LOCK, SWEEP_LOCK, Lock
from momentum_rl.runs.sweep import Matrix, jobs_of, run_directory, write_sweep
from momentum_rl.sweeps.status import note_failure, overview, summary
from momentum_rl.training.run_directory import check_free

PRINTED = {"algorithm": "deep-sql", "label": "deep-sql (printed)", "sign": "printed"}
SWEEP = Matrix(["CartPole-v1"], ["dqn", PRINTED], 4, "mine", config={"steps": 1000}).sweep()


@pytest.fixture
def sweep(tmp_path):
    write_sweep(tmp_path, SWEEP)
    return tmp_path


def locked(directory):
    return closing(Lock(directory / SWEEP_LOCK, "sweep"))


def put_run(directory, index, seed, status=None, steps=()):
    cell = SWEEP.cells[index]
    path = run_directory(directory, cell, seed)
    path.mkdir(parents=True)
    (path / "config.json").write_text(cell.config_of(seed).to_json())
    if status is not None:
        (path / "status.json").write_text(json.dumps(status))
    rows = [
        {"iteration": i, "step": step, "seconds": 4.0 * i, "steps_per_second": 50.0}
        for i, step in enumerate(steps)
    ]
    text = "".join(f"{json.dumps(row)}\n" for row in rows)
    (path / "timing.jsonl").write_text(text + '{"iteration": 2, "st' if steps else text)
    return path


def job_of(index, seed):
    return next(j for j in jobs_of(SWEEP) if (j.index, j.seed) == (index, seed))


def states(directory):
    return [(run.state, run.step) for run in overview(directory).runs]


def test_a_sweep_that_has_not_begun_is_waiting(sweep):
    seen = overview(sweep)
    assert [(run.label, run.seed, run.state) for run in seen.runs[3:5]] == [
        ("dqn", 3, "waiting"),
        ("deep-sql (printed)", 0, "waiting"),
    ]
    assert seen.counts() == {"waiting": 8}
    assert seen.left is None
    assert "nobody works on it" in summary(seen)


def test_every_state_is_told_from_the_others(sweep):
    running = {"status": "running", "step": 0, "message": ""}
    put_run(sweep, 0, 0, {"status": "finished", "step": 1000, "message": ""})
    put_run(sweep, 0, 1, {"status": "diverged", "step": 400, "message": "diverged at step 400"})
    at_work = put_run(sweep, 0, 2, running, [100, 250])
    put_run(sweep, 0, 3, running, [100, 200])
    put_run(sweep, 1, 0, {"status": "failed", "step": 7, "message": "ValueError()"})
    note_failure(sweep, job_of(1, 0), "exit status 1")
    note_failure(sweep, job_of(1, 1), "no such thing")
    put_run(sweep, 1, 2, {"status": "interrupted", "step": 300, "message": ""})
    assert overview(sweep).left is None  # nobody works on it
    assert states(sweep)[2] == ("interrupted", 250)
    with locked(sweep), closing(Lock(at_work / RUN_LOCK)):
        note_failure(sweep, job_of(0, 2), "another worker has it")
        seen = overview(sweep)
    assert [(run.state, run.step) for run in seen.runs] == [
        ("finished", 1000),
        ("diverged", 400),
        ("running", 250),
        ("interrupted", 200),
        ("failed", 7),
        ("failed", 0),
        ("interrupted", 300),
        ("waiting", 0),
    ]
    assert seen.runs[2].speed == 50.0
    assert seen.runs[2].left == (1000 - 250) / 50
    assert seen.left == (750 + 800 + 700 + 1000) / 50
    assert [run.message for run in seen.runs[4:6]] == ["ValueError()", "no such thing"]
    counts = {"waiting": 1, "running": 1, "interrupted": 2, "finished": 1, "diverged": 1}
    assert seen.counts() == {**counts, "failed": 2}
    assert (
        "8 runs: 1 waiting, 1 running, 2 interrupted, 1 finished, 1 diverged, 2 failed; about "
        in (summary(seen))
    )


def test_half_written_and_newer_runs_are_rows_of_the_table(sweep, capsys):
    put_run(sweep, 0, 0)
    (put_run(sweep, 0, 1) / "status.json").write_text('{"status": "fin')
    (put_run(sweep, 0, 2) / "status.json").write_text('{"status": "hibernating", "step": 5}')
    (put_run(sweep, 0, 3) / "status.json").write_text("[]")
    (put_run(sweep, 1, 0) / "status.json").write_text('{"status": "running", "step": "many"}')
    (put_run(sweep, 1, 1) / "status.json").write_bytes(b"\xff\xfe")
    running = put_run(sweep, 1, 3, {"status": "running", "step": 3}, [100])
    (running / "timing.jsonl").write_text('\x00\x00\n{"step": null}\n')
    assert [run.state for run in overview(sweep).runs] == [
        "waiting",
        *["unreadable"] * 5,
        "waiting",
        "interrupted",
    ]
    assert main(["status", str(sweep)]) == 0
    said = capsys.readouterr().out
    assert "5 unreadable" in said
    assert "'hibernating', expected one of running" in " ".join(said.split())


def test_a_failure_before_the_first_file_is_that_of_the_jobs_run(tmp_path):
    write_sweep(tmp_path, SWEEP)
    job = next(jobs_of(SWEEP))
    assert str(job.log(tmp_path).relative_to(tmp_path)) == "logs/CartPole-v1/dqn/seed-0.txt"
    note_failure(tmp_path, job, "needs 7 GB")
    first, *others = overview(tmp_path).runs
    assert (first.state, first.message) == ("failed", "needs 7 GB")
    assert {run.state for run in others} == {"waiting"}
    with closing(Lock(job.run(tmp_path) / RUN_LOCK)):  # another attempt
        assert overview(tmp_path).runs[0].state == "running"
    check_free(job.run(tmp_path))  # what is there keeps no run from beginning


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "no sweep and no runs"),
        ({"readme.txt": "hello"}, "no sweep and no runs"),
        ({"config.json": '{"port": 80}'}, "no sweep and no runs"),
        ({"sweep.json": '{"format": 99}'}, "format 99, this version of movi reads 1"),
        ({"sweep.json": '{"format": 1, "na'}, "cannot be read as JSON"),
        ({"sweep.json": ""}, "cannot be read as JSON"),
        ({"sweep.json": '{"kernel": "rbf"}'}, "format None"),
        ({"sweep.json/x": ""}, "Is a directory"),
    ],
)
def test_a_directory_that_is_no_sweeps_is_one_clear_line(tmp_path, capsys, content, says):
    for name, text in (content or {}).items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    before = sorted(tmp_path.rglob("*"))
    assert main(["status", str(tmp_path)]) == 2
    said = capsys.readouterr()
    assert says in said.err
    assert said.err.count("\n") == 1
    assert said.out == ""
    assert sorted(tmp_path.rglob("*")) == before


def test_a_missing_directory_and_a_file_are_named(tmp_path, capsys):
    assert main(["status", str(tmp_path / "none")]) == 2
    assert "no such directory" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    assert main(["status", str(tmp_path / "file")]) == 2
    assert "is a file" in capsys.readouterr().err


def test_runs_of_no_sweep_are_shown_too(tmp_path, capsys):
    put_run(tmp_path, 0, 3, {"status": "finished", "step": 1000, "message": ""})
    newer = put_run(tmp_path, 1, 0, {"status": "running", "step": 0})
    (newer / "config.json").write_text('{"format": 7}')
    assert main(["status", str(tmp_path)]) == 0
    said = " ".join(capsys.readouterr().out.replace("│", " ").split())  # cells may be wrapped
    assert "2 runs: 1 finished, 1 unreadable" in said
    assert "format 7" in said
    assert main(["status", str(newer.parents[1] / "dqn" / "seed-3")]) == 0
    assert "1 runs: 1 finished" in capsys.readouterr().out


def test_what_a_run_says_is_no_command_to_the_terminal(sweep, capsys):
    message = "[bold]loud[/bold] \x1b[2J\x07"
    put_run(sweep, 0, 0, {"status": "failed", "step": 0, "message": message})
    assert main(["status", str(sweep)]) == 0
    said = capsys.readouterr().out
    assert "[bold]loud[/bold]" in " ".join(said.split())
    assert "\x1b" not in said
    assert "\x07" not in said


def test_watching_ends_when_all_runs_have_ended(sweep, capsys):
    for index in (0, 1):
        for seed in range(4):
            put_run(sweep, index, seed, {"status": "finished", "step": 1000, "message": ""})
    assert main(["status", str(sweep), "--watch"]) == 0
    assert "8 runs: 8 finished" in capsys.readouterr().out
