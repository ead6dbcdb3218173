"""Several devices and several processes give the answer of one."""

import json
import socket
import subprocess
import sys

import numpy as np
import pytest

from movi.cli import main
from movi.mdp import garnet, optimum, save_mdp
from movi.mdp.families import Inventory

SCRIPT = """
import json
import numpy as np
import jax
from movi.mdp.certificates import Aim
from movi.mdp.formats import load_mdp
from movi.mdp.sharding import sharded_value_iteration
mdp = load_mdp("m.npz")
found = [sharded_value_iteration(mdp, Aim(1e-8, True), n) for n in (1, 2, 4)]
np.savez("q.npz", *(one.q for one in found))
print(json.dumps([[one.bound, one.made, one.index.tolist()] for one in found]))
"""


@pytest.fixture
def mdp(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = garnet(203, 3, 4, seed=1)  # neither 2 nor 4 divides it
    save_mdp(made, "m.npz")
    return made


def test_one_two_and_four_devices_give_the_same_answer_and_certificate(mdp, monkeypatch):
    monkeypatch.setenv("JAX_NUM_CPU_DEVICES", "4")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    best = optimum(mdp)
    with np.load("q.npz") as tables:
        for (bound, sweeps, policy), q in zip(found, tables.values()):
            assert np.abs(q - best.q).max() <= bound <= 1e-8
            assert sweeps == found[0][1]
            assert bound == pytest.approx(found[0][0], rel=1e-6)
            np.testing.assert_array_equal(policy, best.policy)


def test_two_processes_on_loopback_have_the_answer_of_one(mdp):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [sys.executable, "-m", "movi", "solve", "m.npz", "--devices", "2", "--out", "s.npz"]
    running = [
        subprocess.Popen(
            [*words, "--cluster", f"127.0.0.1:{port}/{i}/2"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for i in range(2)
    ]
    said = [process.communicate(timeout=180) for process in running]
    assert [process.returncode for process in running] == [0, 0], said
    assert "method       vi (auto: 2 devices)" in said[0][0]
    assert "certificate" not in said[1][0]  # process 0 prints and writes
    best = optimum(mdp)
    with np.load("s.npz") as solution:
        assert np.abs(solution["q"] - best.q).max() <= solution["bound"] <= 1e-6
        np.testing.assert_array_equal(solution["policy"], best.policy)


def test_a_ragged_mdp_is_solved_on_two_devices(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mdp = Inventory(size=6, discount=0.9).mdp()
    assert mdp.ragged
    save_mdp(mdp, "m.npz")
    words = ["solve", "m.npz", "--devices", "2", "--out", "s.npz"]
    done = subprocess.run(
        [sys.executable, "-m", "movi", *words], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    best = optimum(mdp)
    with np.load("s.npz") as solution:
        assert np.abs(solution["q"] - best.q).max() <= solution["bound"] <= 1e-6
        np.testing.assert_array_equal(solution["policy"], best.policy)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--devices", "0"], "devices: 0, expected at least 1"),
        (["--devices", "999"], "devices: 999, this process sees"),
        (["--cluster", "a:1/0/2"], "cluster: without --devices"),
        (["--devices", "2", "--cluster", "a/2/2"], "expected HOST:PORT/I/N"),
        (["--devices", "2", "--scheme", "movi"], "devices: with a scheme"),
        (["--devices", "2", "--method", "ipi"], "method: 'ipi', expected vi on several devices"),
        (["--devices", "2", "--horizon", "3"], "devices: none, expected with --horizon"),
    ],
)
def test_devices_that_are_not_there_are_refused(mdp, words, says, capsys, monkeypatch):
    monkeypatch.setenv("JAX_NUM_CPU_DEVICES", "1")
    assert main(["solve", "m.npz", *words]) == 2
    assert says in capsys.readouterr().err
