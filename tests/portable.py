"""The numeric tests as other processors would run them: `make test-portable`.

    python -m tests.portable [--workers N] [--only NAME ...]

OpenBLAS, NumPy and XLA choose their code by the processor, and round differently with it. Each can
be told to take that of an older one. For every setting this says what was taken (a library may not
have what it was asked for), computes some tables, which have to agree with those of the first
setting to rounding, and runs the tests whose results pass through floating-point numbers.

Fingerprints show as well what was taken: checksums of the bits of a product (BLAS), of the solution
of a linear system (LAPACK), of a sum of exponentials (NumPy), and of a product and a scaled sum in
XLA. Where they differ, other code has computed them.
"""

import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
NUMERIC = (
    "tests/test_targets.py",
    "tests/test_values.py",
    "tests/test_momentum.py",
    "tests/mdp/test_exact.py",
    "tests/mdp/test_slow_mixing.py",
    "tests/planning",
    "tests/agents",
    "tests/replay",
    "tests/training/test_host_learner.py",
    "tests/training/test_host_loop.py",
    "tests/training/test_fused_loop.py",
    "tests/training/test_resume.py",
)
LEFT_OUT = ("tests/planning/test_bounds.py",)
"""Inequalities with room, on a thousand runs: a minute that no processor decides."""
ROUNDING = 1e-12
"""How far tables of two settings may be apart, relative to their largest entry."""


# As users do it, compiling takes three quarters of the time. One setting has it; the others have
# LLVM's first level, which chooses instructions and vectors by the processor too, and XLA's older
# emitters of loops: half the time, and one more way of rounding that tests have to stand.
SHORTER = (
    "--xla_backend_optimization_level=1 --xla_cpu_parallel_codegen_split_count=1"
    " --xla_cpu_use_fusion_emitters=false"
)


class Setting(NamedTuple):
    """What the libraries are told; what is empty is left to them."""

    openblas: str = ""
    numpy_without: str = ""
    xla: str = ""
    threads: int = 2

    @property
    def environment(self) -> dict[str, str]:
        """The variables that say so."""
        told = {
            "OPENBLAS_CORETYPE": self.openblas,
            "NPY_DISABLE_CPU_FEATURES": self.numpy_without,
        }
        return {
            **{name: value for name, value in told.items() if value},
            "XLA_FLAGS": self.xla,
            "NPROC": str(self.threads),
            "OPENBLAS_NUM_THREADS": str(self.threads),
        }


def at_most(isa: str) -> str:
    """What tells XLA to use these instructions and older ones."""
    return f"{SHORTER} --xla_cpu_max_isa={isa}"


SETTINGS = {
    "this machine": Setting(),
    "one thread": Setting(xla=SHORTER, threads=1),
    "AVX2": Setting("Haswell", "X86_V4 AVX512_ICL AVX512_SPR", at_most("AVX2")),
    "AVX": Setting("Sandybridge", "X86_V3 X86_V4 AVX512_ICL AVX512_SPR", at_most("AVX"), threads=1),
    "SSE": Setting("Prescott", "X86_V3 X86_V4 AVX512_ICL AVX512_SPR", at_most("SSE4_2")),
}


# In a process of each setting --------------------------------------------------------------------


def probe(file: Path) -> None:
    """Prints what was taken as JSON, and writes the tables."""
    import jax

    np.savez(file, **tables())
    print(json.dumps({"taken": taken(), "fingerprints": fingerprints(), "jax": jax.__version__}))


def taken() -> dict[str, Any]:
    """What the libraries say that they use."""
    import jax
    import scipy
    from numpy._core import _multiarray_umath as core

    found = [name for name in core.__cpu_dispatch__ if core.__cpu_features__[name]]
    return {
        "OpenBLAS of NumPy": openblas(np),
        "OpenBLAS of SciPy": openblas(scipy),
        "NumPy": " ".join([*core.__cpu_baseline__, *found]),
        "XLA": os.environ["XLA_FLAGS"] or jax.devices()[0].device_kind,
    }


def openblas(package: Any) -> str:
    """The core that the OpenBLAS in a package's wheel runs as, and its threads."""
    folder = Path(package.__file__).parents[1] / f"{package.__name__}.libs"
    for file in folder.glob("*openblas*"):
        library = ctypes.CDLL(str(file))
        for suffix in ("64_", ""):
            name = getattr(library, f"scipy_openblas_get_corename{suffix}", None)
            if name is not None:
                name.restype = ctypes.c_char_p
                threads = getattr(library, f"scipy_openblas_get_num_threads{suffix}")()
                return f"{name().decode()}, {threads} thread{'s' if threads > 1 else ''}"
    return "not found"


def fingerprints() -> dict[str, str]:
    """Checksums of results of each library."""
    import jax
    import jax.numpy as jnp

    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 60, 60))
    single = jnp.asarray(x, jnp.float32)
    results = {
        "BLAS": x @ y,
        "LAPACK": np.linalg.solve(x, y),
        "NumPy": np.exp(x).sum(1),
        "XLA's product": jax.jit(jnp.matmul)(single, single),
        "XLA's sum": jax.jit(lambda a: jnp.sum(a * 1.1 + 0.3, 1))(single),
    }
    return {name: f"{zlib.crc32(np.asarray(r).tobytes()):08x}" for name, r in results.items()}


def tables() -> dict[str, np.ndarray]:
    """Results of every exact function and of the paper's comparison, small."""
    import momentum_rl

    mdps, large = momentum_rl.garnet(count=4, seed=1), momentum_rl.garnet(1_500, seed=2)
    best = momentum_rl.optimum(mdps)
    compared = momentum_rl.compare_schemes(mdps, iterations=300, seed=3)
    return {
        "q*": best.q,
        "q* of a large one": momentum_rl.optimum(large).q,
        "q of a policy": momentum_rl.policy_values(mdps[0], best.policy[1]),
        "q of a policy of a large one": momentum_rl.policy_values(large, np.arange(1_500) % 4),
        "MoVI": momentum_rl.solve(mdps[0], "movi", tolerance=1e-4).q,
        "sampled MoVI": momentum_rl.solve(mdps[0], "movi", sampled=True, iterations=300).q,
        "the comparison": compared.l1,
    }


# From outside ------------------------------------------------------------------------------------


def describe(name: str, setting: Setting, folder: Path) -> dict[str, np.ndarray]:
    """Says what a setting takes; its tables."""
    file = folder / f"{name}.npz"
    words = [sys.executable, "-m", "tests.portable", "--probe", str(file)]
    environment = {**os.environ, **setting.environment}
    done = subprocess.run(words, cwd=ROOT, env=environment, stdout=subprocess.PIPE, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    told = " ".join(f"{key}={value!r}" for key, value in setting.environment.items())
    print(f"\n== {name}: {told}", flush=True)
    for part in ("taken", "fingerprints"):
        print(f"{part}: " + "; ".join(f"{k} {v}" for k, v in found[part].items()), flush=True)
    with np.load(file, allow_pickle=False) as arrays:
        return dict(arrays)


def apart(these: dict[str, np.ndarray], those: dict[str, np.ndarray]) -> dict[str, float]:
    """By table, the largest difference relative to the largest entry."""
    return {
        name: float(np.abs(table - those[name]).max() / np.abs(table).max())
        for name, table in these.items()
    }


def tested(setting: Setting, workers: int) -> bool:
    """Whether the numeric tests pass."""
    words = [sys.executable, "-m", "pytest", "-n", str(workers), "--dist", "worksteal"]
    words += ["-m", "not slow", *NUMERIC, *(f"--ignore={file}" for file in LEFT_OUT)]
    environment = {**os.environ, **setting.environment}
    return subprocess.run(words, cwd=ROOT, env=environment).returncode == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", nargs="+", choices=SETTINGS, default=list(SETTINGS))
    parser.add_argument("--probe", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.probe:
        probe(options.probe)
        return
    failed = []
    with tempfile.TemporaryDirectory() as scratch:
        first: dict[str, np.ndarray] = {}
        for name in options.only:
            start = time.monotonic()
            found = describe(name, SETTINGS[name], Path(scratch))
            first = first or found
            differences = apart(first, found)
            worst = max(differences, key=differences.__getitem__)
            print(f"tables: within {differences[worst]:.1e} of the first setting's ({worst})")
            if differences[worst] > ROUNDING:
                failed.append(f"{name}: {worst} differs by {differences[worst]:.1e}")
            if not tested(SETTINGS[name], options.workers):
                failed.append(f"{name}: tests failed")
            print(f"{name}: {time.monotonic() - start:.0f} s", flush=True)
    sys.exit("\n".join(failed) or None)  # an empty text would be status 1


if __name__ == "__main__":
    main()
