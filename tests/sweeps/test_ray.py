"""Sweeps on Ray, a real one: a cluster that loses a node."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("ray")

from momentum_rl.cli import main
from momentum_rl.runs.sweep import read_sweep
from tests.sweeps.sweep_processes import (
    TOML,
    fingerprint,
    results,
    wait_for,
    workers_of,
)


@pytest.fixture
def ray_environment(tmp_path):
    """Ray keeps a token in the home directory, which is not the tests' to write to."""
    return {**os.environ, "HOME": str(tmp_path)}


def start(words, place, env):
    return subprocess.Popen(
        [sys.executable, "-m", "momentum_rl", *map(str, words)],
        cwd=place,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("127.0.0.1:1", "does not answer"),
        ("nowhere", "expected HOST:PORT"),
        ("127.0.0.1:99999", "expected HOST:PORT"),
    ],
)
def test_an_address_that_is_no_clusters_is_one_clear_line(
    tmp_path, capsys, monkeypatch, address, says
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(TOML)
    assert main(["sweep", "mine.toml", "--out", "out", "--ray", address]) == 2
    said = capsys.readouterr().err
    assert says in said
    assert said.count("\n") == 1
    assert not (tmp_path / "out").exists()


CLUSTER = """
import sys
from ray.cluster_utils import Cluster

cluster = Cluster(
    initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
)
second = cluster.add_node(num_cpus=1)
cluster.wait_for_nodes()
raylet = second.all_processes["raylet"][0].process.pid
print(cluster.address, raylet, flush=True)
sys.stdin.readline()
cluster.remove_node(second, allow_graceful=False)
print("removed", flush=True)
sys.stdin.readline()
cluster.shutdown()
"""


@pytest.mark.slow
def test_a_cluster_that_loses_a_node_loses_nothing_and_repeats_nothing(ray_environment, tmp_path):
    matrix = TOML.replace("seeds = 2", "seeds = 3").replace("steps = 2000", "steps = 6000")
    (tmp_path / "mine.toml").write_text(matrix)
    alone = start(
        ["sweep", "mine.toml", "--out", "alone", "--workers", 2], tmp_path, ray_environment
    )
    assert alone.wait(200) == 0
    env = {**ray_environment, "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
    cluster = subprocess.Popen(
        [sys.executable, "-c", CLUSTER],
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    driver = None
    try:
        address, raylet = cluster.stdout.readline().split()
        out = tmp_path / "out"
        driver = start(["sweep", "mine.toml", "--out", "out", "--ray", address], tmp_path, env)

        def in_the_middle():
            """A run is finished, and another one is under way on the node that is to go."""
            under_way = workers_of(out, below=int(raylet))
            return fingerprint(out) and under_way and under_way

        wait_for(in_the_middle, 200)
        before = fingerprint(out)
        cluster.stdin.write("remove\n")
        cluster.stdin.flush()
        assert cluster.stdout.readline() == "removed\n"
        said, errors = driver.communicate(timeout=280)
        assert (driver.returncode, errors) == (0, ""), said
    finally:
        if driver is not None:
            driver.kill()
            driver.wait()
        cluster.communicate("end\n", timeout=60)
    assert before
    assert before.items() <= fingerprint(out).items()
    assert results(out) == results(tmp_path / "alone")
    starts = [log.read_text().count("(process ") for log in out.glob("logs/**/*.txt")]
    assert sorted(starts)[-1] == 2
    assert sorted(starts)[:-1] == [1] * (len(starts) - 1)
    assert read_sweep(out) == read_sweep(tmp_path / "alone")
