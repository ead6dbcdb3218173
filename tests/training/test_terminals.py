"""A run does not depend on where its output goes: to a terminal, a notebook, a file or a pipe."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jax
import pytest

import momentum_rl
from momentum_rl import cli
from momentum_rl.agents.learner import fingerprint
from momentum_rl.agents.registry import known, names
from momentum_rl.runs.config import Config
from momentum_rl.runs.files import read_config, read_metrics
from momentum_rl.spaces import Box, ObservationSpace, Spaces
from momentum_rl.training.build import configured_learner
from momentum_rl.training.train import train
from tests.training.runs import FUSED

pty = pytest.importorskip("pty")

SEEN = ObservationSpace((3,), "float32")
SOURCE = Path(momentum_rl.__file__).parents[1]
PLACES = [SOURCE, SOURCE.parent, *filter(None, [os.environ.get("PYTHONPATH")])]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, PLACES))}


def fingerprints():
    """Those of every algorithm of this package."""
    fingerprints_of = {}
    for name in names():
        acts = Box((-1.0,), (1.0,), (1,), "float32") if known(name).preset == "sac" else 2
        config = Config(name, "own", hidden=(4,), steps=10_000)
        spaces = Spaces(SEEN, acts)
        fingerprints_of[name] = fingerprint(configured_learner(config, spaces).learner, spaces)
    return fingerprints_of


def in_a_terminal(words, **environment):
    """What a program prints to the terminal that it has for its outputs."""
    parent, child = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, *words],
        stdout=child,
        stderr=child,
        env={**ENVIRONMENT, "TERM": "xterm-256color", **environment},
    )
    os.close(child)
    output = b""
    while True:
        try:
            piece = os.read(parent, 4096)
        except OSError:  # nobody writes any more
            break
        output += piece
    os.close(parent)
    assert process.wait(60) == 0, output.decode()
    return output.decode()


def test_every_algorithm_has_the_same_fingerprint_on_a_terminal_and_in_a_file(tmp_path):
    script = (
        "import json, sys, jax; from pathlib import Path\n"
        "from tests.training.test_terminals import fingerprints\n"
        "found = []\n"
        "for colour in (True, False):\n"
        "    jax.config.update('jax_pprint_use_color', colour)\n"
        "    text = str(jax.make_jaxpr(lambda x: x + 1)(1.0))\n"
        "    found.append([chr(27) in text, fingerprints()])\n"
        "Path(sys.argv[1]).write_text(json.dumps(found))\n"
    )
    in_a_terminal(["-c", script, str(tmp_path / "found")])
    results = json.loads((tmp_path / "found").read_text())
    assert [coloured for coloured, _ in results] == [True, False]
    assert "\x1b" not in str(jax.make_jaxpr(lambda x: x + 1)(1.0))
    here = fingerprints()
    assert len(set(here.values())) == len(here) >= 14
    assert results[0][1] == results[1][1] == here


def longer_here(run, whole):
    """A run that ended elsewhere is made longer here, and equals one that was only here."""
    assert cli.main(["resume", str(run), "--steps", "300"]) == 0
    train(read_config(run), whole)
    assert read_metrics(run) == read_metrics(whole)


@pytest.mark.parametrize("colour", ["true", "false"])
def test_a_run_that_began_on_a_terminal_goes_on_in_a_file(colour, tmp_path):
    run = tmp_path / "run"
    config = replace(FUSED.replace(beta_schedule="mean"), steps=150)
    words = ["-m", "momentum_rl", "train", config.algorithm, "--env", config.env, "--out", str(run)]
    for name in ("steps", "learning_starts", "batch_size", "checkpoint_every", "iteration_steps"):
        words += [f"--{name.replace('_', '-')}", str(getattr(config, name))]
    words += ["--beta-schedule", "mean", "--hidden", "8", "--final-episodes", "0"]
    output = in_a_terminal(words, JAX_PPRINT_USE_COLOR=colour)
    assert "finished 150 steps" in output
    longer_here(run, tmp_path / "whole")


def test_a_run_that_began_in_a_notebook_goes_on_outside_of_it(tmp_path):
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed (extra `dev`)")
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed (extra `dev`)")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed (extra `dev`)")
    run, config = tmp_path / "run", replace(FUSED.replace(beta_schedule="mean"), steps=150)
    code = (
        "import jax; from momentum_rl.runs.config import Config\n"
        "from momentum_rl.training.train import train\n"
        f"train(Config.from_json({config.to_json()!r}), {str(run)!r})\n"
        "assert '\\x1b' in str(jax.make_jaxpr(lambda x: x + 1)(1.0))"
    )
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute(env=ENVIRONMENT)
    longer_here(run, tmp_path / "whole")
