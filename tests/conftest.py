import os
import tempfile
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.browser import Browser

# Workers share the cores, so that each has one thread of XLA; and most of their time is compiling.
# LLVM's first level takes three quarters of the time, and one piece for that one thread, instead of
# 32, five sixths of what is left. The slow tests and `make test-portable` compile as users do. All
# of it has to be set before JAX starts.
QUICK = "--xla_backend_optimization_level=1 --xla_cpu_parallel_codegen_split_count=1"
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("NPROC", "1")
    os.environ.setdefault("XLA_FLAGS", QUICK)

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


@pytest.fixture(scope="session", autouse=True)
def _compiled_once(tmp_path_factory):
    """Tests that compile the same program compile it once in a session, in whichever worker.

    An entry that is read while the other worker writes it is compiled again.
    """
    import jax

    own = tmp_path_factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    options = {
        "jax_compilation_cache_dir": str(shared / "compiled"),
        "jax_persistent_cache_min_compile_time_secs": 0.0,
        "jax_persistent_cache_min_entry_size_bytes": -1,
    }
    before = {name: getattr(jax.config, name) for name in options}
    for name, value in options.items():
        jax.config.update(name, value)
    yield
    for name, value in before.items():
        jax.config.update(name, value)


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
