import os

from hypothesis import HealthCheck, settings

# Workers share the cores: one thread of XLA for each, before JAX starts.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("NPROC", "1")

settings.register_profile(
    "movi",
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("movi")
