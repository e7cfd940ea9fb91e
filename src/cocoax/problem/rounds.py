"""Users' rounds as one PyTree of arrays with a common leading axis, converted from frames, columns and lists.

Frames are recognised by their attributes (`columns`, `to_numpy`), so that neither pandas nor polars is imported.
"""

import numbers
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import SequenceKey, keystr, tree_leaves_with_path, tree_map_with_path

from ..core import check
from ..errors import ProblemError


def as_rounds(rounds: Any) -> Any:
    """The rounds, with frames, their columns, and lists of numbers converted to arrays; anything else unchanged.

    A frame of pandas or polars becomes a dict of its columns. A column of arrays, or of lists of one length, becomes
    one array with a leading axis of rounds.

    >>> as_rounds({"cost": [[1, 2], [3, 4]], "used": [True, False]})["cost"].shape
    (2, 2)
    """
    return _converted(rounds, "rounds")


def _converted(node, name):
    """`as_rounds` for a part of the rounds; errors call it `name`."""

    def convert(path, leaf):
        """The part of the rounds at this path, converted to an array, or to a dict of columns if it is a frame."""
        where = name + keystr(path)
        if isinstance(leaf, list):
            is_table = any(isinstance(one, dict) for one in leaf)  # a round a dict, which is refused below
            if leaf and not is_table and all(isinstance(inner, numbers.Number) for inner in jax.tree.leaves(leaf)):
                return _listed(leaf)
            return [_converted(one, f"{where}[{i}]") for i, one in enumerate(leaf)]
        if isinstance(leaf, np.ndarray | jax.Array | type):
            return _fitting(leaf, where)
        if hasattr(leaf, "collect_schema") and hasattr(leaf, "collect"):
            raise ProblemError(f"{where} is a {type(leaf).__name__}, which is not computed yet; give its .collect()")
        if hasattr(leaf, "columns") and hasattr(leaf, "to_numpy"):
            return {column: _column(leaf[column], f"{where}[{column!r}]") for column in leaf.columns}
        return _column(leaf, where) if hasattr(leaf, "to_numpy") else leaf

    return tree_map_with_path(convert, node, is_leaf=lambda node: isinstance(node, list))


def _listed(values: list) -> np.ndarray | list:
    """A list of numbers as an array of booleans or floats; lists of unequal lengths are returned as they are."""
    try:
        array = np.asarray(values)
    except ValueError:  # unequal lengths
        return values
    return array if array.dtype == bool else array.astype(float)


def _column(column, name) -> Any:
    """A column of a frame as an array; errors call it `name`."""
    array = column.to_numpy()
    if array.ndim == 2 and hasattr(column, "columns"):
        raise ProblemError(f"{name} stands for several columns of one name; rename them")
    return _stacked(array, name) if array.dtype == object else _fitting(array, name)


def signed(dtype: Any) -> Any:
    """int32 for uint8 and uint16, whose negatives and differences would wrap silently; other dtypes as they are.

    Random keys are stored as uint32, which is therefore not converted.
    """
    return np.dtype(np.int32) if dtype in (np.uint8, np.uint16) else dtype


def _fitting(array, name):
    """The array; raises `ProblemError` if JAX would change its integers.

    Without `jax_enable_x64`, JAX takes 64-bit integers modulo 2^32.
    """
    if isinstance(array, np.ndarray | jax.Array) and signed(array.dtype) != array.dtype:
        return array.astype(signed(array.dtype))
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "iu" or not array.size:
        return array
    kept = np.iinfo(jax.dtypes.canonicalize_dtype(array.dtype))
    most = array.max() if array.max() > kept.max else array.min()
    if kept.min <= most <= kept.max:
        return array
    raise ProblemError(f"{name} has {most}, which does not fit into {kept.dtype}; give floats: .astype(float)")


def _stacked(values, name) -> np.ndarray:
    """An object array of arrays or lists, all of one shape, as one numeric array."""
    parts = [np.asarray(value) for value in values]
    parts = [_stacked(part, name) if part.dtype == object and part.ndim else part for part in parts]
    missing = [t for t, (value, part) in enumerate(zip(values, parts)) if part.dtype == object]
    if missing:
        what = check.described(values[missing[0]])
        raise ProblemError(f"{name} has no number in row {missing[0]}, but {what}; fill it, or drop the row or column")
    shapes = {part.shape: None for part in parts}
    if len(shapes) > 1:
        found = " and ".join(str(shape) for shape in list(shapes)[:2])
        raise ProblemError(f"{name} has entries of several shapes, such as {found}; fill them up to one shape")
    return np.stack(parts) if parts else np.zeros(0)  # no rounds: the caller says so


def number_of_rounds(rounds) -> int:
    """T, the common length of all leaves' leading axis."""
    _check_kind(rounds)
    leaves = jax.tree.leaves(rounds)
    if not leaves:
        raise ProblemError("rounds must hold at least one array with a leading axis of rounds")
    lengths = {jnp.shape(leaf)[0] if jnp.ndim(leaf) else None for leaf in leaves}
    if len(lengths) > 1 or None in lengths:
        shapes = ", ".join(sorted({str(jnp.shape(leaf)) for leaf in leaves}))
        raise ProblemError(f"rounds must all have one leading axis of rounds, got shapes {shapes}")
    if lengths == {0}:
        raise ProblemError("rounds hold no round; give at least one")
    return jnp.shape(leaves[0])[0]


def _check_kind(rounds):
    """Raise `ProblemError` if `rounds` is a class, a list of dicts, or holds something that is not numbers."""
    if isinstance(rounds, type):
        raise ProblemError(f"{rounds.__name__} is a class; give rounds, or write {rounds.__name__}(...)")
    if hasattr(rounds, "emit"):
        raise ProblemError(
            f"{type(rounds).__name__} has emit, but is no Environment; derive it from cocoax.Environment"
        )
    if isinstance(rounds, list) and rounds and all(isinstance(round, dict) for round in rounds):
        raise ProblemError(
            f"rounds are a list of {len(rounds)} dicts; stack them: "
            "{name: jnp.asarray([r[name] for r in rounds]) for name in rounds[0]}"
        )
    for path, leaf in tree_leaves_with_path(rounds):
        if isinstance(leaf, numbers.Number) and path and isinstance(path[-1], SequenceKey):
            where = keystr(path[: _first_list(path)])
            raise ProblemError(f"rounds{where} is a list of numbers; give an array: jnp.asarray(...)")
        dtype = getattr(leaf, "dtype", None) or np.asarray(leaf).dtype
        if not (check.is_numeric(dtype) or jnp.issubdtype(dtype, jax.dtypes.prng_key)):
            what = f"dtype {dtype}" if hasattr(leaf, "dtype") else check.described(leaf)
            hint = "; leave it out, or make numbers of it" if path else ""
            raise ProblemError(f"rounds{keystr(path)} must be an array of numbers, got {what}{hint}")


def _first_list(path):
    return next(i for i, key in enumerate(path) if isinstance(key, SequenceKey))


def entry_not_finite(round: Any, name: str = "round") -> str | None:
    """The first entry of a round that is NaN or infinite, as text; None if all are finite.

    >>> entry_not_finite({"cost": np.array([1.0, 2.0, np.nan])})
    "round['cost'][2] is nan"
    """
    for path, leaf in tree_leaves_with_path(round):
        if jnp.issubdtype(np.asarray(leaf).dtype if np.isscalar(leaf) else leaf.dtype, jnp.inexact):
            bad = np.argwhere(~np.isfinite(np.asarray(leaf)))
            if len(bad):
                index = tuple(bad[0].tolist())
                place = f"[{', '.join(map(str, index))}]" if index else ""
                return f"{name}{keystr(path)}{place} is {np.asarray(leaf)[index]}"
    return None
