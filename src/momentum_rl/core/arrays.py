"""Arrays of JAX, NumPy or PyTorch, for what is written once for them: the targets for all three.

Functions are those of the array API standard, under the names that the three have in common. None
of the libraries is imported before an array of it is seen.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

if TYPE_CHECKING:
    from jax import Array as Array
else:
    Array = Any  # of any of the three

AnyArray = TypeVar("AnyArray", np.ndarray, "Array")
"""NumPy's or JAX's: in one call, all of them one or the other."""


def library(x: Any) -> Any:
    """The functions for an array: ``jax.numpy``, ``numpy``, or PyTorch's by the standard's names.

    >>> library(np.zeros(2)).__name__, library(0.5).__name__
    ('numpy', 'numpy')
    """
    match type(x).__module__.partition(".")[0]:
        case "jax" | "jaxlib":
            return import_module("jax.numpy")
        case "torch":
            return import_module("array_api_compat.torch")
        case _:
            return np


def constant(value: Any, like: Array) -> Array:
    """A number, or a NumPy array, as one of another array's library, type and device."""
    xp = library(like)
    if xp.__name__ == "array_api_compat.torch":
        return xp.asarray(value, dtype=like.dtype, device=like.device)
    return xp.asarray(value, dtype=like.dtype)


def entry(x: Array, a: Any) -> Array:
    """x[a], [...] of [A, ...]; PyTorch's ``vmap`` knows indexing by an array under this name only.

    >>> float(entry(np.array([4.0, 7.0]), 1))
    7.0
    """
    if hasattr(x, "index_select") and hasattr(a, "reshape"):
        return x.index_select(0, a.reshape(1))[0]
    return x[a]


def product(x: Array, y: Array) -> Array:
    """The matrix product, in the precision of its factors: JAX takes less on some devices."""
    xp = library(x)
    if xp.__name__ == "jax.numpy":
        return xp.matmul(x, y, precision="highest")
    return xp.matmul(x, y)
