import os

import jax
import pytest


@pytest.fixture(scope="session", autouse=True)
def _compiled_once(tmp_path_factory):
    """Runs that compile the same program compile it once in a session, in whichever worker.

    An entry that is read while the other worker writes it is compiled again.
    """
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
