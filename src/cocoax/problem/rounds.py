"""Checks of users' rounds: one PyTree whose leaves share a leading axis."""

import numbers

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import SequenceKey, keystr, tree_leaves_with_path

from ..core import check
from ..errors import ProblemError


def number_of_rounds(rounds) -> int:
    """T, the length of the leading axis that all leaves share."""
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
    if isinstance(rounds, type):
        raise ProblemError(f"{rounds.__name__} is a class; give rounds, or write {rounds.__name__}(...)")
    if hasattr(rounds, "emit"):
        raise ProblemError(
            f"{type(rounds).__name__} has emit, but is no Environment; derive it from cocoax.Environment"
        )
    if isinstance(rounds, list) and rounds and all(isinstance(round, dict) for round in rounds):
        raise ProblemError(
            f"rounds are a list of {len(rounds)} dicts; stack them: jax.tree.map(lambda *a: jnp.stack(a), *rounds)"
        )
    for path, leaf in tree_leaves_with_path(rounds):
        if isinstance(leaf, numbers.Number) and path and isinstance(path[-1], SequenceKey):
            where = keystr(path[: _first_list(path)])
            raise ProblemError(f"rounds{where} is a list of numbers; give an array: jnp.asarray(...)")
        dtype = getattr(leaf, "dtype", None) or np.asarray(leaf).dtype
        if not (check.is_numeric(dtype) or jnp.issubdtype(dtype, jax.dtypes.prng_key)):
            what = f"dtype {dtype}" if hasattr(leaf, "dtype") else check.described(leaf)
            raise ProblemError(f"rounds{keystr(path)} must be an array of numbers, got {what}")


def _first_list(path):
    return next(i for i, key in enumerate(path) if isinstance(key, SequenceKey))
