"""Arrays of several shapes and dtypes as one: to launch a kernel for each takes longer than to run it."""

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Inexact

from . import tree

Forms = tuple[tuple[tuple[int, ...], Any], ...]
"""Shapes and dtypes; static."""


def packed(arrays: Sequence[Any]) -> Inexact[Array, " n"]:
    """All their entries, in the widest of their dtypes; whole numbers from 2^24 on may be rounded."""
    wide = tree.dtype((arrays, np.float32(0)))
    return jnp.concatenate([jnp.ravel(array).astype(wide) for array in arrays])


def packed_few(numbers: Sequence[Any]) -> Inexact[Array, " n"]:
    """`packed`, entry by entry: GPUs compute the parts of a concatenation one after the other, these at once."""
    wide = tree.dtype((numbers, np.float32(0)))
    entries = [entry for number in numbers for entry in jnp.ravel(number).astype(wide)]
    places, chosen = jnp.arange(len(entries)), jnp.zeros(len(entries), wide)
    for place, entry in enumerate(entries):
        chosen = jnp.where(places == place, entry, chosen)
    return chosen


def forms(arrays: Sequence[Any]) -> Forms:
    """What `unpacked` needs to know."""
    return tuple((jnp.shape(array), jnp.result_type(array)) for array in arrays)


def unpacked(entries: Inexact[Array, " n"], forms: Forms) -> list[Array]:
    """The arrays.

    >>> arrays = [jnp.arange(2), jnp.array(True)]
    >>> [array.tolist() for array in unpacked(packed(arrays), forms(arrays))]
    [[0, 1], True]
    """
    ends = np.cumsum([math.prod(shape) for shape, _ in forms]).tolist()
    return [part.reshape(shape).astype(dtype) for part, (shape, dtype) in zip(jnp.split(entries, ends[:-1]), forms)]
