"""The core without the deep stack: tables are solved, and what trains is refused in one line."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import momentum_rl
from momentum_rl.errors import AGENTS

ROOT = Path(__file__).parents[1]
# As in an environment without the extra `agents`, in this process and in those that it starts.
WITHOUT = f"""
import sys
class Without:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {set(AGENTS) | {"orbax", "tensorstore"}!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Without())
"""


@pytest.fixture(scope="module")
def core(tmp_path_factory):
    """Runs Python with these arguments where the deep stack is not."""
    hidden = tmp_path_factory.mktemp("without")
    (hidden / "sitecustomize.py").write_text(WITHOUT)
    paths = os.pathsep.join([str(hidden), str(Path(momentum_rl.__file__).parents[1])])

    def run(*arguments, cwd):
        return subprocess.run(
            [sys.executable, "-P", *arguments],
            cwd=cwd,
            env={**os.environ, "PYTHONPATH": paths},
            capture_output=True,
            text=True,
            timeout=120,
        )

    return run


def test_tables_are_made_and_solved(core, tmp_path):
    for words in (
        "mdp garnet --states 20 --seed 0 --out garnet.npz",
        "solve garnet.npz --scheme movi --out solution.npz",
        "--help",
        "train momentum-dqn --help",
    ):
        done = core("-m", "momentum_rl", *words.split(), cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, ""), words
    assert (tmp_path / "solution.npz").exists()


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ("train dqn --env CartPole-v1 --out run", "train"),
        ("evaluate nothing", "evaluate"),
        (f"sweep {ROOT / 'examples' / 'cartpole.toml'} --out out", "sweep"),
    ],
)
def test_what_trains_or_plays_is_refused_in_one_line_and_writes_nothing(
    core, tmp_path, words, what
):
    done = core("-m", "momentum_rl", *words.split(), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"movi: {what} needs the extra `agents`: "
        "pip install 'momentum-rl[agents]' (in a clone: '.[agents]')\n"
    )
    assert not list(tmp_path.iterdir())


def test_from_python_too(core, tmp_path):
    script = "import momentum_rl; momentum_rl.Config('dqn', 'CartPole-v1'); momentum_rl.train"
    done = core("-c", script, cwd=tmp_path)
    assert done.stderr.splitlines()[-1] == (
        "momentum_rl.errors.MissingExtra: momentum_rl.train needs the extra `agents`: "
        "pip install 'momentum-rl[agents]' (in a clone: '.[agents]')"
    )
