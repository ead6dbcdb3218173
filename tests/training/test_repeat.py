"""A run of the evidence, repeated from its config.json, gives the same bytes."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import momentum_rl
from momentum_rl.plumbing.versions import of_training
from momentum_rl.runs.files import read_config
from paper.evidence import collect

REPOSITORY = Path(__file__).parents[2]
MATRIX = "1-momentum"
RUNS = REPOSITORY / "paper" / "evidence" / "runs" / MATRIX / "runs"
SHORT = {
    "steps": 6_000,
    "iteration_steps": 2_000,
    "evaluate_every": 2_000,
    "periodic_episodes": 3,
    "final_episodes": 3,
    "checkpoint_every": 700,
    "learning_starts": 1_000,
}
FILES = ("metrics.jsonl", "evaluations.jsonl", "evaluation.json", "agent.safetensors")
LONGEST = 1_200
"""Seconds that a run's first iteration may take on a busy machine."""

pytestmark = pytest.mark.slow


def resume(run: Path, source: Path) -> subprocess.Popen:
    """`movi resume` as a user starts it, in a process of its own, from the code in a directory."""
    ours = ("XLA_FLAGS", "NPROC")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
    return subprocess.Popen(
        [sys.executable, "-m", "momentum_rl", "resume", str(run)],
        env={**environment, "PYTHONPATH": str(source), "PYTHONWARNINGS": "ignore"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        cwd=run,
    )


def wait_for_a_row(process: subprocess.Popen, *files: Path) -> None:
    """Until each of the files has a line, or the process has ended."""
    begun = time.monotonic()
    while process.poll() is None and not all(f.exists() and "\n" in f.read_text() for f in files):
        assert time.monotonic() - begun < LONGEST, f"no row after {LONGEST} seconds"
        time.sleep(0.05)


def begin(out: Path, config: str) -> Path:
    """A run directory of which nothing is known but its config."""
    out.mkdir()
    (out / "config.json").write_text(config)
    return out


def finish(run: Path, source: Path) -> None:
    process = resume(run, source)
    _, error = process.communicate(timeout=LONGEST)
    assert process.returncode == 0, error


@pytest.mark.parametrize("algorithm", ["dqn", "momentum-dqn"])
def test_a_shortened_run_gives_the_same_bytes_in_another_process_and_after_a_kill(
    algorithm: str, tmp_path: Path
) -> None:
    committed = read_config(RUNS / "MinAtar-Asterix" / algorithm / "seed-0")
    config = committed.replace(**SHORT).to_json()
    source = Path(momentum_rl.__file__).parents[1]
    one, other = (begin(tmp_path / name, config) for name in ("one", "other"))
    finish(one, source)
    process = resume(other, source)
    wait_for_a_row(process, other / "metrics.jsonl")
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL, "the run ended before it could be killed"
    finish(other, source)
    for name in FILES:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name
    assert len((one / "metrics.jsonl").read_text().splitlines()) == 3


def runs_of_this_processor() -> dict[str, str]:
    """The committed runs of DQN that can come again here to the last bit, and their commits."""
    origins = json.loads((RUNS.parent / collect.ORIGINS).read_text())
    here = {
        run: origin for run, origin in origins.items() if origin["processor"] == collect.processor()
    }
    return {run: origin["commit"] for run, origin in here.items() if "/dqn/" in run}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory):
    """The code at the commit that ran the matrix, in a work tree of its own."""
    if not runs_of_this_processor():
        pytest.skip(f"no committed run was made on a processor such as this, {collect.processor()}")
    (commit,) = {*runs_of_this_processor().values()}
    tree = tmp_path_factory.mktemp("commit") / "tree"
    git = shutil.which("git")
    words = ["worktree", "add", "--detach", str(tree), commit]
    checkout = git and subprocess.run([git, *words], cwd=REPOSITORY, capture_output=True, text=True)
    if not checkout or checkout.returncode != 0:
        pytest.skip(
            f"no work tree of {commit}: {checkout.stderr.strip() if checkout else 'no git'}"
        )
    yield tree / "src"
    words = ["worktree", "remove", "--force", str(tree)]
    subprocess.run([git, *words], cwd=REPOSITORY, capture_output=True, check=True)


@pytest.mark.parametrize("which", [0, -1], ids=["first", "last"])
def test_the_first_rows_of_a_committed_run_come_again_at_its_commit(
    which: int, recorded: Path, tmp_path: Path
) -> None:
    committed = RUNS / [*runs_of_this_processor()][which]
    since = json.loads((committed / "versions.json").read_text())["since"]
    here = {**of_training(), "movi": since[0]["versions"]["movi"]}  # that is the work tree's
    if len(since) > 1 or since[0]["versions"] != here:
        pytest.skip(f"run with {since}, here are {here}")
    run = begin(tmp_path / "run", (committed / "config.json").read_text())
    names = ("metrics.jsonl", "evaluations.jsonl")
    process = resume(run, recorded)
    wait_for_a_row(process, *(run / name for name in names))
    process.send_signal(signal.SIGTERM)
    _, error = process.communicate(timeout=LONGEST)
    for name in names:
        ours, theirs = ((p / name).read_text().splitlines() for p in (run, committed))
        assert ours[:1] == theirs[:1], (name, error)
