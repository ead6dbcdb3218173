"""The wheel, in an environment that has nothing else and sees nothing of the repository."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import momentum_rl

ROOT = Path(__file__).parents[1]
PYTHONS = [sys.executable, "python3.13"]
pytestmark = pytest.mark.slow


def run(*words, cwd, status=0):
    """What a command says; with an environment's variables but none of Python's."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [str(word) for word in words], cwd=cwd, env=env, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == status, done.stderr
    return done.stdout if status == 0 else done.stderr


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The directory of the sdist and of the wheel that is made of it."""
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--outdir", out, ROOT, cwd=out)
    return out


def test_an_sdist_and_a_wheel_are_built_with_the_package_its_assets_and_nothing_else(built):
    files = sorted(file.name for file in built.iterdir())
    version = momentum_rl.__version__
    assert files == [f"momentum_rl-{version}-py3-none-any.whl", f"momentum_rl-{version}.tar.gz"]
    names = zipfile.ZipFile(built / files[0]).namelist()
    assert {name.split("/")[0] for name in names} == {
        "momentum_rl",
        f"momentum_rl-{version}.dist-info",
    }
    package = ROOT / "src" / "momentum_rl"
    source = {f"momentum_rl/{f.relative_to(package)}" for f in package.rglob("*") if f.is_file()}
    assert {name for name in source if "__pycache__" not in name} == {
        name for name in names if name.startswith("momentum_rl/")
    }


def with_wheel(python, directory, wheel):
    """An environment with the wheel, and the way to run its Python and to add an extra."""
    run(python, "-m", "venv", directory / "env", cwd=directory)
    inside = directory / "env" / "bin" / "python"

    def install(extra=""):
        what = f"momentum-rl{extra} @ {wheel.as_uri()}"
        pins = ROOT / "constraints.txt"
        words = ("-m", "pip", "install", "--quiet", "--no-compile", "-c", pins, what)
        run(inside, *words, cwd=directory)

    install()
    return inside, install


@pytest.mark.parametrize("python", PYTHONS, ids=["ours", "newest"])
def test_the_wheel_alone_solves_tables_and_with_agents_trains(built, python, tmp_path):
    if shutil.which(python) is None or subprocess.run([python, "--version"]).returncode:
        pytest.skip(f"no {python} here")
    inside, install = with_wheel(python, tmp_path, next(built.glob("*.whl")))
    command = inside.with_name("movi")

    run(command, "mdp", "garnet", "--states", 30, "--seed", 1, "--out", "g.npz", cwd=tmp_path)
    assert "tolerance 1e-06 reached" in run(command, "solve", "g.npz", cwd=tmp_path)
    assert "tolerance 1e-06 reached" in run(
        command, "solve", "g.npz", "--scheme", "movi", cwd=tmp_path
    )
    script = (
        "import sys, numpy as np, momentum_rl.core.targets as t\n"
        "rows = {'q': np.array([[8.0, 6.0]]), 'h': np.array([[1.0, 2.0]])}\n"
        "print(float(t.MOVI.target('q', rows, 0, 3.0, 0.5, rows)))\n"
        "print(sorted({'flax', 'optax', 'jax', 'gymnasium'} & set(sys.modules)))\n"
    )
    assert run(inside, "-c", script, cwd=tmp_path) == "6.0\n[]\n"  # 3 + 0.5 · 6, without JAX

    train = ("train", "momentum-dqn", "--env", "CartPole-v1", "--steps", 1100, "--out", "run")
    refusal = run(command, *train, cwd=tmp_path, status=2)
    assert refusal == (
        "movi: train needs the extra `agents`: "
        "pip install 'momentum-rl[agents]' (in a clone: '.[agents]')\n"
    )
    assert not (tmp_path / "run").exists()

    install("[agents]")
    assert "finished 1,100 steps" in run(command, *train, cwd=tmp_path)
    assert "episodes            2" in run(command, "evaluate", "run", "--episodes", 2, cwd=tmp_path)
