"""Every bad input is one line: sizes, numbers, targets, files of runs and agents.

What ``movi`` says no to: exit status 2, one line of at most 300 characters, nothing written.
"""

import io
import json
import os
import struct
import time
import zipfile
from contextlib import closing
from dataclasses import asdict

import numpy as np
import pytest

import momentum_rl
from momentum_rl.agents.agent import AGENT_FILE
from momentum_rl.cli import main
from momentum_rl.errors import Damaged, UserError
from momentum_rl.mdp.files import load_mdp
from momentum_rl.plumbing.signals import never
from momentum_rl.plumbing.sizes import available_memory, require
from momentum_rl.runs.config import Config
from momentum_rl.runs.lock import SWEEP_LOCK, Lock
from momentum_rl.runs.sweep import read_sweep_file, to_json
from momentum_rl.sweeps.drive import to_stdout
from momentum_rl.sweeps.status import overview
from momentum_rl.training.run_directory import (
    Checkpointer,
    Checkpoints,
    RunDirectory,
    Saved,
    newest,
)
from paper.claims.tables import read_table
from tests.test_trust import write_agent

CONFIG = Config("dqn", "CartPole-v1", steps=100, iteration_steps=50)


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def refused(tmp_path, capsys):
    """Calls ``movi``; the one line with which it refuses."""

    def call(*words):
        before = contents(tmp_path)
        began = time.monotonic()
        status = main([str(word) for word in words])
        said = capsys.readouterr()
        assert (status, said.out) == (2, ""), said
        assert said.err.startswith("movi: ")
        assert said.err.count("\n") == 1
        assert len(said.err) <= 301
        assert contents(tmp_path) == before
        assert time.monotonic() - began < 60
        return said.err.removeprefix("movi: ").strip()

    return call


def contents(directory):
    return {
        path: path.read_bytes() if path.is_file() else b""
        for path in sorted(directory.rglob("*"))
        if not path.is_fifo()
    }


HUGE, BEYOND = 10**12, 99999999999999999999


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["mdp", "garnet", "--states", 10**9], "only"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_it_takes_and_what_there_is(words, says, refused):
    line = refused(*words, "--out", "new.npz")
    assert says.replace("10**9", "1,000,000,000") in line
    assert "needs " in line
    assert "of memory are available" in line


@pytest.mark.parametrize("number", [HUGE, BEYOND, 10**400])
@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("mdp garnet", "states"),
        ("mdp garnet", "actions"),
        ("mdp garnet", "branching"),
        ("solve g.npz", "iterations"),
        ("solve g.npz --sampled", "samples"),
        ("train dqn --env CartPole-v1", "steps"),
        ("train dqn --env CartPole-v1", "num-envs"),
        ("train dqn --env CartPole-v1", "seeds"),
        ("train dqn --env CartPole-v1", "replay-capacity"),
        ("evaluate agent.safetensors", "episodes"),
        ("evaluate agent.safetensors", "num-envs"),
        ("sweep minatar --scale quick", "workers"),
    ],
)
def test_an_integer_that_no_machine_word_holds_is_one_line(
    command, option, number, refused, tmp_path
):
    momentum_rl.save_mdp(momentum_rl.garnet(), tmp_path / "g.npz")
    write_agent(tmp_path / "agent.safetensors", "CartPole-v1")
    out = [] if command.startswith("evaluate") else ["--out", "new.npz"]
    line = refused(*command.split(), f"--{option}", number, *out)
    name = option.replace("-", "_")
    assert line.startswith(f"{name}: {str(number)[:20]}")


@pytest.mark.parametrize("seed", [-1, 2**63, 10**40])
@pytest.mark.parametrize(
    "words",
    [
        ["evaluate", "agent.safetensors"],
        ["record", "agent.safetensors", "--out", "film.mp4"],
        ["mdp", "garnet", "--out", "g.npz"],
        ["train", "dqn", "--env", "CartPole-v1", "--out", "new"],
    ],
)
def test_a_seed_that_is_none_is_one_line(words, seed, refused, tmp_path):
    write_agent(tmp_path / "agent.safetensors", "CartPole-v1")
    assert f"seed: {seed}, expected an integer" in refused(*words, "--seed", seed)


def test_environments_are_counted_before_they_are_made(refused, tmp_path):
    write_agent(tmp_path / "agent.safetensors", "CartPole-v1")
    words = ("train", "dqn", "--env", "CartPole-v1", "--out", "new")
    assert "num_envs: 1000000, expected at most 65536" in refused(*words, "--num-envs", 10**6)
    words = ("train", "dqn", "--env", "gymnax/CartPole-v1", "--out", "new")
    assert "num_envs: 1000000, expected at most 65536" in refused(*words, "--num-envs", 10**6)
    words = ("evaluate", "agent.safetensors", "--episodes", 10**6)
    assert "num_envs: 1000000" in refused(*words, "--num-envs", 10**6)


@pytest.mark.parametrize("env", ["CartPole-v1", "gymnax/CartPole-v1"])
@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--hidden", 10**6, 10**6], "network of 1,000,006,000,000 weights: needs"),
        (["--hidden", *[1] * 101], "hidden: 101 layers, expected at most 100"),
        (["--batch-size", 2**31 - 1, "--replay-capacity", 2000], "minibatch of 2,147,483,647"),
    ],
)
def test_networks_and_minibatches_are_measured_before_they_are_made(env, options, says, refused):
    assert says in refused("train", "dqn", "--env", env, "--out", "new", *options)


def test_a_run_of_a_billion_iterations_is_not_laid_out_for_a_report(tmp_path, refused):
    put_run(tmp_path / "run", **{"config.json": config_with(steps=2**31 - 1, iteration_steps=1)})
    assert "2,147,483,647 iterations" in refused("report", ".", "--out", "page.html")


def test_a_report_does_not_follow_a_link_that_a_directory_came_with(tmp_path):
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "results").mkdir()
    put_run(tmp_path / "results" / "run")
    (tmp_path / "results" / "report.html").symlink_to(tmp_path / "precious")
    assert main(["report", "results", "--format", "svg"]) == 0
    assert (tmp_path / "precious").read_text() == "mine"
    assert "<html" in (tmp_path / "results" / "report.html").read_text()


@pytest.mark.parametrize("name", ["checkpoint", "replay"])
def test_a_run_whose_directories_lead_elsewhere_is_refused(name, tmp_path, refused):
    put_run(tmp_path / "run", **{"status.json": '{"status": "running", "step": 0}'})
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "run" / name).symlink_to(tmp_path / "elsewhere")
    assert refused("resume", "run") == f"run/{name}: is a link, expected a directory"
    (tmp_path / "run" / name).unlink()
    (tmp_path / "run" / name).touch()
    assert refused("resume", "run") == f"run/{name}: is a file, expected a directory"


def test_a_new_run_does_not_begin_where_its_replay_would_lead_elsewhere(tmp_path, refused):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "transitions.bin").write_text("mine")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "replay").symlink_to(tmp_path / "precious")
    line = refused("train", "dqn", "--env", "CartPole-v1", "--steps", 100, "--out", "run")
    assert line == "run/replay: is a link, expected a directory"


def test_a_reports_figures_do_not_lead_elsewhere(tmp_path, refused):
    (tmp_path / "results").mkdir()
    (tmp_path / "elsewhere").mkdir()
    put_run(tmp_path / "results" / "run")
    (tmp_path / "results" / "figures").symlink_to(tmp_path / "elsewhere")
    assert "figures: is a link" in refused("report", "results")
    assert "figures: is a link" in refused("report", "results", "--out", "results/page.html")


def put_sweep(path):
    """The directory of a sweep that was begun."""
    matrix = {"environments": ["CartPole-v1"], "algorithms": ["dqn"], "seeds": 1}
    (path.parent / "mine.json").write_text(json.dumps(matrix))
    path.mkdir()
    text = to_json(read_sweep_file(path.parent / "mine.json"))
    (path / "sweep.json").write_text(text)


@pytest.mark.parametrize(
    "name", ["runs", "runs/CartPole-v1", "runs/CartPole-v1/dqn/seed-0", "logs"]
)
def test_a_sweep_whose_directories_lead_elsewhere_is_refused(name, tmp_path, refused):
    put_sweep(tmp_path / "sweep")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "sweep" / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "sweep" / name).symlink_to(tmp_path / "elsewhere")
    assert refused("sweep", "--out", "sweep") == f"sweep/{name}: is a link, expected a directory"


def test_a_pipe_for_a_sweeps_lock_is_not_waited_for(tmp_path, capsys):
    put_sweep(tmp_path / "sweep")
    os.mkfifo(tmp_path / "sweep" / ".sweep.lock")
    assert main(["status", "sweep"]) == 0
    assert "1 waiting" in capsys.readouterr().out
    with pytest.raises(UserError, match="lock: cannot be written"):
        Lock(tmp_path / "sweep" / SWEEP_LOCK)
    (tmp_path / "sweep" / ".sweep.lock").unlink()
    (tmp_path / "sweep" / ".sweep.lock").symlink_to(tmp_path / "new")
    with pytest.raises(UserError, match="lock: cannot be written"):
        Lock(tmp_path / "sweep" / SWEEP_LOCK)
    assert not (tmp_path / "new").exists()


def test_what_a_sweep_says_of_itself_is_plain_on_the_terminal(tmp_path, capsys):
    put_sweep(tmp_path / "sweep")
    file = tmp_path / "sweep" / "sweep.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "scale": "[/red] \x1b[2J"}))
    run = tmp_path / "sweep" / "runs" / "CartPole-v1" / "dqn" / "seed-0"
    run.mkdir(parents=True)
    (run / "status.json").write_text(
        json.dumps({"status": "failed", "step": 1, "message": "[/red] \x1b[2J"})
    )
    assert main(["status", "sweep"]) == 0
    said = capsys.readouterr().out
    assert "[/red]  [2J" in said
    to_stdout("begun with movi \x1b[2J")
    assert "\x1b" not in said + capsys.readouterr().out


def test_seeds_are_counted_before_their_configs_are_made(refused):
    began = time.monotonic()
    words = ("train", "dqn", "--env", "CartPole-v1", "--out", "new", "--seeds", 100_000_000)
    assert "seeds: 100000000, expected at most 10000" in refused(*words)
    assert time.monotonic() - began < 30  # to make them takes many minutes


def test_one_function_knows_memory_and_disk(tmp_path):
    require("little", memory=1, disk=1, directory=tmp_path / "new")
    with pytest.raises(UserError, match=r"much: needs 1e\+06 TB, only .* of memory are available"):
        require("much", memory=10**18)
    with pytest.raises(UserError, match=r"much: needs 1e\+06 TB, only .* are free in"):
        require("much", disk=10**18, directory=tmp_path / "new")
    assert available_memory() > 0


@pytest.mark.parametrize("command", ["export", "record"])
def test_a_target_that_cannot_be_written_is_refused_before_the_work(command, refused, tmp_path):
    write_agent(tmp_path / "agent.safetensors", "CartPole-v1")
    suffix = {"export": ".safetensors", "record": ".mp4"}[command]
    (tmp_path / f"folder{suffix}").mkdir()
    for name, says in (
        (f"folder{suffix}", "is a directory"),
        (f"{'x' * 300}{suffix}", "File name too long"),
        (f"agent.safetensors/in{suffix}", "is a file, expected a directory"),
        (f"none/in{suffix}", "is not a directory"),
        (f"a\0b{suffix}", "null"),
    ):
        words = [name] if command == "export" else ["--out", name]
        assert says in refused(command, "agent.safetensors", *words)


def test_a_read_only_target_is_refused(refused, tmp_path, monkeypatch):
    write_agent(tmp_path / "agent.safetensors", "CartPole-v1")
    (tmp_path / "there.safetensors").touch(mode=0o444)
    # The administrator may write everywhere, so the system's word is put into its mouth.
    monkeypatch.setattr(os, "access", lambda path, mode: "there" not in str(path))
    assert "read-only" in refused("export", "agent.safetensors", "there.safetensors")
    assert "read-only" in refused("mdp", "garnet", "--out", "there.safetensors")


@pytest.mark.parametrize("tolerance", ["-1", "0", "nan"])
def test_a_tolerance_that_is_none_is_one_line(tolerance, refused, tmp_path):
    momentum_rl.save_mdp(momentum_rl.garnet(), tmp_path / "g.npz")
    line = refused("solve", "g.npz", "--tolerance", tolerance)
    assert line == f"tolerance: {float(tolerance)}, expected a positive number"


# Agents' files --------------------------------------------------------------------------------


def write_safetensors(path, tensors, metadata):
    """By the format's definition, so that what is wrong can be written."""
    header, data = {"__metadata__": metadata}, b""
    for name, (dtype, shape, content) in tensors.items():
        offsets = [len(data), len(data) + len(content)]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": offsets}
        data += content
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def agent_parts(tmp_path):
    write_agent(tmp_path / "good.safetensors", "CartPole-v1")
    content = (tmp_path / "good.safetensors").read_bytes()
    (size,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + size])
    about = json.loads(header.pop("__metadata__")["movi"])
    data = content[8 + size :]
    tensors = {
        name: (own["dtype"], own["shape"], data[slice(*own["data_offsets"])])
        for name, own in header.items()
    }
    (tmp_path / "good.safetensors").unlink()
    return tensors, about


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"format": float("inf")}, "not an agent's file"),
        ({"format": 4}, "format 4, this version of movi reads up to 3"),
        ({"format": -1}, "format -1, this version of movi reads up to 3"),
        ({"named": {"algorithm": "os:system"}}, "if you trust it, add --trust os"),
        ({"named": {"algorithm": "nobody"}}, "algorithm: 'nobody', expected one of"),
        ({"named": {"algorithm": "dqn", "options": {"x": 1}}}, "dqn has no 'x', expected none"),
        ({"named": {"algorithm": "c51", "options": {"atoms": 10**12}}}, "atoms: 1000000000000"),
        ({"named": []}, "named: [], expected an object"),
        ({"kinds": {"q": {"kind": "categorical", "low": 0, "high": 1, "n": 10**12}}}, "network"),
        ({"kinds": {"q": {"kind": "categorical", "low": 1, "high": 0}}}, "expected low < high"),
        ({"kinds": {"q": {"kind": "os.system"}}}, "kinds: q: 'os.system', expected one of"),
        ({"kinds": {"q": []}}, "kinds: q: [], expected an object"),
        ({"format": None}, "format: None, expected an integer"),
        ({"acts_on": "h"}, "expected those of 'h'"),
        ({"spaces": 3}, "spaces: 3"),
        ({"spaces.actions": float("inf")}, "not an agent's file"),
        ({"spaces.actions": 1e30}, "actions: 1e+30, expected an integer"),
        ({"spaces.actions": 10**12}, "expected sizes of at least 1"),
        ({"spaces.actions": 0}, "expected sizes of at least 1"),
        ({"spaces.observation.dtype": "object"}, "dtype: 'object'"),
        ({"spaces.observation.dtype": "O"}, "dtype: 'O'"),
        ({"spaces.observation.shape": [10**6, 10**6]}, "expected sizes"),
        ({"spaces.observation.shape": "abc"}, "shape: 'abc', expected a list"),
        ({"network.kind": "mlp2"}, "kind: 'mlp2', expected one of"),
        ({"network.hidden": [True]}, "hidden: True, expected an integer"),
        ({"about": []}, "about: [], expected an object"),
        ({"about.env": None}, "env: None, expected a text"),
        ({"about.env": 5}, "env: 5, expected a text"),
        ({"about.evaluation_epsilon": None}, "evaluation_epsilon: None"),
        ({"about.evaluation_epsilon": "0.1"}, "evaluation_epsilon: '0.1'"),
        ({"about.evaluation_epsilon": 1e200}, "epsilon: 1e+200"),
        ({"about.evaluation_epsilon": -1}, "epsilon: -1"),
    ],
)
def test_an_agents_description_that_makes_no_sense_is_one_line(change, says, refused, tmp_path):
    tensors, about = agent_parts(tmp_path)
    for path, value in change.items():
        *there, last = path.split(".")
        place = about
        for key in there:
            place = place[key]
        place[last] = value
    write_safetensors(tmp_path / "bad.safetensors", tensors, {"movi": json.dumps(about)})
    assert says in refused("evaluate", "bad.safetensors")


def test_a_description_a_hundred_thousand_deep_is_one_line(refused, tmp_path):
    tensors, _ = agent_parts(tmp_path)
    for text in ("[" * 100_000, '{"a":' * 100_000, "[" * 40 + "]" * 40):
        write_safetensors(tmp_path / "bad.safetensors", tensors, {"movi": text})
        assert "not an agent's file" in refused("evaluate", "bad.safetensors")


@pytest.mark.parametrize("dtype", ["F8_E4M3", "BF16", "BOOL", "I64", "F64", "C64", "F16"])
def test_parameters_of_another_type_are_refused(dtype, refused, tmp_path):
    sizes = {"F8_E4M3": 1, "BF16": 2, "BOOL": 1, "I64": 8, "F64": 8, "C64": 8, "F16": 2}
    tensors, about = agent_parts(tmp_path)
    name = min(tensors)
    _, shape, _ = tensors[name]
    tensors[name] = (dtype, shape, bytes(int(np.prod(shape)) * sizes[dtype]))
    write_safetensors(tmp_path / "bad.safetensors", tensors, {"movi": json.dumps(about)})
    line = refused("evaluate", "bad.safetensors")
    assert "do not fit its network" in line or "not an agent's file" in line


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_parameters_that_are_not_finite_are_refused(value, refused, tmp_path):
    tensors, about = agent_parts(tmp_path)
    name = min(tensors)
    _, shape, content = tensors[name]
    array = np.frombuffer(content, "<f4").copy()
    array[0] = value
    tensors[name] = ("F32", shape, array.tobytes())
    write_safetensors(tmp_path / "bad.safetensors", tensors, {"movi": json.dumps(about)})
    assert "the parameters of 'q' are not finite" in refused("evaluate", "bad.safetensors")


def test_a_tensor_that_is_also_a_folder_is_refused(refused, tmp_path):
    tensors, about = agent_parts(tmp_path)
    tensors["q"] = ("F32", [1], bytes(4))
    write_safetensors(tmp_path / "bad.safetensors", tensors, {"movi": json.dumps(about)})
    assert "expected those of 'q'" in refused("evaluate", "bad.safetensors")


@pytest.mark.parametrize("epsilon", ["-1", "nan", "inf", "1.5"])
def test_epsilon_is_a_probability(epsilon, refused, tmp_path):
    write_agent(tmp_path / "agent.safetensors", "CartPole-v1")
    for words in (["evaluate"], ["record", "--out", "film.mp4"]):
        line = refused(words[0], "agent.safetensors", *words[1:], "--epsilon", epsilon)
        assert "epsilon" in line
        assert "expected a number in [0, 1]" in line


def test_an_agent_larger_than_the_memory_is_refused_with_what_there_is(
    refused, tmp_path, monkeypatch
):
    tensors, about = agent_parts(tmp_path)
    tensors["q/more"] = ("F32", [250_000], bytes(1_000_000))
    write_safetensors(tmp_path / "large.safetensors", tensors, {"movi": json.dumps(about)})
    monkeypatch.setattr("momentum_rl.plumbing.sizes.available_memory", lambda: 500_000)
    line = refused("evaluate", "large.safetensors")
    assert line == "large.safetensors: needs 1 MB, only 500 kB of memory are available"


# Run directories ------------------------------------------------------------------------------


def put_run(path, **files):
    path.mkdir()
    standard = {
        "config.json": CONFIG.to_json(),
        "status.json": json.dumps({"status": "finished", "step": 100, "message": ""}),
        "metrics.jsonl": '{"iteration": 0, "step": 50, "score": 1.0}\n'
        '{"iteration": 1, "step": 100, "score": 2.0}\n',
        "evaluation.json": json.dumps({"mean": 1.0, "returns": [1.0], "lengths": [1]}),
    }
    for name, text in {**standard, **files}.items():
        (path / name).write_text(text)


def config_with(**changes):
    return json.dumps({**json.loads(CONFIG.to_json()), **changes})


BAD_RUNS = {
    "deep": {"config.json": "[" * 100_000},
    "no algorithm": {"config.json": config_with(algorithm=None)},
    "a number for an environment": {"config.json": config_with(env=5)},
    "a list for a word": {"config.json": config_with(preset=["control"])},
    "infinite": {"config.json": config_with(gamma=float("inf"))},
    "infinite steps": {"status.json": '{"status": "running", "step": Infinity}'},
    "too many steps": {"status.json": f'{{"status": "running", "step": {10**400}}}'},
    "a list for a status": {"status.json": '{"status": ["finished"], "step": 1}'},
    "a list for a message": {"status.json": '{"status": "failed", "step": 1, "message": [1]}'},
}


@pytest.mark.parametrize("bad", BAD_RUNS)
def test_one_bad_run_does_not_hide_the_table(bad, tmp_path, capsys):
    put_run(tmp_path / "good")
    put_run(tmp_path / "bad", **BAD_RUNS[bad])
    assert main(["status", "."]) == 0
    said = capsys.readouterr()
    assert "2 runs: 1 finished, 1 unreadable" in " ".join(said.out.split())
    assert said.err == ""


@pytest.mark.parametrize("bad", BAD_RUNS)
def test_and_resume_says_what_is_wrong_with_it(bad, tmp_path, refused):
    put_run(tmp_path / "bad", **BAD_RUNS[bad])
    assert refused("resume", "bad").startswith(f"bad/{next(iter(BAD_RUNS[bad]))}: ")


def test_times_that_make_no_sense_are_no_progress(tmp_path):
    put_run(tmp_path / "run", **{"status.json": '{"status": "running", "step": 0}'})
    row = {"iteration": 0, "step": 1, "seconds": 0.5, "steps_per_second": 2.0}
    path = tmp_path / "run"
    (path / "timing.jsonl").write_text(json.dumps(row) + "\n")
    assert overview(tmp_path).runs[0].step == 1
    for step in ("Infinity", str(10**400), "[]", '"1"', "true", "1e400"):
        text = json.dumps(row).replace('"step": 1', f'"step": {step}')
        (path / "timing.jsonl").write_text(text + "\n")
        assert overview(tmp_path).runs[0].step == 0


@pytest.mark.parametrize("text", ['{"returns": ["a"], "lengths": [1]}', '{"returns": 1}', '"x"'])
def test_text_in_an_evaluation_is_one_line(text, tmp_path, refused):
    put_run(tmp_path / "run", **{"evaluation.json": text})
    assert refused("resume", "run").startswith("run/evaluation.json: ")


@pytest.mark.parametrize("text", ["[]," * 400_000, "\n" * 1_100_000])
def test_a_text_of_which_a_parser_makes_more_than_fits_is_refused(text, tmp_path, monkeypatch):
    """Measured: 27 bytes for each of ``[],[],…``, 77 for each empty line of a table."""
    (tmp_path / "table.csv").write_text(text)
    monkeypatch.setattr("momentum_rl.plumbing.sizes.available_memory", lambda: 30_000_000)
    with pytest.raises(UserError, match=r"table.csv: needs .*MB, only 30 MB of memory"):
        read_table(tmp_path / "table.csv", ("iteration",))


def test_a_key_of_ten_thousand_parts_is_refused_at_once(tmp_path, refused):
    """Python's parser would take gigabytes for 64 kB of them."""
    (tmp_path / "mine.toml").write_text(f"{'a.' * 10_000}b = 1")
    assert "longer than 16.4 kB" in refused("sweep", "mine.toml", "--dry-run", "--out", "new")


def test_a_pipe_in_a_run_is_not_waited_for(tmp_path, capsys):
    put_run(tmp_path / "run")
    (tmp_path / "run" / "status.json").unlink()
    os.mkfifo(tmp_path / "run" / "status.json")
    assert main(["status", "."]) == 0
    assert "not a file" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("name", ["status.json", "timing.jsonl", "versions.json", AGENT_FILE])
def test_a_run_with_a_directory_for_a_file_is_refused_before_anything_is_rewritten(
    name, tmp_path, refused
):
    put_run(tmp_path / "run", **{"status.json": '{"status": "running", "step": 0}'})
    (tmp_path / "run" / name).unlink(missing_ok=True)
    (tmp_path / "run" / name).mkdir()
    assert refused("resume", "run") == f"run/{name}: is a directory, expected a file"


def test_a_checkpoint_that_is_a_directory_is_passed_over(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.write(10, Saved({"a": np.ones(3)}, {"x": 1}))
    (tmp_path / "checkpoint" / "000000000020.safetensors").mkdir()
    with pytest.raises(Damaged):
        checkpoints.read(20)
    restored = []
    newest(checkpoints, restored.append)
    assert restored[0].state == {"x": 1}
    checkpoints.write(30, Saved({"a": np.ones(3)}, {"x": 3}))
    checkpoints.write(40, Saved({"a": np.ones(3)}, {"x": 4}))
    assert checkpoints.steps() == [30, 40]


@pytest.mark.parametrize("error", [AssertionError("action 7"), MemoryError(), KeyError("replay")])
def test_a_checkpoint_that_makes_no_sense_is_passed_over_or_one_line(error, tmp_path, caplog):
    """Whoever can write a file can write its checksum: what it says need not make sense."""
    checkpoints = Checkpoints(tmp_path)
    for step in (10, 20):
        checkpoints.write(step, Saved({"a": np.ones(3)}, {"step": step}))
    restored = []

    def restore(saved):
        if saved.state["step"] in bad:
            raise error
        restored.append(saved.state["step"])

    bad = {10, 20}
    with pytest.raises(UserError, match=r"000000000020.*damaged.*no checkpoint can be resumed"):
        newest(checkpoints, restore)
    assert caplog.text == ""  # the refusal is the one line
    bad = {20}
    newest(checkpoints, restore)
    assert restored == [10]
    assert f"damaged ({type(error).__name__}" in caplog.text
    assert checkpoints.steps() == [10]


def test_an_older_checkpoint_that_makes_no_sense_holds_nobody_up(tmp_path):
    put_run(tmp_path / "run", **{"status.json": '{"status": "running", "step": 0}'})
    for step, replay in ((10, None), (20, {"added": "x"}), (30, {"added": 5})):
        checkpoints = Checkpoints(tmp_path / "run")
        checkpoints.write(step, Saved({"a": np.ones(3)}, {"replay": replay}))
    with closing(RunDirectory(tmp_path / "run", CONFIG)) as directory:
        checkpointer = Checkpointer(
            directory, 100, never, margin=1, headroom=lambda replay: int(replay["added"]) + 2
        )
        checkpointer.begin(30)
        assert checkpointer.steps_left(30) == 7


# Tables, sweeps, lines ------------------------------------------------------------------------


def npz(path, **members):
    """An .npz of these headers and bytes, or with members compressed by a method."""
    momentum_rl.save_mdp(momentum_rl.garnet(4, 3, 2), path)
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    content.update({f"{name}.npy": data for name, data in members.items()})
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in content.items():
            archive.writestr(name, data)


def npy(header, data):
    text = header.encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': ('<f8',), 'fortran_order': False, 'shape': (4, 3), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (True, 12), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-4, -3), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (4.0, 3), }",
        "{'descr': '|O', 'fortran_order': False, 'shape': (4, 3), }",
        "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (4, 3), }",
    ],
)
def test_a_header_that_numpy_does_not_take_is_one_line(header, tmp_path, refused):
    npz(tmp_path / "bad.npz", rewards=npy(header, bytes(96)))
    assert refused("solve", "bad.npz").startswith("bad.npz: ")


def test_a_damaged_lzma_member_is_one_line(tmp_path, refused):
    momentum_rl.save_mdp(momentum_rl.garnet(30, 4, 4), tmp_path / "good.npz")
    with zipfile.ZipFile(tmp_path / "good.npz") as good:
        content = {name: good.read(name) for name in good.namelist()}
    (tmp_path / "good.npz").unlink()
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_LZMA) as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    seen = []
    for at in range(80, len(whole.getvalue()) - 400, 97):
        damaged = bytearray(whole.getvalue())
        damaged[at : at + 4] = b"\xff\x00\xff\x00"
        (tmp_path / "bad.npz").write_bytes(damaged)
        try:
            load_mdp(tmp_path / "bad.npz")
        except UserError as error:
            seen.append(str(error))
    assert len(seen) > 10
    assert not any("\n" in line for line in seen)


def test_a_pipe_for_a_model_is_not_waited_for(tmp_path, refused):
    os.mkfifo(tmp_path / "model.npz")
    assert "not a file" in refused("solve", "model.npz")


@pytest.mark.parametrize("label", ["x" * 300, "x" * 101, "", "\x1b[2J", "..", "a\nb"])
def test_a_label_that_is_no_name_is_refused_in_a_dry_run_already(label, tmp_path, refused):
    matrix = {"environments": ["CartPole-v1"], "seeds": 1}
    matrix["algorithms"] = [{"algorithm": "dqn", "label": label}]
    if label:
        (tmp_path / "mine.json").write_text(json.dumps(matrix))
        assert "label: " in refused("sweep", "mine.json", "--dry-run", "--out", "new")


def test_a_long_value_is_cut_and_what_was_expected_is_still_said(tmp_path, refused):
    line = refused("train", "dqn", "--env", "CartPole-v1", "--loss", "x" * 5000)
    assert len(line) <= 294
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.json").write_text(config_with(preset=["x"] * 5000))
    assert refused("resume", "run").endswith("expected a text")
    fields = {**asdict(CONFIG), "network": "y" * 5000}
    with pytest.raises(UserError, match=r"expected one of .*mlp$") as error:
        Config.from_dict(fields)
    assert len(str(error.value)) <= 294
