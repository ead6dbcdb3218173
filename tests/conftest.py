import os

from hypothesis import HealthCheck, settings

# Workers share the cores, so that each has one thread of XLA; and most of their time is compiling,
# which LLVM's first level does in four fifths of the time. The slow tests compile as users do. Both
# have to be set before JAX starts.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("NPROC", "1")
    os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=1")

settings.register_profile(
    "movi",
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("movi")
