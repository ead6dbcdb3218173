"""Trees of arrays as flat dictionaries of NumPy arrays, for files."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from momentum_rl.errors import UserError


def arrays_of(tree: Any, prefix: str) -> dict[str, np.ndarray]:
    """A copy of every leaf, by the prefix and its path in the tree.

    >>> sorted(arrays_of({"a": np.ones(2), "b": (np.zeros(3), 1.0)}, "x"))
    ["x['a']", "x['b'][0]", "x['b'][1]"]
    """
    leaves = jax.tree_util.tree_flatten_with_path(tree)[0]
    return {prefix + jax.tree_util.keystr(path): _plain(leaf) for path, leaf in leaves}


def tree_of(template: Any, arrays: Mapping[str, np.ndarray], prefix: str) -> Any:
    """The tree of these arrays, of the template's structure, shapes and dtypes; or a clear line."""
    leaves, structure = jax.tree_util.tree_flatten_with_path(template)
    names = [prefix + jax.tree_util.keystr(path) for path, _ in leaves]
    known = {name for name in arrays if name.startswith(prefix)}
    if known != set(names):
        wrong = sorted(known ^ set(names))[0]
        raise UserError(f"{wrong}: {'not expected here' if wrong in known else 'missing'}")
    return jax.tree_util.tree_unflatten(
        structure, [_like(leaf, arrays[name], name) for (_, leaf), name in zip(leaves, names)]
    )


def _is_key(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _plain(leaf: Any) -> np.ndarray:
    """A leaf as a NumPy array of a dtype that files know: others (bfloat16) as their bytes."""
    array = np.array(jax.random.key_data(leaf) if _is_key(leaf) else leaf)
    return array[..., None].view(np.uint8) if array.dtype.kind == "V" else array


def _like(leaf: Any, array: np.ndarray, name: str) -> Any:
    expected = _plain(leaf)
    if (array.shape, array.dtype) != (expected.shape, expected.dtype):
        raise UserError(
            f"{name}: {array.dtype}{list(array.shape)}, "
            f"expected {expected.dtype}{list(expected.shape)}"
        )
    if _is_key(leaf):
        return jax.random.wrap_key_data(jnp.asarray(array), impl=jax.random.key_impl(leaf))
    dtype = np.asarray(leaf).dtype
    return jnp.asarray(array.view(dtype)[..., 0] if dtype.kind == "V" else array)
