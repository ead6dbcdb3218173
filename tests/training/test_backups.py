"""Copies of a run that were taken while it went on: its files are of different moments.

A run that goes on from such a copy is the run that was copied, or it is refused and says why.
"""

import random
import shutil
from dataclasses import replace

import pytest

from momentum_rl.errors import UserError
from momentum_rl.training.train import Watcher, train
from tests.training.runs import FUSED, HOST, assert_equal_runs

CONFIGS = {
    "host": replace(HOST, replay_capacity=60, learning_starts=20, checkpoint_every=25),
    "fused": replace(FUSED, replay_capacity=60, learning_starts=20, checkpoint_every=25),
}
REFUSED = "damaged, of another run or of another moment"


class Archive(Watcher):
    """Copies the run directory at every so many steps."""

    def __init__(self, run, to):
        self.run, self.to, self.steps = run, to, []

    def progress(self, loop):
        if loop.step >= 11 * (len(self.steps) + 1) + 30:
            self.steps.append(loop.step)
            shutil.copytree(self.run, self.to / str(loop.step))


@pytest.fixture(scope="module", params=CONFIGS)
def archive(request, tmp_path_factory):
    to = tmp_path_factory.mktemp("archive")
    copies = Archive(to / "run", to)
    train(CONFIGS[request.param], to / "run", watcher=copies)
    return CONFIGS[request.param], to, copies.steps


def backup(to, run, parts):
    """A run directory whose parts are of these moments."""
    for name, step in parts.items():
        shutil.copytree(to / str(step) / name, run / name)
    for file in (to / str(parts["checkpoint"])).iterdir():
        if file.is_file() and file.name != "lock":
            shutil.copy(file, run / file.name)
    return run


def check(archive, tmp_path, pairs):
    """How many of these pairs of moments, of a checkpoint and a replay, are refused."""
    config, to, _ = archive
    refused = 0
    for k, (one, other) in enumerate(pairs):
        run = backup(to, tmp_path / str(k), {"checkpoint": one, "replay": other})
        try:
            train(config, run)
        except UserError as error:
            line = str(error)
        else:
            line = ""
            assert_equal_runs(run, to / "run")
        assert bool(line) == (REFUSED in line)
        assert str(run / "replay") in line or not line
        refused += bool(line)
        if one == other:
            assert not line
        shutil.rmtree(run)
    return refused


def test_a_checkpoint_with_a_replay_of_another_moment_is_exact_or_refused(archive, tmp_path):
    steps = archive[2]
    pairs = [(steps[-1], steps[-1]), (steps[-1], steps[0]), (steps[4], steps[-1])]
    assert check(archive, tmp_path, [*pairs, (steps[-1], steps[-5]), (steps[9], steps[10])]) >= 2


@pytest.mark.slow
def test_a_hundred_backups_of_a_run_that_goes_on_are_exact_or_refused(archive, tmp_path):
    rng = random.Random(0)
    pairs = [tuple(rng.choices(archive[2], k=2)) for _ in range(100)]
    assert 40 <= check(archive, tmp_path, pairs) < 100


def test_a_replay_of_another_seed_is_refused(archive, tmp_path):
    config, to, steps = archive
    other = Archive(tmp_path / "other", tmp_path)
    train(replace(config, seed=1), tmp_path / "other", watcher=other)
    run = backup(to, tmp_path / "run", {"checkpoint": steps[-1], "replay": steps[-1]})
    shutil.rmtree(run / "replay")
    shutil.copytree(tmp_path / str(other.steps[-1]) / "replay", run / "replay")
    with pytest.raises(UserError, match=REFUSED):
        train(config, run)
