"""The type of arrays that are NumPy's or JAX's: in one call, all of them one or the other."""

from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    import jax

AnyArray = TypeVar("AnyArray", np.ndarray, "jax.Array")
