"""Arrays whose memory JAX's CPU backend can use without a copy."""

import math
from typing import Any

import numpy as np


def aligned(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An uninitialised array at an address that is a multiple of 64."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    memory = np.empty(size + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + size].view(dtype).reshape(shape)


def frozen(array: np.ndarray | None, dtype: Any, *, copy: bool = False) -> np.ndarray | None:
    """The array read-only, aligned and of this dtype; itself only if it may be and is."""
    if array is None:
        return None
    ready = array.dtype == dtype and array.flags.c_contiguous and array.ctypes.data % 64 == 0
    result = array
    if copy or not ready:
        result = aligned(array.shape, dtype)
        result[...] = array
    result.flags.writeable = False
    return result
