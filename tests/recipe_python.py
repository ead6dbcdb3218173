"""The Python that the recipes' hosts are installed for: PyTorch and stable-baselines3."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
GIVEN = "MOVI_RECIPES_PYTHON"


def recipe_python():
    """Its path; tests are skipped where it is not set up."""
    own = Path(os.environ.get(GIVEN, ROOT / ".venv-recipes" / "bin" / "python"))
    if not own.exists():
        pytest.skip(f"no PyTorch here: `make recipes` sets up {own}; or {GIVEN} names a Python")
    return own


def run_with_torch(*words, cwd, timeout=900):
    """What a program says that this Python runs, with this repository's package."""
    paths = [str(ROOT / "src"), str(ROOT), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    done = subprocess.run(
        [str(word) for word in (recipe_python(), *words)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
