"""One process at a time: who has a directory is said, and a glance at it holds nobody up."""

import fcntl
import os
import signal
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

import momentum_rl
from momentum_rl.runs.lock import InUse, Lock, is_locked


def test_a_directory_is_worked_on_by_one(tmp_path):
    file = tmp_path / ".sweep.lock"
    assert not is_locked(file)
    with closing(Lock(file, "sweep")):
        assert is_locked(file)
        says = rf"in use by process {os.getpid()} on .*; expected one process per sweep directory"
        with pytest.raises(InUse, match=says):
            Lock(file, "sweep")
    assert not is_locked(file)
    assert not file.exists()


def test_a_stale_file_holds_nobody_up(tmp_path):
    (tmp_path / "lock").write_text("process 1 on elsewhere\n")
    with closing(Lock(tmp_path / "lock")):
        assert (tmp_path / "lock").read_text().startswith(f"process {os.getpid()} on ")


def test_patience_outlasts_somebody_who_only_looks(tmp_path):
    file = tmp_path / "lock"
    file.touch()
    with file.open() as looked_at:
        fcntl.flock(looked_at, fcntl.LOCK_SH)
        with pytest.raises(InUse):
            Lock(file)
        threading.Timer(0.2, fcntl.flock, (looked_at, fcntl.LOCK_UN)).start()
        Lock(file, patience=60.0).close()


FORKS = {
    "os.fork": "child = os.fork() or time.sleep(600)",
    "multiprocessing": (
        "child = multiprocessing.get_context('fork').Process(target=time.sleep, args=(600,))\n"
        "child.start(); child = child.pid"
    ),
    "subprocess": "child = subprocess.Popen(['sleep', '600'], close_fds=False).pid",
}


@pytest.mark.parametrize("fork", FORKS)
def test_a_child_that_outlives_its_killed_parent_does_not_keep_the_lock(fork, tmp_path):
    """As that of a custom environment does."""
    script = (
        "import multiprocessing, os, subprocess, sys, time; from pathlib import Path\n"
        "from momentum_rl.runs.lock import Lock\n"
        f"lock = Lock(Path(sys.argv[1]))\n{FORKS[fork]}\nprint(child, flush=True); time.sleep(600)"
    )
    places = [str(Path(momentum_rl.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    parent = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path / "lock")],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(places)},
    )
    child = int(parent.stdout.readline())
    try:
        with pytest.raises(InUse, match=f"in use by process {parent.pid} "):
            Lock(tmp_path / "lock")
        parent.kill()
        parent.wait(60)
        os.kill(child, 0)  # it is there still, and on a crowded machine it may just have begun
        Lock(tmp_path / "lock", patience=60.0).close()
    finally:
        os.kill(child, signal.SIGKILL)
        parent.stdout.close()


@pytest.mark.filterwarnings("ignore:.*fork:RuntimeWarning", "ignore:.*fork:DeprecationWarning")
def test_a_child_that_ends_in_its_own_way_leaves_the_lock_to_its_parent(tmp_path):
    with closing(Lock(tmp_path / "lock")) as lock:
        child = os.fork()
        if child == 0:
            try:
                lock.close()
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        with pytest.raises(InUse):
            Lock(tmp_path / "lock")
    assert not (tmp_path / "lock").exists()
