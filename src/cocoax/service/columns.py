"""Numbers in JSON as stacked arrays, and those of many requests as one."""

from typing import Any

import jax
import numpy as np

from .errors import Refused

_DEEPEST = 8


def columns(part: Any, count: int, name: str, floats: bool, deeper: int = _DEEPEST) -> Any:
    """Dicts of arrays whose leading axis has `count` entries. `floats`: whole numbers count as floats."""
    if isinstance(part, dict) and deeper:
        return {key: columns(value, count, f"{name}[{key!r}]", floats, deeper - 1) for key, value in part.items()}
    try:
        array = np.asarray(part)
    except ValueError:  # lists of unequal lengths
        array = np.asarray(None)
    if array.dtype.kind not in "fiub" or (array.dtype.kind == "b" and not _all_bool(part)):
        raise Refused(422, f"{name} must be numbers, or lists of them that have the same length")
    if array.ndim == 0 or len(array) != count:
        raise Refused(422, f"{name} must be a list with one entry for each of the {count} names")
    return array.astype(float) if floats and array.dtype.kind in "iu" else array


def _all_bool(part) -> bool:
    return all(map(_all_bool, part)) if isinstance(part, list) else isinstance(part, bool)


def shape_of(tree: Any) -> Any:
    """Equal for trees that can be joined."""
    leaves, structure = jax.tree.flatten(tree)
    return structure, tuple((leaf.shape[1:], leaf.dtype) for leaf in leaves)


def joined(trees: list) -> Any:
    """Trees of one shape, one after another."""
    return trees[0] if len(trees) == 1 else jax.tree.map(lambda *leaves: np.concatenate(leaves), *trees)


def listed(tree: Any, rows: Any) -> Any:
    """These rows (a slice or a number) of a tree of stacked arrays, for JSON."""
    return jax.tree.map(lambda leaf: np.asarray(leaf)[rows].tolist(), tree)
