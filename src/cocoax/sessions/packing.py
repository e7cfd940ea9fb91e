"""PyTrees of arrays as plain bytes."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..core import check

_LARGE = 1 << 20  # bytes


def short(value) -> str:
    """A short description for error messages; never raises."""
    try:
        return check.described(value)
    except Exception:  # objects whose repr fails
        return type(value).__name__


def pack(tree) -> bytes:
    """The bytes of all leaves of a tree of arrays; of typed keys, of their data."""
    return b"".join([_bytes_of(np.asarray(_plain(leaf))) for leaf in jax.tree.leaves(tree)])


def _bytes_of(array: np.ndarray) -> Any:
    """Its bytes; a large array is not copied."""
    return array.tobytes() if array.nbytes < _LARGE else np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def unpack_like(tree, data: bytes) -> Any:
    """The inverse of `pack`, for a tree with the same structure, shapes and dtypes as `tree`."""
    leaves, structure = jax.tree.flatten(tree)
    plain = [_plain(leaf) for leaf in leaves]
    arrays = _split(data, [(leaf.dtype, leaf.shape) for leaf in plain])

    def restored(like, array):
        if _is_key(like):
            return jax.random.wrap_key_data(jnp.asarray(array), impl=jax.random.key_impl(like))
        return array.copy() if isinstance(like, np.ndarray) else jnp.asarray(array)

    return jax.tree.unflatten(structure, [restored(*pair) for pair in zip(leaves, arrays)])


def size_like(tree) -> int:
    """How many bytes `pack` gives."""
    return sum(_plain(leaf).nbytes for leaf in jax.tree.leaves(tree))


def outline(tree) -> list:
    """dtype and shape of each leaf, as JSON."""
    return [[str(leaf.dtype), list(leaf.shape)] for leaf in jax.tree.leaves(tree)]


def _split(data, kinds):
    arrays, at = [], 0
    for dtype, shape in kinds:
        count = math.prod(shape)
        arrays.append(np.frombuffer(data, dtype, count, at).reshape(shape))
        at += count * dtype.itemsize
    if at != len(data):
        raise ValueError("the bytes do not fit the tree")
    return arrays


def _is_key(leaf):
    return not isinstance(leaf, np.ndarray) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _plain(leaf):
    return jax.random.key_data(leaf) if _is_key(leaf) else leaf


def pack_rows(tree, count: int) -> np.ndarray:
    """The bytes of each of `count` rows of a tree of arrays with a leading axis."""
    leaves = [np.ascontiguousarray(leaf).reshape(count, -1).view(np.uint8) for leaf in jax.tree.leaves(tree)]
    return np.concatenate(leaves, axis=1) if leaves else np.zeros((count, 0), np.uint8)


def unstack_like(tree, data: bytes, count: int) -> Any:
    """The inverse of `pack_rows`, for rows like this tree: arrays with a leading axis."""
    table, at, leaves = np.frombuffer(data, np.uint8).reshape(count, -1), 0, []
    for leaf in jax.tree.leaves(tree):
        part = np.ascontiguousarray(table[:, at : at + leaf.nbytes])
        leaves.append(part.view(leaf.dtype).reshape(count, *leaf.shape))
        at += leaf.nbytes
    return jax.tree.unflatten(jax.tree.structure(tree), leaves)


def nothing(shape, dtype) -> np.ndarray:
    """Zeros that take no memory."""
    return np.broadcast_to(np.zeros((), dtype), shape)
