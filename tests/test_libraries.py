"""Every target is the same number on arrays of JAX, NumPy and PyTorch."""

import subprocess
import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import library_cases
from tests.library_cases import ARGUMENTS, EVERY, N, rows_of, target
from tests.recipe_python import run_with_torch


def named(case):
    return case if isinstance(case, str) else case.name


def at(i, tree):
    return jax.tree.map(lambda x: x[i], tree)


def by_numpy(algorithm, name):
    """One transition after the other."""
    here, there = rows_of(algorithm, 1), rows_of(algorithm, 2)
    each = [target(algorithm, name, at(i, here), *at(i, ARGUMENTS), at(i, there)) for i in range(N)]
    assert all(isinstance(y, np.ndarray | np.floating) for y in each)
    return np.stack(each)


@pytest.mark.parametrize(("algorithm", "name"), EVERY, ids=named)
def test_a_target_is_the_same_number_in_numpy_and_in_jax(algorithm, name):
    with jax.enable_x64(True):
        here, there = jax.tree.map(jnp.asarray, (rows_of(algorithm, 1), rows_of(algorithm, 2)))
        mapped = jax.vmap(partial(target, algorithm, name))
        y = mapped(here, *map(jnp.asarray, ARGUMENTS), there)
        assert isinstance(y, jax.Array)
        np.testing.assert_allclose(by_numpy(algorithm, name), y, rtol=1e-13, atol=1e-13)


def test_float32_stays_float32_in_numpy():
    for algorithm, name in EVERY:
        rows = at(0, rows_of(algorithm, 1)), at(0, rows_of(algorithm, 2))
        here, there = jax.tree.map(np.float32, rows)
        y = target(algorithm, name, here, 1, np.float32(0.5), 0.9, there)
        assert y.dtype == np.float32, (algorithm.name, name)


def test_the_targets_and_their_family_import_no_jax():
    script = (
        "import sys, momentum_rl.core.targets, momentum_rl.core.family, numpy as np\n"
        "rows = {'q': np.array([[8.0, 6.0]]), 'h': np.array([[1.0, 2.0]])}\n"
        "y = momentum_rl.core.targets.MOVI.target('h', rows, 0, 3.0, 0.5, rows, 0.75)\n"
        "print(float(y), 'jax' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "2.25 False\n"  # 0.75 · 1 + 0.25 · (3 + 0.5 · 6)


@pytest.mark.slow
def test_a_target_is_the_same_number_in_numpy_and_in_pytorch(tmp_path):
    run_with_torch(library_cases.__file__, tmp_path / "torch.npz", cwd=tmp_path)
    found = dict(np.load(tmp_path / "torch.npz"))
    assert len(found) == len(EVERY)
    for algorithm, name in EVERY:
        there = found[f"{algorithm.name}-{name}"]
        np.testing.assert_allclose(there, by_numpy(algorithm, name), rtol=1e-13, atol=1e-13)
