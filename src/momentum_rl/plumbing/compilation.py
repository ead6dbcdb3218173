"""How functions are compiled: once for equal parts, and with which operations left to XLA.

XLA hands every operation that its CPU library (YNNPACK) knows to that library unless told
otherwise, which is slower than XLA's own code at some: sums over gathered tables, and the sums in a
convolution's gradient.
"""

import functools
from collections.abc import Callable
from typing import Any, Literal, TypeVar

import jax

Made = TypeVar("Made")
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


def shared(make: Callable[..., Made]) -> Callable[..., Made]:
    """A factory of compiled functions that gives equal parts the same ones again.

    Runs of one process that differ in their seeds alone are then traced and compiled once. Parts
    that cannot be hashed, such as a module of the user's that holds a list, are compiled each time.

    >>> doubled = shared(lambda n: jax.jit(lambda x: n * x))
    >>> doubled(2) is doubled(2), doubled(2) is doubled(3)
    (True, False)
    """
    remembered = functools.lru_cache(maxsize=32)(make)

    @functools.wraps(make)
    def make_or_remember(*parts: Any) -> Made:
        try:
            hash(parts)
        except TypeError:
            return make(*parts)
        return remembered(*parts)

    return make_or_remember
