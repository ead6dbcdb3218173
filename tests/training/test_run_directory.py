"""The first files of a run directory, and the versions in it."""

import json
import os
from contextlib import suppress

import pytest

import momentum_rl.training.run_directory as run_directory
from momentum_rl.errors import UserError
from momentum_rl.training.train import train
from tests.training.runs import FUSED, HOST, Stop, StopAt


@pytest.mark.parametrize("config", [HOST, FUSED], ids=["host", "fused"])
def test_other_versions_are_said_and_written_down(config, tmp_path, monkeypatch):
    today = run_directory.of_training()
    watched = []
    for step, jax_version in (
        (100, today["jax"]),
        (110, today["jax"]),
        (200, "99.1"),
        (400, "99.2"),
    ):
        versions = {**today, "jax": jax_version}
        monkeypatch.setattr(run_directory, "of_training", lambda versions=versions: versions)
        watched.append(StopAt(step))
        with suppress(Stop):
            train(config, tmp_path, watcher=watched[-1])
    notices = [[line for line in watcher.lines if "versions" in line] for watcher in watched]
    assert [len(lines) for lines in notices] == [0, 0, 1, 1]
    assert f"jax {today['jax']} → 99.1" in notices[2][0]
    assert "jax 99.1 → 99.2; numbers may differ from here on" in notices[3][0]
    file = tmp_path / "versions.json"
    since = json.loads(file.read_text())["since"]
    assert [versions["versions"]["jax"] for versions in since] == [today["jax"], "99.1", "99.2"]
    assert [versions["step"] for versions in since] == [0, 90, 180]


@pytest.mark.parametrize(
    "content", ["", "[[", "[" * 100_000, '{"since": [{"step": Infinity}]}', "another learner"]
)
def test_damaged_versions_are_named_and_stop_the_run(content, tmp_path):
    with pytest.raises(Stop):
        train(HOST, tmp_path, watcher=StopAt(100))
    file = tmp_path / "versions.json"
    if content == "another learner":
        before, _, digest = file.read_text().partition('"learner": "')
        content = (
            f'{before}"learner": "{digest[:40]}{"0" if digest[40] != "0" else "1"}{digest[41:]}'
        )
    file.write_text(content)
    with pytest.raises(UserError, match=rf"^{file}: (damaged|cannot be read)"):
        train(HOST, tmp_path)
    assert file.read_text() == content


def test_versions_that_nobody_wrote_are_unknown_and_stop_nothing(tmp_path):
    with pytest.raises(Stop):
        train(HOST, tmp_path, watcher=StopAt(100))
    file = tmp_path / "versions.json"
    file.unlink()
    watcher = StopAt(120)
    with pytest.raises(Stop):
        train(HOST, tmp_path, watcher=watcher)
    assert "the versions that trained it up to step 90 are not known" in watcher.lines
    since = json.loads(file.read_text())["since"]
    assert [versions["step"] for versions in since] == [0, 90]
    assert since[0]["versions"] == {}


@pytest.mark.parametrize("config", [HOST, FUSED], ids=["host", "fused"])
def test_a_kill_before_any_write_of_a_new_run_leaves_a_directory_to_begin_in(
    config, tmp_path, monkeypatch
):
    """Each of the calls that put the first files on the disk is the last one, once."""

    def begin(out, last):
        left = [last]

        def counted(call):
            def instead(*args, **kwargs):
                left[0] -= 1
                if left[0] < 0:
                    raise Stop
                return call(*args, **kwargs)

            return instead

        directory = run_directory.RunDirectory(out, config)
        try:
            with monkeypatch.context() as patch:
                for name in ("fsync", "replace"):
                    patch.setattr(os, name, counted(getattr(os, name)))
                directory.begin()
        finally:
            directory.close()

    for last in range(100):
        try:
            begin(tmp_path / str(last), last)
            break
        except Stop:
            directory = run_directory.RunDirectory(tmp_path / str(last), config)
            assert directory.begin() == ""
            directory.close()
    assert last > 10
