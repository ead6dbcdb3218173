import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.browser import Browser

# Workers share the cores, so that each has one thread of XLA; and most of their time was compiling.
# Without LLVM's optimisations and with XLA's older emitters of loops that takes a sixth: the newer
# ones start MLIR's passes for each of a program's hundreds of fusions. Unoptimised code multiplies
# and adds in one rounding or in two by accident, so that equal operations of two programs differ;
# processors with AVX and no more have two. The slow tests and the first setting of `make
# test-portable` compile as users do. All of it has to be set before JAX starts.
QUICK = (
    "--xla_backend_optimization_level=0 --xla_cpu_parallel_codegen_split_count=1"
    " --xla_cpu_use_fusion_emitters=false"
)
if platform.machine() in ("x86_64", "AMD64"):
    QUICK += " --xla_cpu_max_isa=AVX"


def known(flags: str) -> bool:
    """Whether this version of XLA knows these flags: one that it does not know ends a process."""
    started = subprocess.run(
        [sys.executable, "-c", "import jax; jax.devices()"],
        env={**os.environ, "XLA_FLAGS": flags},
        stderr=subprocess.DEVNULL,
    )
    return started.returncode == 0


if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("NPROC", "1")
    if "XLA_FLAGS" not in os.environ and known(QUICK):
        os.environ["XLA_FLAGS"] = QUICK

# What several tests compile, or a process that a test kills and starts again, is compiled once in a
# session: workers and processes take this directory over. An entry that one reads while another
# writes it is compiled again.
if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
    COMPILED = tempfile.TemporaryDirectory(prefix="movi-compiled-")  # removed when pytest ends
    os.environ["JAX_COMPILATION_CACHE_DIR"] = COMPILED.name
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"

settings.register_profile(
    "movi",
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("movi")


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.quit()


@pytest.fixture
def browser(chromium: Browser) -> Browser:
    chromium.javascript(True)
    chromium.prefer("light")
    chromium.size(1200, 900)
    return chromium
