"""Runs that go on: exactly, longer, refused, locked, interrupted, on a full disk."""

import errno
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import optax
import pytest
from gymnasium.vector import AutoresetMode

import momentum_rl.training.run_directory as checkpoint
import momentum_rl.training.run_directory as run_directory
from momentum_rl import cli
from momentum_rl.agents.networks import MLP, ActionValues
from momentum_rl.envs.atari import make_atari
from momentum_rl.envs.gym_vector import GymnasiumVector
from momentum_rl.errors import Interrupted, UserError
from momentum_rl.runs.config import Config
from momentum_rl.runs.files import read_config, read_metrics, read_status
from momentum_rl.spaces import ObservationSpace
from momentum_rl.training.kept import best_in
from momentum_rl.training.run_directory import Checkpoints, continued
from momentum_rl.training.train import Watcher, train, train_seeds
from tests.training.diagnostics import OneState, scripted, vector
from tests.training.runs import (
    FUSED,
    HOST,
    SHORT,
    Stop,
    StopAt,
    assert_equal_runs,
    broken,
    results,
)


def slow(value):
    return pytest.param(value, marks=pytest.mark.slow)


class Killed(BaseException):
    """What nobody catches on the way."""


class Heard(Watcher):
    """Which runs went on from a checkpoint."""

    def __init__(self):
        self.resumed = []

    def announce(self, line):
        if line.startswith("goes on"):
            self.resumed.append(line)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The runs that were never stopped."""
    out = tmp_path_factory.mktemp("whole")
    for name, config in (("host", HOST), ("fused", FUSED)):
        train(config, out / name)
    return out


@pytest.mark.parametrize("every", [slow(1), 7, slow(299), 10_000])
def test_the_results_do_not_depend_on_how_often_checkpoints_are_made(every, whole, tmp_path):
    config = replace(HOST, checkpoint_every=every)
    broken(config, tmp_path / "run", 155)
    ours, theirs = results(tmp_path / "run"), results(whole / "host")
    for name in ("metrics.jsonl", "agent.safetensors", "evaluation.json"):
        assert ours[name] == theirs[name]


def test_the_rhythm_may_change_on_the_way(whole, tmp_path):
    for step, every in ((100, 45), (160, 200), (250, 3)):
        with pytest.raises(Stop):
            train(replace(HOST, checkpoint_every=every), tmp_path, watcher=StopAt(step))
    train(HOST, tmp_path)
    assert results(tmp_path) == results(whole / "host")
    with pytest.raises(UserError, match=r"checkpoint_every: 0, but .* was begun with 45"):
        train(replace(HOST, checkpoint_every=0), tmp_path)


@pytest.mark.parametrize("config", [HOST, FUSED], ids=["host", "fused"])
def test_three_steps_go_on_exactly(config, tmp_path):
    """Two environments, stopped in mid-episode, and with a replay that goes round."""
    config = replace(config, n_step=3, num_envs=2)
    train(config, tmp_path / "whole")
    broken(config, tmp_path / "broken", 110, 250)
    assert_equal_runs(tmp_path / "broken", tmp_path / "whole")
    with pytest.raises(UserError, match="n_step is 3 there and 1 here"):
        train(replace(config, n_step=1), tmp_path / "broken")


@pytest.mark.parametrize("n_step", [slow(1), 3])
def test_atari_in_the_middle_of_a_game_goes_on_exactly(n_step, tmp_path, monkeypatch):
    """Several games since the last seed, cuts after 60 steps, a replay that goes round."""
    space = ObservationSpace((4, 84, 84), "uint8")
    fields = {**SHORT, "num_envs": 2, "final_episodes": 0, "evaluate_every": 0}
    config = Config("dqn", "ALE/Breakout-v5", n_step=n_step, **fields)

    def parts():
        return {
            "environment": make_atari(config.env, 2, episode_steps=60),
            "network": ActionValues(space, MLP((8,)), 4),
        }

    monkeypatch.setattr("momentum_rl.envs.atari.AtariVector.seed_after", 100)
    whole = train(config, tmp_path / "whole", **parts())
    assert whole.loop.scores.episodes >= 4
    for step in (130, 290):
        with pytest.raises(Stop):
            train(config, tmp_path / "broken", watcher=StopAt(step), **parts())
    train(config, tmp_path / "broken", **parts())
    assert_equal_runs(tmp_path / "broken", tmp_path / "whole")


def test_a_finished_run_is_read_from_its_files_and_trained_no_more(whole):
    for name, config in (("host", HOST), ("fused", FUSED)):
        before = results(whole / name), (whole / name / "status.json").stat().st_mtime_ns
        result = train(config, whole / name, watcher=StopAt(0))
        assert (result.status, result.step, result.loop) == ("finished", 300, None)
        assert result.metrics == read_metrics(whole / name)
        assert len(result.evaluation.returns) == 2
        after = results(whole / name), (whole / name / "status.json").stat().st_mtime_ns
        assert before == after


@pytest.mark.parametrize("config", [HOST, FUSED], ids=["host", "fused"])
@pytest.mark.parametrize("first", [130, slow(200)])
def test_a_longer_run_is_the_one_that_was_longer_from_the_start(config, first, tmp_path):
    """130 steps end within an iteration, whose short row has to go; κ stays that of the first."""
    long = replace(config, steps=300)
    train(long.replace(kappa=first // 20), tmp_path / "whole")
    train(replace(config, steps=first), tmp_path / "longer")
    watcher = StopAt(10**9)
    result = train(long, tmp_path / "longer", watcher=watcher)
    assert f"kappa: stays {first // 20}, a twentieth of the first {first} steps" in watcher.lines
    assert result.step == 300
    assert_equal_runs(tmp_path / "longer", tmp_path / "whole")
    assert read_config(tmp_path / "longer").options.kappa == first // 20
    # The same request again: the run has ended. A shorter one is refused.
    assert train(long, tmp_path / "longer").loop is None
    with pytest.raises(UserError, match=f"steps: {first}, expected at least 300"):
        train(replace(config, steps=first), tmp_path / "longer")


@pytest.mark.parametrize("config", [slow(HOST), FUSED], ids=["host", "fused"])
def test_a_run_whose_last_tick_was_cut_can_be_made_longer_too(config, tmp_path):
    """100 steps of 3 environments end within a tick, in which a longer run goes on learning."""
    config = config.replace(num_envs=3, kappa=10)
    train(config, tmp_path / "whole")
    train(replace(config, steps=100), tmp_path / "longer")
    train(config, tmp_path / "longer")
    assert_equal_runs(tmp_path / "longer", tmp_path / "whole")


def test_another_config_is_refused_with_the_difference_and_nothing_changes(whole):
    before = results(whole / "host")
    other = replace(HOST, batch_size=9, seed=1)
    with pytest.raises(UserError) as error:
        train(other, whole / "host")
    assert "seed is 0 there and 1, batch_size is 8 there and 9 here" in str(error.value)
    assert results(whole / "host") == before


def test_five_times_saved_and_loaded_the_config_has_the_same_bytes(tmp_path):
    with pytest.raises(Stop):
        train(HOST, tmp_path, watcher=StopAt(20))
    first = (tmp_path / "config.json").read_bytes()
    for k in range(5):
        with pytest.raises(Stop):
            train(read_config(tmp_path), tmp_path, watcher=StopAt(60 + 45 * k))
        assert (tmp_path / "config.json").read_bytes() == first


def test_rows_after_the_checkpoint_are_dropped_everywhere_also_half_written_ones(whole, tmp_path):
    from tensorboardX.proto.event_pb2 import Event

    with pytest.raises(Stop):
        train(HOST, tmp_path, watcher=StopAt(210))  # checkpoint of 180, row of 200
    assert len(read_metrics(tmp_path)) == 2
    assert Checkpoints(tmp_path).steps() == [135, 180]
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"iteration": 2, "st')
    train(HOST, tmp_path)
    assert results(tmp_path) == results(whole / "host")
    (events,) = tmp_path.glob("events.out.*")
    data, steps = events.read_bytes(), []
    while data:
        length = int.from_bytes(data[:8], "little")
        event = Event.FromString(data[12 : 12 + length])
        steps += [event.step for value in event.summary.value if value.tag == "beta"]
        data = data[16 + length :]
    assert steps == [100, 200, 300]
    timing = [json.loads(line) for line in (tmp_path / "timing.jsonl").read_text().splitlines()]
    assert [row["step"] for row in timing] == [100, 200, 300]


@pytest.mark.parametrize("damage", ["checkpoint", "replay"])
def test_a_damaged_newest_checkpoint_falls_back_to_the_one_before_with_a_warning(
    damage, whole, tmp_path, caplog
):
    with pytest.raises(Stop):
        train(HOST, tmp_path, watcher=StopAt(200))
    if damage == "checkpoint":
        file, at = Checkpoints(tmp_path).file(180), -5
    else:  # transition 170 is in the newer one only; a record has 44 bytes
        file, at = tmp_path / "replay" / "transitions.bin", 44 * (170 % (120 + 90)) + 3
    data = bytearray(file.read_bytes())
    data[at] ^= 1
    file.write_bytes(data)
    watcher = StopAt(10**9)
    train(HOST, tmp_path, watcher=watcher)
    assert "goes on from the checkpoint of step 135" in watcher.lines
    assert "damaged" in caplog.text
    assert results(tmp_path) == results(whole / "host")


def test_if_no_checkpoint_can_be_read_that_is_one_line_and_not_a_new_beginning(tmp_path):
    with pytest.raises(Stop):
        train(HOST, tmp_path, watcher=StopAt(200))
    for file in (tmp_path / "checkpoint").iterdir():
        file.write_bytes(b"\x80\x04K\x01.")
    before = results(tmp_path)
    with pytest.raises(UserError, match="no checkpoint can be resumed") as error:
        train(HOST, tmp_path)
    assert "\n" not in str(error.value)
    assert results(tmp_path) == before


def refusal(work):
    """The line of a work that is refused, or ""."""
    try:
        work()
    except UserError as error:
        return str(error)
    return ""


FILES = ["metrics.jsonl", "evaluations.jsonl", "versions.json", "replay/transitions.bin"]


@pytest.mark.parametrize("name", [*FILES, "replay/transitions.crc"])
def test_a_bit_that_flips_is_said_with_its_file_or_changes_nothing(name, whole, tmp_path):
    with pytest.raises(Stop):
        train(replace(HOST, evaluate_every=100), tmp_path / "run", watcher=StopAt(290))
    train(replace(HOST, evaluate_every=100), tmp_path / "whole")
    data = (tmp_path / "run" / name).read_bytes()
    warned, silent = 0, 0
    for k, at in enumerate(np.linspace(0, len(data) - 1, 12).astype(int)):
        run = shutil.copytree(tmp_path / "run", tmp_path / str(k))
        flipped = bytearray(data)
        flipped[at] ^= 1 << k % 8
        (run / name).write_bytes(flipped)
        before = {file: file.read_bytes() for file in run.rglob("*.*")}
        line = refusal(lambda run=run: train(replace(HOST, evaluate_every=100), run))
        if line:
            warned += 1
            assert line.startswith(f"{run / name}".removesuffix(".crc").removesuffix(".bin"))
            assert {file: file.read_bytes() for file in run.rglob("*.*")} == before
        else:
            silent += 1
            assert_equal_runs(run, tmp_path / "whole")
    assert warned
    assert not silent or not name.endswith("jsonl")


def test_damaged_metrics_are_one_line(tmp_path):
    with pytest.raises(Stop):
        train(HOST, tmp_path, watcher=StopAt(290))
    rows = (tmp_path / "metrics.jsonl").read_text()
    (tmp_path / "metrics.jsonl").write_text(rows.replace("1", "2", 1))
    with pytest.raises(UserError, match=r"^.*metrics.jsonl: damaged: .*can be resumed"):
        train(HOST, tmp_path)


def test_a_network_or_optimiser_of_another_shape_is_one_line(tmp_path):
    with pytest.raises(Stop):
        train(HOST, tmp_path, watcher=StopAt(60))
    versions = (tmp_path / "versions.json").read_text()
    wider = ActionValues(ObservationSpace((4,), "float32"), MLP((9,)), 2)
    for parts in ({"optimiser": optax.sgd(0.1, momentum=0.9)}, {"network": wider}):
        with pytest.raises(UserError, match="another algorithm, network, optimiser or loss"):
            train(HOST, tmp_path, **parts)
    # Under another version, whose learners cannot be compared, the shapes still tell.
    other = json.loads(versions)
    other["since"][0]["learner"] = "other"
    about = json.dumps(other["since"])
    other["sha256"] = hashlib.sha256(about.encode()).hexdigest()
    (tmp_path / "versions.json").write_text(json.dumps(other))
    with pytest.raises(UserError, match=r"learner.*(missing|not expected|expected float32)"):
        train(HOST, tmp_path, optimiser=optax.sgd(0.1, momentum=0.9))
    with pytest.raises(UserError, match=r"learner.*expected float32"):
        train(HOST, tmp_path, network=wider)


def test_an_environment_that_does_not_repeat_itself_is_named(tmp_path):
    """Scripted episodes depend on how many there were before, not on the seed."""
    config = Config("dqn", "scripted", **{**SHORT, "evaluate_every": 0})
    with pytest.raises(Stop):
        train(config, tmp_path, environment=scripted(1), watcher=StopAt(150))
    with pytest.raises(UserError, match="does not repeat itself from the same seed"):
        train(config, tmp_path, environment=scripted(1))


def test_what_cannot_be_checkpointed_is_refused_unless_checkpoints_are_off(tmp_path):
    config = Config("dqn", "one", **{**SHORT, "steps": 60, "evaluate_every": 0})
    whole = vector([lambda: OneState(5, True)])
    names = ("spaces", "num_envs", "reset", "step", "close")
    itself = SimpleNamespace(**{name: getattr(whole, name) for name in names})
    with pytest.raises(UserError, match=r"environment: cannot be restored .*checkpoint_every to 0"):
        train(config, tmp_path / "run", environment=itself)

    assert not (tmp_path / "run").exists()
    train(replace(config, checkpoint_every=0), tmp_path / "run", environment=itself)
    assert read_status(tmp_path / "run").status == "finished"
    assert not (tmp_path / "run" / "replay").exists()


def test_without_checkpoints_a_run_that_was_stopped_begins_anew(whole, tmp_path):
    config = replace(HOST, checkpoint_every=0)
    broken(config, tmp_path, 150)
    assert results(tmp_path)["metrics.jsonl"] == results(whole / "host")["metrics.jsonl"]


def test_one_run_directory_one_process(tmp_path):
    class Again(Watcher):
        error_line = None

        def row(self, row):
            with pytest.raises(UserError) as error:
                train(HOST, tmp_path / "run")
            Again.error_line = str(error.value)

    train(HOST, tmp_path / "run", watcher=Again())
    assert f"in use by process {os.getpid()} on " in Again.error_line


def test_a_lock_that_is_held_names_its_owner_and_a_stale_one_holds_nobody_up(tmp_path):
    script = (
        "import sys, os, signal; from pathlib import Path; from momentum_rl.runs.lock import Lock\n"
        "lock = Lock(Path(sys.argv[1]) / 'lock')\n"
        "print(os.getpid(), flush=True); sys.stdin.read()\n"
    )
    source = str(Path(movi_file()).parents[1])
    owner = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": source},
    )
    pid = int(owner.stdout.readline())
    with pytest.raises(UserError, match=f"in use by process {pid} on "):
        train(HOST, tmp_path)
    owner.send_signal(signal.SIGKILL)
    owner.wait(30)
    owner.stdin.close()
    owner.stdout.close()
    assert (tmp_path / "lock").exists()  # stale
    train(replace(HOST, steps=60), tmp_path)
    assert not (tmp_path / "lock").exists()


def movi_file():
    import momentum_rl

    return momentum_rl.__file__


@pytest.mark.parametrize("config", [HOST, FUSED], ids=["host", "fused"])
def test_a_signal_makes_a_checkpoint_and_a_line_that_says_how_to_go_on(config, whole, tmp_path):
    asked = []

    class Ask(Watcher):
        def progress(self, loop):
            if loop.step >= 110:
                asked.append(signal.SIGTERM)

    with pytest.raises(Interrupted) as stop:
        train(config, tmp_path, watcher=Ask(), stop=lambda: asked[0] if asked else None)
    step = Checkpoints(tmp_path).steps()[-1]
    assert 110 <= step <= 135
    assert stop.value.signal == signal.SIGTERM
    assert str(stop.value) == (
        f"interrupted at step {step}; `movi resume {tmp_path}` goes on from its checkpoint of "
        f"step {step}"
    )
    assert read_status(tmp_path).status == "interrupted"
    train(config, tmp_path)
    assert results(tmp_path) == results(whole / ("host" if config is HOST else "fused"))


def test_sigterm_and_sigint_end_the_command_with_their_status(tmp_path, monkeypatch, capsys):
    """A true signal to this process, as the command line handles it."""

    class Kill(Watcher):
        number, step = signal.SIGTERM, 100

        def progress(self, loop):
            if loop.step + 1 == self.step:
                os.kill(os.getpid(), self.number)

    from contextlib import nullcontext

    killer = Kill()
    monkeypatch.setattr("momentum_rl.training.train.watching", lambda *_: nullcontext(killer))
    handlers = [signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGINT)]
    out = tmp_path / "run"
    words = ["train", "momentum-dqn", "--env", "CartPole-v1", "--out", str(out)]
    for name, value in SHORT.items():
        words += [f"--{name.replace('_', '-')}", str(value[0] if name == "hidden" else value)]
    assert cli.main(words) == 128 + signal.SIGTERM
    error = capsys.readouterr().err
    assert error == (
        f"movi: interrupted at step 100; `movi resume {out}` goes on from its checkpoint of "
        "step 100\n"
    )
    killer.number, killer.step = signal.SIGINT, 200
    assert cli.main(["resume", str(out)]) == 130
    killer.step = -1
    assert [signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGINT)] == handlers
    assert cli.main(["resume", str(out)]) == 0
    assert "finished 300 steps" in capsys.readouterr().out
    assert cli.main(["resume", str(out), "--steps", "200"]) == 2
    assert "steps: 200, expected at least 300" in capsys.readouterr().err
    assert cli.main(["resume", str(tmp_path)]) == 2
    assert "no run directory" in capsys.readouterr().err


class Full:
    """A disk on which no more than so many bytes can be written."""

    def __init__(self, left):
        self.left = left

    def __call__(self, path, content):
        self.left -= len(content)
        if self.left < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        from momentum_rl.plumbing.files import write_aside

        write_aside(path, content)


@pytest.mark.parametrize("left", [slow(3_000), 12_000, slow(30_000)])
def test_a_full_disk_is_one_line_and_the_last_checkpoint_is_intact(
    left, whole, tmp_path, monkeypatch
):
    full = Full(left)
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "write_aside", full)
        patch.setattr(run_directory, "write_aside", full)
        with pytest.raises(UserError, match="cannot be written: No space left on device") as error:
            train(HOST, tmp_path / "run")
    assert "\n" not in str(error.value)
    assert "`movi resume" in str(error.value) or not Checkpoints(tmp_path / "run").steps()
    for step in Checkpoints(tmp_path / "run").steps():
        Checkpoints(tmp_path / "run").read(step)
    train(HOST, tmp_path / "run")
    assert results(tmp_path / "run") == results(whole / "host")


def test_a_directory_that_cannot_be_written_is_one_line(tmp_path, capsys):
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(UserError, match="is a file, expected a directory"):
        train(HOST, blocked / "run")


def test_seeds_go_on_each_from_its_own_newest_checkpoint(tmp_path):
    seeds, outs = [0, 1], [tmp_path / "broken" / f"seed-{s}" for s in (0, 1)]
    whole = [tmp_path / "whole" / f"seed-{s}" for s in (0, 1)]
    train_seeds(FUSED, seeds, whole)
    for seed, out in zip(seeds, outs):
        with pytest.raises(Stop):
            train(replace(FUSED, seed=seed), out, watcher=StopAt(200))
    Checkpoints(outs[1]).file(Checkpoints(outs[1]).steps()[-1]).unlink()
    newest = [Checkpoints(out).steps()[-1] for out in outs]
    assert newest[0] > newest[1]
    heard = Heard()
    train_seeds(FUSED, seeds, outs, watcher=heard)
    assert heard.resumed == [f"goes on from the checkpoint of step {step}" for step in newest]
    for ours, theirs in zip(outs, whole):
        assert_equal_runs(ours, theirs)


def test_a_new_seed_does_not_begin_the_others_anew(tmp_path):
    with pytest.raises(Stop):
        train(FUSED, tmp_path / "seed-0", watcher=StopAt(200))
    heard, (step, *_) = Heard(), reversed(Checkpoints(tmp_path / "seed-0").steps())
    train_seeds(FUSED, [0, 1], [tmp_path / "seed-0", tmp_path / "seed-1"], watcher=heard)
    assert heard.resumed == [f"goes on from the checkpoint of step {step}"]
    for seed in (0, 1):
        train(replace(FUSED, seed=seed), tmp_path / f"alone-{seed}")
        assert_equal_runs(tmp_path / f"seed-{seed}", tmp_path / f"alone-{seed}")


def test_another_run_in_the_place_of_the_last_seed_is_said_before_the_first_is_trained(tmp_path):
    outs = [tmp_path / "seed-0", tmp_path / "seed-1"]
    train(replace(FUSED, seed=1, batch_size=5), outs[1])
    with pytest.raises(UserError, match="batch_size is 5 there"):
        train_seeds(FUSED, [0, 1], outs)
    assert not outs[0].exists()


def test_seeds_go_on_each_by_itself_too(tmp_path):
    seeds, outs = [0, 1], [tmp_path / "broken" / f"seed-{s}" for s in (0, 1)]
    with pytest.raises(Stop):
        train_seeds(FUSED, seeds, outs, watcher=StopAt(200))
    train(replace(FUSED, seed=1), outs[1])
    results_ = train_seeds(FUSED, seeds, outs)
    assert [result.loop is None for result in results_] == [False, True]
    for seed, out in zip(seeds, outs):
        train(replace(FUSED, seed=seed), tmp_path / f"alone-{seed}")
        assert_equal_runs(out, tmp_path / f"alone-{seed}")


def test_a_run_that_diverged_is_final(tmp_path):
    config = replace(HOST, steps=3_000)
    first = train(config, tmp_path, optimiser=optax.sgd(1e12))
    assert first.status == "diverged"
    again = train(config, tmp_path)
    longer = train(replace(config, steps=4_000), tmp_path)
    assert again.loop is longer.loop is None
    assert (again.status, again.step) == ("diverged", first.step) == (longer.status, longer.step)


class Half(gym.Env):
    """Observations at random, by Gymnasium's generator only."""

    observation_space = gym.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return self.np_random.normal(size=2).astype(np.float32), {}

    def step(self, action):
        self.t += 1
        reward = float(self.np_random.normal())
        observation = self.np_random.normal(size=2).astype(np.float32)
        return observation, reward, bool(self.np_random.random() < 0.1), self.t >= 20, {}


@pytest.mark.parametrize("seed", range(4))
def test_environments_in_different_episodes_are_restored_each_in_its_own(seed):
    def make():
        vector = gym.vector.SyncVectorEnv([Half] * 4, autoreset_mode=AutoresetMode.DISABLED)
        return GymnasiumVector(vector)

    rng, one, other = np.random.default_rng(seed), make(), make()
    one.reset([1, 2, 3, 4])
    other.reset([9, 9, 9, 9])
    for _ in range(rng.integers(1, 60)):
        now = one.step(rng.integers(2, size=4)).observation
    np.testing.assert_array_equal(other.restore(one.snapshot()), now)
    for _ in range(60):
        actions = rng.integers(2, size=4)
        for a, b in zip(one.step(actions), other.step(actions)):
            np.testing.assert_array_equal(a, b)


def test_episodes_have_different_seeds():
    vector = gym.vector.SyncVectorEnv([Half], autoreset_mode=AutoresetMode.DISABLED)
    environment, firsts = GymnasiumVector(vector), []
    firsts.append(environment.reset([5])[0])
    while len(firsts) < 30:
        outcome = environment.step(np.zeros(1, int))
        if (outcome.terminated | outcome.truncated)[0]:
            firsts.append(outcome.observation[0])
    assert len({tuple(first) for first in firsts}) == 30


@pytest.mark.parametrize("config", [HOST, FUSED], ids=["host", "fused"])
def test_a_finished_run_without_a_checkpoint_is_not_made_longer_and_not_erased(config, tmp_path):
    """One that made none, and one whose checkpoints somebody removed."""
    for every in (0, 45):
        run, short = tmp_path / str(every), replace(config, checkpoint_every=every)
        train(short, run)
        for file in run.glob("checkpoint/*"):
            file.unlink()
        before = {file: file.read_bytes() for file in run.iterdir() if file.is_file()}
        with pytest.raises(UserError, match=r"steps: 600, .* no checkpoint .* a new out"):
            train(replace(short, steps=600), run)
        assert cli.main(["resume", str(run), "--steps", "600"]) == 2
        assert {file: file.read_bytes() for file in run.iterdir() if file.is_file()} == before
        assert train(short, run).loop is None  # its result is still there


def write_by_write(monkeypatch, work):
    """Runs ``work(k)`` for k = 0, 1, …, stopped before write number k, until one has no more."""
    for last in range(200):
        left = [last]

        def counted(call, left=left):
            def instead(*args, **kwargs):
                left[0] -= 1
                if left[0] < 0:
                    raise Killed
                return call(*args, **kwargs)

            return instead

        with monkeypatch.context() as patch:
            for name in ("fsync", "replace", "unlink"):
                patch.setattr(os, name, counted(getattr(os, name)))
            try:
                work(last)
                return
            except Killed:
                pass
        yield last


@pytest.mark.parametrize("config", [HOST, FUSED], ids=["host", "fused"])
def test_a_kill_before_any_write_of_an_extension_leaves_a_run_that_can_be_extended(
    config, tmp_path, monkeypatch
):
    """The run is either still the finished one, whole, or goes on to the longer one."""
    short = replace(config, steps=130)
    train(short, tmp_path / "short")
    train(config.replace(kappa=130 // 20), tmp_path / "whole")

    def begin(k):
        run = shutil.copytree(tmp_path / "short", tmp_path / str(k))
        longer = continued(run, config)
        directory = run_directory.RunDirectory(run, longer)
        try:
            saved = Checkpoints(run).read(130)
            directory.begin(130, saved.state["written"], best_in(saved))
        finally:
            directory._lock._lock.release()  # as the system does when a process dies
            directory._files.close()

    states = []
    for k in write_by_write(monkeypatch, begin):
        run = tmp_path / str(k)
        states.append(read_status(run).status)
        if states[-1] == "finished":
            assert results(run) == results(tmp_path / "short")
        if k % 8 == 7 or states[-2:] == ["finished", "running"]:
            resumed = shutil.copytree(run, tmp_path / f"{k}-resumed")
            assert cli.main(["resume", str(resumed)]) == 0  # to its end, whichever it has
            assert read_status(resumed).step == read_config(resumed).steps
            assert train(config, run).step == 300
            assert_equal_runs(run, tmp_path / "whole")
    assert {"finished", "running"} == set(states)
    assert len(states) > 10


def test_a_kill_between_two_seeds_of_an_extension_leaves_seeds_that_can_be_extended(tmp_path):
    seeds, outs = [0, 1], [tmp_path / "runs" / f"seed-{s}" for s in (0, 1)]
    train_seeds(replace(FUSED, steps=130), seeds, outs)
    begin = run_directory.RunDirectory.begin

    def once(directory, *args):
        if directory.path == outs[1]:
            raise Killed
        return begin(directory, *args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_directory.RunDirectory, "begin", once)
        with pytest.raises(Killed):
            train_seeds(FUSED, seeds, outs)
    assert [read_config(out).steps for out in outs] == [300, 130]
    assert cli.main(["resume", str(tmp_path / "runs")]) == 0
    whole = [tmp_path / "whole" / f"seed-{s}" for s in (0, 1)]
    train_seeds(FUSED.replace(kappa=130 // 20), seeds, whole)
    for ours, theirs in zip(outs, whole):
        assert_equal_runs(ours, theirs)
