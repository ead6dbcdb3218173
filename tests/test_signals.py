"""SIGINT and SIGTERM at any moment of any command: heard within seconds, and nothing broken."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import momentum_rl
from momentum_rl.cli import COMMANDS, main
from momentum_rl.plumbing.signals import PATIENCE
from momentum_rl.runs.files import holds_run, read_config, read_status
from tests.test_trust import write_agent

PATH = str(Path(momentum_rl.__file__).parents[1])
SLACK = 60.0  # seconds that a crowded machine may take to do nothing


@pytest.fixture(autouse=True)
def _heard():
    """Under nohup, or behind an `&`, SIGINT is ignored here, and would be in every child."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def start(words, cwd):
    return subprocess.Popen(
        [sys.executable, "-P", *words],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": PATH, "PYTHONWARNINGS": "ignore"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def end(process, number):
    """Sends a signal; the exit status, what was said, and the seconds that it took."""
    began = time.monotonic()
    process.send_signal(number)
    _, said = process.communicate(timeout=PATIENCE + SLACK)
    return process.returncode, said, time.monotonic() - began


BUSY = """
import hashlib, sys
from momentum_rl.plumbing.signals import listening
with listening():
    print("busy", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"", b"", 10**9)  # minutes, in compiled code
"""


IMPORTING = """
import sys, time
from momentum_rl.cli import main
from momentum_rl.sweeps.commands import ShowStatus
def begin(chosen):
    import lasting
    time.sleep(60)
ShowStatus.execute = begin
sys.exit(main(["status", "."]))
"""
LASTING = """
import pathlib, time
print("busy", flush=True)
end = time.monotonic() + 1.0
while time.monotonic() < end:
    sum(range(1000))
pathlib.Path("imported").touch()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_module_that_is_being_imported_is_imported_to_its_end(number, tmp_path):
    (tmp_path / "lasting.py").write_text(LASTING)
    code = f"import sys; sys.path.append({str(tmp_path)!r})\n{IMPORTING}"
    process = start(["-c", code], tmp_path)
    assert process.stdout.readline() == "busy\n"
    status, said, seconds = end(process, number)
    assert (status, said) == (128 + number, "movi: interrupted\n")
    assert seconds < PATIENCE + SLACK
    assert (tmp_path / "imported").exists()


WRAPPING = """
import sys, time
from momentum_rl.cli import main
from momentum_rl.sweeps.commands import ShowStatus
def begin(chosen):
    print("busy", flush=True)
    try:
        time.sleep(60)
    except BaseException:
        raise RuntimeError("Unable to initialize backend 'cpu'") from None  # as JAX does
ShowStatus.execute = begin
sys.exit(main(["status", "."]))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_a_library_makes_of_an_interruption_is_still_one(number, tmp_path):
    process = start(["-c", WRAPPING], tmp_path)
    assert process.stdout.readline() == "busy\n"
    assert end(process, number)[:2] == (128 + number, "movi: interrupted\n")


def test_an_error_without_a_signal_is_no_interruption(monkeypatch):
    def fail(chosen):
        raise RuntimeError("ours")

    monkeypatch.setattr("momentum_rl.sweeps.commands.ShowStatus.execute", fail)
    with pytest.raises(RuntimeError, match="ours"):
        main(["status", "."])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_heard_while_compiled_code_runs(number, tmp_path):
    process = start(["-c", BUSY], tmp_path)
    assert process.stdout.readline() == "busy\n"
    time.sleep(1)
    assert end(process, number)[:2] == (128 + number, "movi: interrupted\n")


COLLECTING = """
import gc, os, signal, sys, time
from momentum_rl.errors import Interrupted
from momentum_rl.plumbing.signals import listening

def callback(phase, info):
    gc.callbacks.remove(callback)
    os.kill(os.getpid(), int(sys.argv[1]))
    time.sleep(0.1)  # the handler raises here, in what no exception comes out of

with listening():
    try:
        gc.callbacks.append(callback)
        gc.collect()
        time.sleep(60)
    except (Interrupted, KeyboardInterrupt) as error:
        print(type(error).__name__)
"""


@pytest.mark.parametrize(
    ("number", "name"), [(signal.SIGINT, "KeyboardInterrupt"), (signal.SIGTERM, "Interrupted")]
)
def test_a_signal_is_heard_while_garbage_is_collected(number, name, tmp_path):
    process = start(["-c", COLLECTING, str(int(number))], tmp_path)
    told, said = process.communicate(timeout=SLACK)
    assert (process.returncode, told, said) == (0, f"{name}\n", "")


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="no /proc to look into")
def test_a_signal_is_heard_while_environments_are_made(tmp_path):
    """Sixty thousand of them take half a minute, and nothing is written before."""
    words = ["-m", "momentum_rl", "train", "dqn", "--env", "CartPole-v1", "--num-envs", "60000"]
    process = start([*words, "--out", "new", "--replay-capacity", "100000"], tmp_path)
    memory = Path(f"/proc/{process.pid}/statm")
    end_of_waiting = time.monotonic() + 120
    while int(memory.read_text().split()[1]) * 4096 < 300 * 2**20:
        assert time.monotonic() < end_of_waiting
        assert process.poll() is None
        time.sleep(0.05)
    status, said, _ = end(process, signal.SIGTERM)
    assert status == 128 + signal.SIGTERM
    assert "movi: interrupted" in said  # JAX may tell of its own clean-up before it
    assert list(tmp_path.iterdir()) == []


LONG = {
    "solve": [
        "g.npz",
        "--scheme",
        "movi",
        "--sampled",
        "--iterations",
        "2000000",
        "--out",
        "q.npz",
    ],
    "bounds": ["g.npz", "--iterations", "3000", "--out", "b.csv"],
    "mdp": ["maze", "--size", "1000", "--out", "new.npz"],
    "train": ["momentum-dqn", "--env", "gymnax/CartPole-v1", "--steps", "10000000", "--out", "new"],
    "resume": ["run"],
    "evaluate": ["agent.safetensors", "--episodes", "100000"],
    "record": ["agent.safetensors", "--episodes", "1000", "--out", "film.mp4"],
    "export": ["agent.safetensors", "again.safetensors"],
    "sweep": ["minatar", "--scale", "quick", "--out", "sweep"],
    "status": ["run", "--watch"],
    "compare": ["run"],
    "report": ["run"],
}
assert LONG.keys() == COMMANDS.keys()


@pytest.fixture(scope="module")
def things(tmp_path_factory):
    """A working directory with something for every command, half of a run among it."""
    place = tmp_path_factory.mktemp("things")
    momentum_rl.save_mdp(momentum_rl.garnet(300, 4, 4), place / "g.npz")
    write_agent(place / "agent.safetensors", "CartPole-v1")
    words = ["-m", "momentum_rl", "train", "dqn", "--env", "CartPole-v1", "--out", "run"]
    process = start([*words, "--steps", "10000000", "--checkpoint-every", "500"], place)
    until = time.monotonic() + 240
    while not list(place.glob("run/checkpoint/*.safetensors")):
        assert time.monotonic() < until
        time.sleep(0.1)
    assert end(process, signal.SIGTERM)[0] == 143
    return place


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_signals_at_random_moments_of_every_command(command, things):
    rng = random.Random(command)
    for number in (signal.SIGINT, signal.SIGTERM) * 3:
        before = {p for p in things.rglob("*") if p.is_file()}
        process = start(["-m", "momentum_rl", *command.split(), *LONG[command]], things)
        try:
            process.wait(rng.uniform(0, 12))
        except subprocess.TimeoutExpired:
            status, said, seconds = end(process, number)
            assert seconds < PATIENCE + SLACK
            # By the signal itself before the command listens; or the command ended in time.
            assert status in (-number, 128 + number, 0, 2), (status, said)
            # Before the first line of ours Python itself may say one.
            assert "Traceback" not in said or "__main__.py" not in said, said
        assert not list(things.glob("*.part"))
        new = {p for p in things.rglob("*") if p.is_file()} - before
        assert all(not p.name.endswith(".part") or "run" in p.parts for p in new), new
        if holds_run(things / "run"):
            read_config(things / "run")
            read_status(things / "run")
