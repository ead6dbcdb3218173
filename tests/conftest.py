import os

from hypothesis import HealthCheck, settings

# Workers share the cores, so that each has one thread of XLA; and most of their time is compiling.
# LLVM's first level takes three quarters of the time, and one piece for that one thread, instead of
# 32, five sixths of what is left. The slow tests and `make test-portable` compile as users do. All
# of it has to be set before JAX starts.
QUICK = "--xla_backend_optimization_level=1 --xla_cpu_parallel_codegen_split_count=1"
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("NPROC", "1")
    os.environ.setdefault("XLA_FLAGS", QUICK)

settings.register_profile(
    "movi",
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("movi")
