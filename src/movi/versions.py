"""The versions of what computes a result, to be written beside it."""

import platform
from importlib.metadata import PackageNotFoundError, version

from movi.version import __version__

NUMERIC = ("jax", "jaxlib", "numpy")
TRAINING = (*NUMERIC, "flax", "optax", "gymnasium", "ale-py", "gymnax")


def installed(names: tuple[str, ...]) -> dict[str, str]:
    """The versions of Python and of those of these packages that are there."""
    found = {"python": platform.python_version()}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def of_training() -> dict[str, str]:
    """movi and the packages that compute a training run's numbers."""
    return {"movi": __version__, **installed(TRAINING)}
