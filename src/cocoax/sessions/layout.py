"""Trees of arrays as rows of 32-bit words: the bits of every array, one after another."""

import itertools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .step import words

_NARROW = {1: np.uint8, 2: np.uint16}  # words of smaller types, by bytes


class Layout(NamedTuple):
    """Where in a row each array of a tree is."""

    structure: Any
    kinds: tuple[tuple[tuple[int, ...], Any, Any], ...]  # shape, dtype, and of keys their kind

    @classmethod
    def of(cls, tree: Any) -> "Layout":
        leaves, structure = jax.tree.flatten(tree)
        data = [jax.eval_shape(_data, leaf) for leaf in leaves]
        impls = [jax.random.key_impl(leaf) if _is_key(leaf) else None for leaf in leaves]
        return cls(structure, tuple((one.shape, one.dtype, impl) for one, impl in zip(data, impls)))

    @property
    def size(self) -> int:
        """Words."""
        return self._cuts()[-1]

    def _cuts(self) -> list[int]:
        sizes = [math.prod(shape) * max(1, dtype.itemsize // 4) for shape, dtype, _ in self.kinds]
        return [0, *itertools.accumulate(sizes)]

    def unpack(self, row: Any) -> list:
        """The leaves of one row, in JAX."""
        cuts = self._cuts()
        return [_leaf(row[a:b], *kind) for a, b, kind in zip(cuts, cuts[1:], self.kinds)]

    def columns(self, rows: np.ndarray) -> Any:
        """The tree of many rows, in NumPy, each array with a leading axis."""
        cuts, columns = self._cuts(), []
        for a, b, (shape, dtype, _) in zip(cuts, cuts[1:], self.kinds):
            part = np.ascontiguousarray(rows[:, a:b])
            columns.append(_viewed(part, dtype).reshape(len(rows), *shape))
        return jax.tree.unflatten(self.structure, columns)


def _leaf(part, shape, dtype, impl):
    if jnp.issubdtype(dtype, jnp.bool_):
        array = part.astype(bool).reshape(shape)
    elif dtype.itemsize < 4:
        array = jax.lax.bitcast_convert_type(part.astype(_NARROW[dtype.itemsize]), dtype).reshape(shape)
    else:
        wide = (dtype.itemsize // 4,) if dtype.itemsize > 4 else ()
        array = jax.lax.bitcast_convert_type(part.reshape(*shape, *wide), dtype)
    return array if impl is None else jax.random.wrap_key_data(array, impl=impl)


def _viewed(part: np.ndarray, dtype) -> np.ndarray:
    if np.issubdtype(dtype, np.bool_):
        return part.astype(bool)
    return (part if dtype.itemsize >= 4 else part.astype(_NARROW[dtype.itemsize])).view(dtype)


def words_of(tree: Any) -> jax.Array:
    """The bits of all arrays of a tree."""
    return jnp.concatenate([words(leaf) for leaf in jax.tree.leaves(tree)])


def _is_key(leaf):
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _data(leaf):
    return jax.random.key_data(leaf) if _is_key(leaf) else jnp.asarray(leaf)
