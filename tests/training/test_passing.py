"""How many files of the package a reader meets on the two ways that matter most.

A file is on a way if a function of it is called there, in a process of its own.
"""

import os
import subprocess
import sys
from pathlib import Path

import momentum_rl

SOURCE = Path(momentum_rl.__file__).parent
ALGORITHM = """
from momentum_rl import Algorithm, Target
from momentum_rl.core.targets import greedy_value

HALF = Algorithm("half", {"q": Target(
    greedy_value, lambda values, a, r, discount, v, beta: r + discount * v / 2)})
"""
TRACER = """
import inspect, os, sys
import momentum_rl
SOURCE = os.path.dirname(momentum_rl.__file__) + os.sep
FILES = set()
BODY = inspect.CO_OPTIMIZED | inspect.CO_NEWLOCALS  # of a function, not of a module or a class

def is_imported(frame):
    while frame is not None and frame.f_code.co_name != "<module>":
        frame = frame.f_back
    return frame is not None and frame.f_globals["__name__"] != "__main__"

def note(frame, event, _):
    code = frame.f_code
    if event != "call" or not code.co_filename.startswith(SOURCE):
        return
    name = code.co_filename.removeprefix(SOURCE)
    if name not in FILES and code.co_flags & BODY == BODY and not is_imported(frame):
        FILES.add(name)

def end():
    sys.setprofile(None)
    print("FILES", *sorted(FILES), file=sys.stderr)
    sys.stderr.flush()
    os._exit(0)
"""
TO_THE_FIRST_STEP = """
from momentum_rl.__main__ import main

def until_it_acts(frame, event, argument):
    if event == "call" and frame.f_code.co_name == "_step_environments":
        end()
    note(frame, event, argument)

sys.argv = ["movi", "train", "mine:HALF", "--env", "CartPole-v1", "--steps", "1000",
            "--learning-starts", "100", "--out", "run"]
sys.setprofile(until_it_acts)
main()
"""
OF_A_MINIBATCH = """
from mine import HALF
from momentum_rl.replay.uniform import UniformReplay
from momentum_rl.runs.config import Config
from momentum_rl.training.host_loop import HostLearner
from momentum_rl.training.train import train

def watched(cls, name, last=False):
    function = getattr(cls, name)

    def call(*arguments):
        sys.setprofile(note)
        result = function(*arguments)
        sys.setprofile(None)
        if last:
            end()
        return result

    setattr(cls, name, call)

watched(UniformReplay, "sample")
watched(HostLearner, "update", last=True)
train(Config("half", "CartPole-v1", steps=1000, learning_starts=100, checkpoint_every=0),
      algorithm=HALF)
"""


def files(way, directory):
    """The files on a way, in order of their names."""
    (directory / "mine.py").write_text(ALGORITHM)
    result = subprocess.run(
        [sys.executable, "-c", TRACER + way],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(SOURCE.parent), str(directory)])},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("FILES ")]
    return line.split()[1:]


def test_an_own_algorithm_passes_few_files_from_the_command_line_to_its_first_step(tmp_path):
    passed = files(TO_THE_FIRST_STEP, tmp_path)
    assert "training/host_loop.py" in passed
    assert len(passed) <= 35, passed


def test_a_minibatch_passes_few_files_until_parameters_change(tmp_path):
    passed = files(OF_A_MINIBATCH, tmp_path)
    assert {"replay/uniform.py", "agents/learner.py", "core/targets.py"} <= set(passed)
    assert len(passed) <= 9, passed
