"""Which operations XLA hands to its CPU library, chosen for each compiled function.

The library (YNNPACK) is on for every operation it knows unless told otherwise, and is slower than
XLA's own code at some: sums over gathered tables, and the sums in a convolution's gradient.
"""

import functools
from typing import Literal

import jax

Given = Literal["nothing", "products"]
_VALUES = {"nothing": "", "products": "LIBRARY_FUSION_TYPE_DOT"}


@functools.cache
def library_takes(given: Given) -> dict[str, str] | None:
    """``compiler_options`` for ``jax.jit``; None where there is nothing to choose."""
    if jax.default_backend() != "cpu":
        return None
    option = {"xla_cpu_experimental_ynn_fusion_type": _VALUES[given]}
    try:  # an experimental option of XLA: later versions may not know it
        jax.jit(lambda x: x + 1, compiler_options=option)(0).block_until_ready()
    except (jax.errors.JaxRuntimeError, ValueError):
        return None
    return option
