"""Progress is shown where it can be read: a bar on a terminal, or lines."""

import os
import pty
import subprocess
import sys
import types

import pytest

import momentum_rl
from momentum_rl.plumbing import progress
from momentum_rl.runs.config import Config
from momentum_rl.training.train import Watcher, train, train_seeds

TINY = Config(
    "dqn",
    "CartPole-v1",
    steps=200,
    iteration_steps=100,
    learning_starts=100,
    hidden=(8,),
    final_episodes=0,
)


def on_a_terminal(code, **environment):
    """What a program writes to a terminal, all of it."""
    ours, theirs = pty.openpty()
    clean = {k: v for k, v in os.environ.items() if k not in ("JPY_PARENT_PID", "MPLBACKEND")}
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=theirs,
        stderr=theirs,
        env={**clean, "TERM": "xterm-color", "COLUMNS": "120", **environment},
    )
    os.close(theirs)
    said = b""
    try:
        while more := os.read(ours, 4096):
            said += more
    except OSError:  # the other end is closed: all is read
        pass
    os.close(ours)
    assert process.wait(60) == 0
    return said.decode()


BAR = (
    "from momentum_rl.plumbing.progress import display\n"
    "with display('work', 50) as shown:\n"
    "    for _ in range(40):\n"
    "        shown.advance()\n"
)


def test_a_terminal_has_a_bar_that_ends_where_the_work_does():
    said = on_a_terminal(BAR)
    assert "\x1b[" in said
    assert "40/40" in said


@pytest.mark.parametrize(
    "kernel",
    [{"JPY_PARENT_PID": "1"}, {"MPLBACKEND": "module://matplotlib_inline.backend_inline"}],
    ids=["Jupyter's", "any other"],
)
def test_a_command_that_a_notebook_runs_writes_lines_without_terminal_codes(kernel):
    said = on_a_terminal(BAR, **kernel)
    assert "\x1b" not in said
    # Eight tenths of the way, each told once.
    assert said.split("\r\n") == [f"work: {n} of 50" for n in range(5, 41, 5)] + [""]


def test_elsewhere_nothing_is_written():
    done = subprocess.run([sys.executable, "-c", BAR], capture_output=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")


def test_a_notebook_has_lines_too(monkeypatch, capsys):
    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    with progress.display("work", 10) as shown:
        shown.say("beside")
        shown.update(10, "score 3")
    assert capsys.readouterr() == ("", "beside\nwork: 10 of 10, score 3\n")


def test_ipython_in_a_terminal_is_a_terminal(monkeypatch):
    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: types.SimpleNamespace()
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setattr(sys, "stderr", types.SimpleNamespace(isatty=lambda: True))
    for name in ("JPY_PARENT_PID", "MPLBACKEND"):
        monkeypatch.delenv(name, raising=False)
    assert progress.surface() == "terminal"
    ipython.get_ipython = lambda: None
    monkeypatch.setattr(sys, "stderr", None)  # as pythonw has it
    assert progress.surface() == "nothing"


def test_training_from_python_shows_its_progress_unless_a_watcher_is_given(monkeypatch, capsys):
    monkeypatch.setattr(progress, "surface", lambda: "lines")
    momentum_rl.train(TINY)
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1].startswith("dqn CartPole-v1: 200 of 200, score ")
    assert lines[-1].endswith(" steps/s")
    train(TINY, watcher=Watcher())
    assert capsys.readouterr().err == ""
    train_seeds(TINY, [1, 2])
    lines = capsys.readouterr().err.splitlines()
    assert sum(line.startswith("dqn CartPole-v1: 200 of 200, score ") for line in lines) == 2


def test_a_run_that_had_ended_shows_no_bar(monkeypatch, capsys, tmp_path):
    train(TINY, tmp_path, watcher=Watcher())
    monkeypatch.setattr(progress, "surface", lambda: "lines")
    assert train(TINY, tmp_path).loop is None
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("env", "size"), [("CartPole-v1", "replay of 200 transitions: 8.8 kB")])
def test_notices_are_plain_lines_on_stderr_where_there_is_no_terminal(env, size, capsys, tmp_path):
    """κ and the size of the replay; where a run goes on; that β's unit stays what it was."""
    config = TINY.replace(
        algorithm="momentum-dqn", env=env, replay_capacity=5_000, checkpoint_every=0
    )
    assert progress.surface() == "nothing"
    momentum_rl.train(config)
    kappa = "kappa: 10, a twentieth of the 200 steps"
    assert capsys.readouterr() == ("", f"{kappa}\n{size}\n")
    config = config.replace(checkpoint_every=50)
    momentum_rl.train(config, tmp_path)
    capsys.readouterr()
    momentum_rl.train(config.replace(steps=300), tmp_path)
    out, err = capsys.readouterr()
    assert out == ""
    stays, announced, goes_on = err.splitlines()
    assert stays == "kappa: stays 10, a twentieth of the first 200 steps"
    assert announced.startswith("replay of 300 transitions: ")
    assert goes_on == "goes on from the checkpoint of step 200"
    momentum_rl.train(config, watcher=Watcher())
    assert capsys.readouterr() == ("", "")
