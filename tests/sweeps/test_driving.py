"""Sweeps for real: worker processes, what they leave, and what happens when they are killed."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from momentum_rl.cli import main
from momentum_rl.runs.files import read_metrics, read_status
from momentum_rl.runs.sweep import read_sweep, run_directory
from momentum_rl.training.train import train
from tests.sweeps.sweep_processes import (
    TOML,
    fingerprint,
    results,
    rows,
    wait_for,
    workers_of,
)

WIDE = {"COLUMNS": "200"}


@pytest.fixture
def movi(tmp_path):
    """Calls ``movi`` in a directory of its own, or starts it there."""

    def call(*words, start=False, seconds=280, **more):
        env = {**os.environ, **WIDE, **more}
        command = [sys.executable, "-m", "momentum_rl", *map(str, words)]
        if start:
            return subprocess.Popen(
                command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, text=True
            )
        return subprocess.run(
            command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=seconds
        )

    return call


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """A sweep that nobody disturbed, and what it printed."""
    place = tmp_path_factory.mktemp("undisturbed")
    (place / "mine.toml").write_text(TOML)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "momentum_rl",
            "sweep",
            "mine.toml",
            "--out",
            "out",
            "--workers",
            "2",
        ],
        cwd=place,
        env={**os.environ, **WIDE},
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    return place / "out", done.stdout


def test_a_sweep_leaves_one_ordinary_run_directory_per_run(undisturbed):
    out, said = undisturbed
    assert "runs         4 (2 cells)" in said
    assert "(4/4)" in said
    sweep = read_sweep(out)
    for cell in sweep.cells:
        for seed in cell.seeds:
            run = run_directory(out, cell, seed)
            status = read_status(run)
            assert (status.status, status.step, status.message) == ("finished", 2000, "")
            assert len((run / "metrics.jsonl").read_text().splitlines()) == 8
            config = json.loads((run / "config.json").read_text())
            assert config["seed"] == seed
            stored = json.loads((out / "sweep.json").read_text())["cells"]
            (own,) = (c for c in stored if (c["env"], c["label"]) == (cell.env, cell.label))
            assert own["config"].items() <= config.items()
            assert not (run / "replay").exists()
            assert not (run / "checkpoint").exists()
    slugs = {path.name for path in (out / "runs" / "CartPole-v1").iterdir()}
    assert slugs == {"momentum-beta-0.5"}
    for seed in (0, 1):
        log = out / f"logs/gymnax-CartPole-v1/momentum-beta-0.5/seed-{seed}.txt"
        assert f", seed {seed} (process" in log.read_text()


def test_a_run_of_a_sweep_is_the_run_of_its_config(undisturbed, tmp_path):
    out, _ = undisturbed
    cell = read_sweep(out).cells[1]
    assert cell.env == "CartPole-v1"
    train(cell.config_of(1), tmp_path / "single")
    for name in ("config.json", "metrics.jsonl", "evaluation.json", "agent.safetensors"):
        single = (tmp_path / "single" / name).read_bytes()
        assert single == (run_directory(out, cell, 1) / name).read_bytes(), name


def test_a_complete_sweep_is_not_repeated(undisturbed, capsys):
    out, _ = undisturbed
    before = fingerprint(out)
    assert main(["sweep", str(out.parent / "mine.toml"), "--out", str(out)]) == 0
    said = capsys.readouterr()
    assert "4, all complete" in said.out
    assert said.err == ""
    assert fingerprint(out) == before


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("steps = 2000", "steps = 4000", "steps 2000 → 4000"),
        ("seeds = 2", "seeds = 3", "seeds [0, 1] → [0, 1, 2]"),
        ('"gymnax/CartPole-v1", ', "", "without gymnax/CartPole-v1 momentum β=0.5"),
    ],
)
def test_a_changed_matrix_is_refused_with_the_difference(
    undisturbed, capsys, tmp_path, old, new, says
):
    out, _ = undisturbed
    before = results(out)
    (tmp_path / "mine.toml").write_text(TOML.replace(old, new))
    assert main(["sweep", str(tmp_path / "mine.toml"), "--out", str(out)]) == 2
    said = capsys.readouterr().err
    assert says in said
    assert said.count("\n") == 1
    assert results(out) == before


def test_a_sweep_that_is_killed_goes_on_to_the_same_results(undisturbed, movi, tmp_path):
    (tmp_path / "mine.toml").write_text(TOML)
    out = tmp_path / "out"
    words = ("sweep", "mine.toml", "--out", out, "--workers", 2)
    driver = movi(*words, start=True)
    try:
        wait_for(lambda: rows(out) >= 3)
        victim = wait_for(lambda: workers_of(out))[0]
        os.kill(victim, signal.SIGKILL)
        while "(attempt 2)" not in driver.stdout.readline():
            assert driver.poll() is None
        wait_for(lambda: rows(out) >= 9)
        assert workers_of(out)
        driver.kill()
        driver.wait()
        wait_for(lambda: not workers_of(out), 60)  # no orphans
    finally:
        driver.kill()
        driver.wait()
    before = fingerprint(out)
    assert len(before) < len(fingerprint(undisturbed[0]))
    assert "nobody works on it" in " ".join(movi("status", "out").stdout.split())
    done = movi(*words)
    assert (done.returncode, done.stderr) == (0, "")
    assert before.items() <= fingerprint(out).items()  # nothing finished is repeated
    assert results(out) == results(undisturbed[0])


GYM = """
import gymnasium as gym
from gymnasium.envs.classic_control import CartPoleEnv


class Moody(CartPoleEnv):
    def step(self, action):
        {mood}
        return super().step(action)


gym.register("Moody-v0", entry_point=Moody, max_episode_steps=100)
"""


@pytest.mark.slow
def test_a_failed_run_keeps_its_log_stops_no_other_and_is_tried_again(movi, tmp_path):
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    module = tmp_path / "moody.py"
    module.write_text(GYM.format(mood="raise ArithmeticError('not today')"))
    (tmp_path / "mine.toml").write_text(
        TOML.replace("gymnax/CartPole-v1", "moody:Moody-v0")
        .replace("seeds = 2", "seeds = 1")
        .replace("steps = 2000", "steps = 500")
    )
    done = movi("sweep", "mine.toml", "--out", "out", "--trust", "moody", PYTHONPATH=path)
    assert done.returncode == 1
    log = Path("out/logs/moody:Moody-v0/momentum-beta-0.5/seed-0.txt")
    assert done.stderr == (
        "movi: moody:Moody-v0 momentum β=0.5 seed 0 failed: ArithmeticError('not today') "
        f"(log: {log})\n"
    )
    assert "Traceback" in (tmp_path / log).read_text()
    shown = " ".join(movi("status", "out").stdout.split())
    assert "2 runs: 1 finished, 1 failed" in shown
    assert "ArithmeticError('not today')" in shown
    before = fingerprint(tmp_path / "out")
    module.write_text(GYM.format(mood=""))
    done = movi("sweep", "--out", "out", "--trust", "moody", PYTHONPATH=path)
    assert (done.returncode, done.stderr) == (0, "")
    assert before
    assert before.items() <= fingerprint(tmp_path / "out").items()
    assert "2 runs: 2 finished" in " ".join(movi("status", "out").stdout.split())
    assert "Traceback" in (tmp_path / log).read_text()


def test_a_run_that_does_not_fit_fails_with_its_line_and_stops_no_other(movi, tmp_path):
    matrix = TOML.replace("seeds = 2", "seeds = 1").replace("steps = 2000", "steps = 500")
    matrix = matrix.replace('"gymnax/CartPole-v1", ', "")
    large = '[[algorithms]]\nalgorithm = "dqn"\nlabel = "large"\nbatch_size = 2000000000\n'
    (tmp_path / "mine.toml").write_text(matrix.replace("[config]", f"{large}[config]"))
    done = movi("sweep", "mine.toml", "--out", "out", "--workers", "1")
    line = "minibatch of 2,000,000,000: needs 192 GB, only "
    assert done.returncode == 1
    assert done.stderr.startswith(f"movi: CartPole-v1 large seed 0 failed: {line}")
    assert done.stderr.count("\n") == 1
    shown = " ".join(movi("status", "out").stdout.split())
    assert "2 runs: 1 finished, 1 failed" in shown


@pytest.fixture
def _heard():
    """Under nohup, or behind an `&`, SIGINT is ignored here, and would be in every child."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.slow
@pytest.mark.usefixtures("_heard")
def test_an_interrupt_stops_a_sweep_with_checkpoints(movi, tmp_path):
    (tmp_path / "mine.toml").write_text(TOML.replace("steps = 2000", "steps = 1000000"))
    out = tmp_path / "out"
    driver = movi("sweep", "mine.toml", "--out", out, start=True)
    try:
        wait_for(lambda: rows(out) >= 4)
        driver.send_signal(signal.SIGINT)
        driver.communicate(timeout=100)
        assert driver.returncode == 130
    finally:
        driver.kill()
        driver.wait()
    assert not workers_of(out)
    states = [json.loads(f.read_text())["status"] for f in out.glob("runs/**/status.json")]
    assert set(states) == {"interrupted"}
    assert list(out.glob("runs/**/checkpoint/*.safetensors"))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["sweep"], "sweep: nothing"),
        (["sweep", "maxatar"], "sweep: 'maxatar'"),
        (["sweep", "minatar"], "scale: None, expected one of paper, laptop, quick"),
        (["sweep", "minatar", "--scale", "huge"], "huge"),
        (["sweep", "minatar", "--scale", "quick", "--workers", "0"], "workers: 0"),
        (["sweep", "mine.toml", "--scale", "quick"], "mine.toml has no scales"),
        (["sweep", "mine.toml", "--ray", "auto", "--workers", "2"], "workers: not with --ray"),
        (["sweep", "mine.toml", "--ray", "auto", "--cpus", "0"], "cpus: 0"),
        (["sweep", "mine.toml", "--gpus", "1"], "gpus: only with --ray"),
        (["sweep", "none.toml"], "No such file"),
        (["sweep", "--out", "full"], "full has no sweep.json"),
        (["sweep", "mine.toml", "--out", "full"], "holds files but no sweep"),
        (["sweep", "mine.toml", "--out", "mine.toml"], "is a file"),
        (["sweep", "--out", "full", "--scale", "quick"], "scale: only with a sweep's name"),
        (["status"], "DIR"),
    ],
)
def test_mistakes_are_one_line_and_nothing_is_written(tmp_path, monkeypatch, capsys, words, says):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(TOML)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thing").write_text("")
    before = sorted(tmp_path.rglob("*"))
    assert main(words) == 2
    said = capsys.readouterr()
    assert says in said.err
    assert said.err.count("\n") == 1
    assert sorted(tmp_path.rglob("*")) == before


def test_a_dry_run_prints_the_matrix_and_writes_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(TOML)
    assert main(["sweep", "mine.toml", "--out", "out", "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "task         gymnax/CartPole-v1 momentum β=0.5, seed 0: 2,000 steps" in said
    assert "task         CartPole-v1 momentum β=0.5, seed 1: 2,000 steps" in said
    assert "steps        8,000 to do" in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.toml"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["paper-beta", "minatar"])  # one with files of frames, one without
def test_a_named_sweep_runs_at_its_quick_scale(movi, tmp_path, name):
    done = movi("sweep", name, "--scale", "quick", "--out", "out", seconds=1500)
    assert done.returncode == 0, done.stderr
    assert "its numbers mean nothing" in done.stdout
    sweep = read_sweep(tmp_path / "out")
    assert sweep.scale == "quick"
    for cell in sweep.cells:
        for seed in cell.seeds:
            run = run_directory(tmp_path / "out", cell, seed)
            status = json.loads((run / "status.json").read_text())
            assert status["status"] in ("finished", "diverged")
            assert read_metrics(run)[-1]["step"] == status["step"]
