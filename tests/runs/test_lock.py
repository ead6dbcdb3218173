"""One process at a time: who has a directory is said, and a glance at it holds nobody up."""

import fcntl
import os
import threading
from contextlib import closing

import pytest

from movi.runs.lock import InUse, Lock, is_locked


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
