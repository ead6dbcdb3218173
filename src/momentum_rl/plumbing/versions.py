"""The versions of what computes a result, to be written beside it."""

import os
import platform
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from momentum_rl.plumbing.sizes import available_cores
from momentum_rl.version import __version__

NUMERIC = ("jax", "jaxlib", "numpy")
TRAINING = (*NUMERIC, "flax", "optax", "gymnasium", "ale-py", "gymnax")


def installed(names: tuple[str, ...]) -> dict[str, str]:
    """The versions of Python and of those of these packages that are there."""
    versions = {"python": platform.python_version()}
    for name in names:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions


def machine() -> dict[str, str]:
    """What decides how numbers round beside the versions: the processor, threads, XLA's flags."""
    names = ("vendor_id", "cpu family", "model")
    file, known = Path("/proc/cpuinfo"), {}
    if file.exists():
        lines = (line.partition(":") for line in file.read_text().split("\n\n")[0].splitlines())
        known = {name.strip(): value.strip() for name, _, value in lines}
    return {
        "processor": " ".join(known.get(name, "") for name in names).strip() or platform.machine(),
        "threads": os.environ.get("NPROC", str(len(available_cores()))),
        "xla_flags": os.environ.get("XLA_FLAGS", ""),
    }


def now() -> str:
    """The time, UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def of_training() -> dict[str, str]:
    """movi and the packages that compute a training run's numbers."""
    return {"movi": __version__, **installed(TRAINING)}
