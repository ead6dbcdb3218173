"""Our own fuzzer: a few hundred cases here, more than twenty thousand in the slow suite."""

import json
import shutil
import tracemalloc
import zipfile
from collections import Counter
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import jax
import numpy as np
import pytest

import momentum_rl
from momentum_rl.agents import registry
from momentum_rl.agents.agent import encoded as agent_file
from momentum_rl.plumbing.files import file_to_write
from momentum_rl.runs.config import Config
from momentum_rl.runs.files import read_config
from momentum_rl.runs.sweep import read_sweep_file, to_json
from momentum_rl.spaces import Box, ObservationSpace, Spaces
from momentum_rl.training.build import configured_learner
from momentum_rl.training.run_directory import Checkpoints, Saved, encoded, newest
from momentum_rl.training.train import train
from tests import fuzzing
from tests.fuzzing import check, generator, outcome
from tests.test_trust import write_agent

CONFIG = Config(
    "dqn", "CartPole-v1", steps=100, iteration_steps=50, hidden=(4,), learning_starts=20
)
TOML = """name = "mine"
environments = ["CartPole-v1"]
seeds = 2
preset = "control"
algorithms = ["dqn", {algorithm = "momentum-dqn", label = "half", beta = 0.5}]
config = {steps = 100, hidden = [4], learning_starts = 20}
"""
FILES = {
    "run/status.json": json.dumps({"status": "finished", "step": 100, "message": ""}),
    "run/metrics.jsonl": "".join(
        json.dumps({"iteration": i, "step": 50 * i + 50, "score": 1.5, "loss_q": None}) + "\n"
        for i in range(2)
    ),
    "run/evaluation.json": json.dumps({"mean": 1.0, "std": 0.0, "returns": [1.0], "lengths": [9]}),
    "run/versions.json": json.dumps({"format": 1, "since": [{"step": 0, "versions": {"a": "1"}}]}),
    "run/timing.jsonl": json.dumps(
        {"iteration": 0, "step": 50, "seconds": 1.0, "steps_per_second": 50.0}
    )
    + "\n",
    "mine.toml": TOML,
    "run/evaluations.jsonl": "".join(
        json.dumps({"step": 50 * i, "mean": 1.0, "std": 0.0, "returns": [1.0], "lengths": [9]})
        + "\n"
        for i in (1, 2)
    ),
}


@cache
def box_agent():
    """The file of an agent with actions of numbers, whose policy is that of a named algorithm."""
    config = Config("momentum-sac", "Pendulum-v1", hidden=(4,), options={"regularised": True})
    spaces = Spaces(ObservationSpace((3,), "float32"), Box((-2.0,), (2.0,), (1,)))
    what = configured_learner(config, spaces)
    return agent_file(what.agent(config, what.learner.init(jax.random.key(0)).online, 7))


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A directory with a valid file of every kind, and Python looking for modules in it."""
    made = fuzzing.Place(tmp_path)
    work = made.work
    for name, text in FILES.items():
        (work / name).parent.mkdir(exist_ok=True)
        (work / name).write_text(text)
    (work / "run" / "config.json").write_text(CONFIG.to_json())
    write_agent(work / "agent.safetensors", "CartPole-v1")
    shutil.copy(work / "agent.safetensors", work / "run")
    (work / "box.safetensors").write_bytes(box_agent())
    (work / "sweep/runs/CartPole-v1/dqn/seed-0").mkdir(parents=True)
    (work / "sweep" / "sweep.json").write_text(to_json(read_sweep_file(work / "mine.toml")))
    failed = {"status": "failed", "step": 0, "message": "no memory", "time": ""}
    (work / "sweep/runs/CartPole-v1/dqn/seed-0/status.json").write_text(json.dumps(failed))
    momentum_rl.save_mdp(momentum_rl.garnet(5, 2, 2), work / "g.npz")
    checkpoints = Checkpoints(work / "run")
    state = {"replay": {"slack": 1}, "step": 7}
    for step in (7, 14):
        checkpoints.write(step, Saved({"a": np.arange(6.0), "b": np.arange(3)}, state))
    monkeypatch.chdir(work)
    monkeypatch.syspath_prepend(str(work))
    (work / "out").mkdir()
    return made


@pytest.fixture(autouse=True)
def _light(monkeypatch):
    """What costs seconds and reads nothing from outside: figures, helpers, the training itself."""
    from momentum_rl.report.chapters import chapters_of_runs, check_shown
    from momentum_rl.training.run_directory import continued, has_ended, result_of

    def look(runs, trust):
        from momentum_rl.envs.make import make_environment

        for own, out in runs:
            if (out / "config.json").exists():
                own = continued(out, own)
                if has_ended(out, own):
                    result_of(out)
            make_environment(own.env, 1, trust=trust).close()
            own.to_json()  # as a run that begins writes it

    def read(directory, out=None, **rest):
        file_to_write(out or directory / "report.html", new_directory=True)
        check_shown(directory, chapters_of_runs(directory), "`movi train`")
        return out or directory / "report.html"

    monkeypatch.setattr("momentum_rl.training.commands._train", look)
    monkeypatch.setattr("momentum_rl.report.chapters.write_report", read)


def restore(saved):
    """What the loops take from a checkpoint before anything else."""
    int(saved.state["replay"]["slack"])


CHANGES = {
    "agent": ("agent.safetensors", fuzzing.changed_safetensors),
    "box agent": ("box.safetensors", fuzzing.changed_safetensors),
    "config": ("run/config.json", fuzzing.changed_json),
    "status": ("run/status.json", fuzzing.changed_json),
    "metrics": ("run/metrics.jsonl", fuzzing.changed_rows),
    "evaluation": ("run/evaluation.json", fuzzing.changed_json),
    "evaluations": ("run/evaluations.jsonl", fuzzing.changed_rows),
    "versions": ("run/versions.json", fuzzing.changed_json),
    "timing": ("run/timing.jsonl", fuzzing.changed_rows),
    "sweep": ("sweep/sweep.json", fuzzing.changed_json),
    "failure": ("sweep/runs/CartPole-v1/dqn/seed-0/status.json", fuzzing.changed_json),
    "matrix": ("mine.toml", fuzzing.changed_toml),
    "mdp": ("g.npz", fuzzing.changed_npz),
    "checkpoint": ("run/checkpoint/000000000014.safetensors", fuzzing.changed_safetensors),
}
BELOW = ["report", ".", "--out", "out/report.html"]
COMMANDS = {
    "agent": [
        ["evaluate", "agent.safetensors", "--episodes", "1"],
        ["export", "agent.safetensors", "out/a.safetensors"],
    ],
    "box agent": [
        ["evaluate", "box.safetensors", "--episodes", "1"],
        ["export", "box.safetensors", "out/a.safetensors"],
    ],
    "evaluations": [BELOW],
    "group": [["resume", "run"], ["status", "."]],
    "config": [["status", "."], ["resume", "run"], BELOW],
    "status": [["status", "."], ["resume", "run"], BELOW],
    "metrics": [["status", "."], ["resume", "run"], BELOW],
    "evaluation": [["resume", "run"], BELOW],
    "versions": [["resume", "run"]],
    "timing": [["status", "."], ["resume", "run"]],
    "sweep": [
        ["status", "sweep"],
        ["sweep", "--out", "sweep", "--dry-run"],
        BELOW,
    ],
    "failure": [["status", "sweep"], ["sweep", "--out", "sweep", "--dry-run"]],
    "matrix": [["sweep", "mine.toml", "--dry-run", "--out", "out/sweep"]],
    "mdp": [["solve", "g.npz"], ["solve", "g.npz", "--horizon", "3"]],
}


def fuzz(place, kind, seed, count, counted):
    """So many cases of a kind."""
    if kind == "command line":
        for number in range(count):
            words = fuzzing.command_line(generator(kind, seed, number))
            name = f"{kind} {seed} {number}: {words}"
            counted[kind, check(place, name, words, anywhere=True)] += 1
        return
    name, change = CHANGES[kind]
    file = place.work / name
    whole = file.read_bytes()
    for number in range(count):
        rng = generator(kind, seed, number)
        text = whole if file.suffix in (".safetensors", ".npz") else whole.decode()
        file.write_bytes(change(text, rng))
        label = f"{kind} {seed} {number}"
        if kind == "checkpoint":
            kept = {path: path.read_bytes() for path in file.parent.iterdir()}
            checkpoints = Checkpoints(place.work / "run")
            status, said = fuzzing.read(lambda run=checkpoints: newest(run, restore))
            assert said.count("\n") == status // 2, label
            counted[kind, status == 2] += 1
            for path, content in kept.items():
                path.write_bytes(content)
            continue
        words = rng.choice(COMMANDS[kind])
        with room(label, file if kind in FORMATS else None):
            counted[kind, check(place, label, words)] += 1
    file.write_bytes(whole)


@contextmanager
def room(label, file):
    """Asserts that no more is allocated meanwhile than the file of an MDP claims, and some."""
    if file is None:
        yield
        return
    try:
        with zipfile.ZipFile(file) as archive:
            claimed = sum(info.file_size for info in archive.infolist())
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError):
        claimed = 0  # what is no .npz is known to be a few kilobytes
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] <= claimed + ROOM, label
    finally:
        tracemalloc.stop()


ROOM = 1 << 26  # modules that are imported on the way included
QUICK = {"mdp": 25, "command line": 80}
FORMATS = ("mdp",)
SLOW = {"agent": 1000, "command line": 2500, "evaluations": 300} | dict.fromkeys(FORMATS, 2_000)
KINDS = [*CHANGES, "command line"]
READ_AS_FAR_AS_THEY_CAN_BE = ("versions", "timing", "progress", "checkpoint", "evaluations")


@pytest.mark.parametrize("kind", KINDS)
def test_a_malformed_input_is_one_line_or_works(place, kind):
    counted = Counter()
    fuzz(place, kind, 0, QUICK.get(kind, 15), counted)
    assert sum(counted.values()) == QUICK.get(kind, 15)
    if kind not in READ_AS_FAR_AS_THEY_CAN_BE:
        assert counted[kind, True] > 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_more_than_twenty_thousand_of_them(place, kind, record_property):
    counted = Counter()
    count = SLOW.get(kind, 1300)
    fuzz(place, kind, 1, count, counted)
    record_property("cases", count)
    print(f"{kind}: {count} cases, {counted[kind, True]} refused, {counted[kind, False]} taken")


@pytest.fixture
def calls(place, monkeypatch):
    """Makes so many calls from Python; how they ended. No run begins."""
    monkeypatch.setattr("momentum_rl.training.train._train", lambda *given: None)
    monkeypatch.setattr("momentum_rl.sweeps.drive.run_sweep", lambda *given, **more: [])
    monkeypatch.setattr("momentum_rl.agents.registry._REGISTERED", dict(registry._REGISTERED))

    def made(seed, count):
        counted = Counter()
        for number in range(count):
            name, given = fuzzing.python_call(generator("python", seed, number))
            try:
                counted[name, fuzzing.answered(name, given)] += 1
            except Exception as error:
                raise AssertionError(f"python {seed} {number}: {name}(**{given!r})") from error
        return counted

    return made


def test_a_wrong_call_from_python_is_one_line_or_works(calls):
    counted = calls(0, 500)
    refused = {name for name, end in counted if end == "refused"}
    assert refused >= fuzzing.CALLS.keys() - {"rounding_floor", "register", "at", "action"}
    assert {end for _, end in counted} >= {"refused", "taken"}


@pytest.mark.slow
def test_five_thousand_of_them(calls):
    counted = calls(1, 5000)
    assert {name for name, end in counted if end == "refused"} == fuzzing.CALLS.keys()


SMALL = {"steps": 60, "iteration_steps": 20, "learning_starts": 10, "replay_capacity": 40}
SMALL |= {"hidden": (4,), "batch_size": 4, "checkpoint_every": 20, "final_episodes": 1}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("algorithm", "env", "cases"),
    [
        ("momentum-dqn", "CartPole-v1", 40),
        ("momentum-dqn", "gymnax/CartPole-v1", 12),
        ("sac", "Pendulum-v1", 30),
    ],
)
def test_a_forged_checkpoint_is_passed_over_or_one_line_or_gone_on_from(
    algorithm, env, cases, tmp_path, caplog
):
    """Of whatever is in a file with the right checksum; the training itself is done."""
    config, run = Config(algorithm, env, num_envs=2, **SMALL), tmp_path / "run"
    train(config, run)
    (run / "status.json").write_text('{"status": "interrupted", "step": 0}')
    shutil.copytree(run, tmp_path / "whole")
    counted = Counter()
    for number in range(cases):
        rng = generator("forged", 0, number)
        shutil.rmtree(run)
        shutil.copytree(tmp_path / "whole", run)
        checkpoints, caplog_before = Checkpoints(run), len(caplog.records)
        for step in rng.choice([checkpoints.steps()[-1:], checkpoints.steps()]):
            try:
                content = encoded(fuzzing.forged(checkpoints.read(step), rng))
            except (ValueError, RecursionError):  # no JSON: it cannot be written
                continue
            checkpoints.file(step).write_bytes(content)
        status, said = fuzzing.read(lambda: train(config, run))
        counted[status, len(caplog.records) > caplog_before] += 1
        assert len(said) <= 301, number
        assert all(len(record.getMessage()) <= 300 for record in caplog.records), number
    assert counted[2, False] + counted[0, True] > 0  # refused, or passed over
    assert counted[0, False] > 0  # not noticed: such a run goes on with somebody's numbers


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sweep", "config", "metrics"])
def test_a_page_of_malformed_results_is_written_or_one_line(place, kind):
    """With everything drawn, which the cases above leave out."""
    from momentum_rl.report.chapters import write_report

    name, change = CHANGES[kind]
    whole = (place.work / name).read_text()
    shutil.copytree("sweep", "all/sweep")
    shutil.copytree("run", "all/sweep/runs/CartPole-v1/dqn/seed-0", dirs_exist_ok=True)
    changed = {
        "sweep": "all/sweep/sweep.json",
        "config": "all/sweep/runs/CartPole-v1/dqn/seed-0/config.json",
        "metrics": "all/sweep/runs/CartPole-v1/dqn/seed-0/metrics.jsonl",
    }.get(kind, name)
    taken = 0
    for number in range(25):
        Path(changed).write_bytes(change(whole, generator(f"page {kind}", 0, number)))
        lines = []

        def page(lines=lines):
            out = Path("out/page.html")
            write_report(Path("all"), out, formats=("svg",), notify=lines.append)

        status, said = fuzzing.read(page)
        assert said.count("\n") == status // 2, number
        taken += status == 0
    assert taken > 0


def test_a_case_is_a_function_of_its_number():
    data = json.loads(CONFIG.to_json())
    first, second = (
        [repr(fuzzing.changed_tree(data, generator("tree", 0, i))) for i in range(200)]
        for _ in range(2)
    )
    assert first == second


def test_there_are_as_many_as_said():
    assert sum(QUICK.get(kind, 15) for kind in KINDS) >= 300
    assert sum(SLOW.get(kind, 1300) for kind in KINDS) >= 20_000


def test_the_files_that_are_changed_are_good_ones(place):
    """Otherwise the fuzzer would only see the first check of each reader."""
    assert read_config(place.work / "run") == CONFIG
    for words in {" ".join(words): words for own in COMMANDS.values() for words in own}.values():
        status, said = outcome(words)
        # Three iterations do not reach the tolerance, of which the answer tells.
        assert (status, said) == (0, "") or (status, words[0]) == (3, "solve"), (words, said)
    assert Path("out").is_dir()
