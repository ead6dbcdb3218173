"""What tests of sweeps with real processes share: a small matrix, and looking at what goes on."""

import json
import time
from dataclasses import replace
from pathlib import Path

from momentum_rl.runs.files import read_status

TOML = """
environments = ["gymnax/CartPole-v1", "CartPole-v1"]
seeds = 2

[[algorithms]]
algorithm = "momentum-dqn"
label = "momentum β=0.5"
beta_schedule = "constant"
beta = 0.5

[config]
steps = 2000
iteration_steps = 250
checkpoint_every = 300
learning_starts = 100
replay_capacity = 500
batch_size = 8
hidden = [8]
final_episodes = 2
"""


def results(directory):
    """Everything that a sweep found out, as bytes, by file; and how its runs ended."""
    names = ("config.json", "metrics.jsonl", "evaluation.json", "agent.safetensors")
    ended = {
        file.relative_to(directory): replace(read_status(file.parent), time="")
        for file in directory.glob("runs/**/status.json")
    }
    return ended | {
        file.relative_to(directory): file.read_bytes()
        for name in names
        for file in sorted(directory.glob(f"runs/**/{name}"))
    }


def fingerprint(directory):
    """When each file of a finished run was written."""
    return {
        file: file.stat().st_mtime_ns
        for status in directory.glob("runs/**/status.json")
        if json.loads(status.read_text())["status"] == "finished"
        for file in status.parent.iterdir()
        if file.is_file() and file.name != "lock"
    }


def rows(directory):
    """How many iterations all runs have."""
    return sum(len(f.read_text().splitlines()) for f in directory.glob("runs/**/metrics.jsonl"))


def wait_for(condition, seconds=120):
    """Looks until something is so; what it is."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)
    return found


def processes():
    """The command line and the parent of every process, by its id."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        found[int(entry.name)] = words, parent
    return found


def workers_of(directory, below=None):
    """The workers on a directory, by its absolute path; if given, only those below a process."""
    everything = processes()
    workers = [
        pid
        for pid, (words, _) in everything.items()
        if "momentum_rl.sweeps.worker" in words and str(directory) in words
    ]
    return [pid for pid in workers if below is None or below in _ancestors(pid, everything)]


def _ancestors(pid, everything):
    found = []
    while pid in everything and pid > 1:
        pid = everything[pid][1]
        found.append(pid)
    return found
