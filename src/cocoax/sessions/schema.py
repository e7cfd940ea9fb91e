"""The schema of a session's rounds (fields, shapes, dtypes), fixed by the first round and stored as JSON."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..core import check
from ..errors import SessionError
from ..problem.rounds import entry_not_finite, signed
from . import packing

_MOST_NODES, _DEEPEST = 10_000, 50  # of a schema
_FITS_ANY_FLOAT = 6e4
_NOT_IN_JAX = np.typecodes["Datetime"] + "gG"  # numbers for NumPy, but not for JAX


class RoundSchema:
    """Dicts, lists and tuples of arrays, each with a dtype and a shape."""

    def __init__(self, json):
        _count(json, [_MOST_NODES], _DEEPEST)
        self.json = json
        self.like = _example(json)  # a tree of this schema
        self.size = packing.size_like(self.like)  # in bytes
        self._fields = None  # for the usual case, a flat dict of arrays
        if isinstance(self.like, dict) and all(isinstance(part, np.ndarray) for part in self.like.values()):
            self._fields = {key: (part.dtype, part.shape) for key, part in self.like.items()}

    @classmethod
    def of(cls, tree, name) -> "RoundSchema":
        """The schema of a first round: lists of numbers are arrays, integers are floats."""
        json = _schema_of(tree, name)
        try:
            return cls(json)
        except ValueError as error:
            raise SessionError(f"{name} has {error}; give fewer and larger arrays") from None

    def cast(self, tree, name) -> Any:
        """The tree with new NumPy arrays of these dtypes; or an error that names the field."""
        if self._fields is not None and type(tree) is dict and tree.keys() == self._fields.keys():
            arrays = {key: _fast_copy(tree[key], *kind) for key, kind in self._fields.items()}
            if not any(array is None for array in arrays.values()):
                return arrays
        return _cast(self.json, tree, name)

    def unpack(self, data: bytes) -> Any:
        """The inverse of `packing.pack`."""
        return packing.unpack_like(self.like, data)


def _fast_copy(leaf, dtype, shape) -> np.ndarray | None:
    """A copy of a leaf that clearly fits; None if it needs a closer look."""
    if type(leaf) is float and abs(leaf) < _FITS_ANY_FLOAT and dtype.kind == "f" and not shape:
        return np.array(leaf, dtype)
    if isinstance(leaf, np.generic) or type(leaf) is np.ndarray:
        if leaf.dtype != dtype or leaf.shape != shape:
            return None
        if dtype.kind in "biu" or (dtype.kind == "f" and np.isfinite(leaf).all()):
            return np.array(leaf)
    return None


def _example(schema) -> Any:
    """A tree of this schema, whose arrays take no memory."""
    match schema:
        case {"dict": parts}:
            return {key: _example(part) for key, part in parts.items()}
        case {"none": _}:
            return None
        case {"list": parts}:
            return [_example(part) for part in parts]
        case {"tuple": parts}:
            return tuple(_example(part) for part in parts)
    return np.broadcast_to(np.zeros((), jnp.dtype(schema["dtype"])), schema["shape"])


def _schema_of(tree, name, depth=0) -> Any:
    """As `RoundSchema.of`, as JSON."""
    if depth > _DEEPEST:
        raise SessionError(f"a round is nested more than {_DEEPEST} levels deep; give a flatter one")
    match _listed(tree) if isinstance(tree, list) else tree:
        case dict():
            if not all(isinstance(key, str) for key in tree):
                raise SessionError(f"{name} has a key that is not a string; give a dict with string keys")
            return {"dict": {key: _schema_of(tree[key], f"{name}[{key!r}]", depth + 1) for key in sorted(tree)}}
        case list() | tuple() if type(tree) in (list, tuple):
            return {type(tree).__name__: [_schema_of(part, f"{name}[{i}]", depth + 1) for i, part in enumerate(tree)]}
        case None:
            return {"list": [], "none": True}
        case leaf:
            array = _as_array(float(leaf) if type(leaf) is int and abs(leaf) < 2**53 else leaf, name)
            dtype = signed(jax.dtypes.canonicalize_dtype(array.dtype))
            return {"dtype": str(dtype), "shape": list(array.shape)}


def _listed(tree) -> Any:
    """As `check.listed`, for any list."""
    try:
        array = check.listed(tree)
        is_bool = array is not tree and np.asarray(tree).dtype.kind == "b"
        return np.asarray(tree) if is_bool else array
    except Exception:  # of any kind: JAX fails on lists that contain themselves and on keys without an order
        return tree


def _cast(schema, tree, name):
    """As `RoundSchema.cast`, for any tree."""
    if "dict" in schema:
        expected = schema["dict"]
        tree = dict(tree) if isinstance(tree, Mapping) else tree
        if not isinstance(tree, dict):
            raise SessionError(f"{name} must be a dict with {_listing(expected)}, got {packing.short(tree)}")
        for key in expected:
            if key not in tree:
                raise SessionError(f"{name} lacks the field {key!r}; give {_listing(expected)}")
        if len(tree) > len(expected):
            unknown = next(key for key in tree if key not in expected)
            raise SessionError(f"{name} has an unknown field {packing.short(unknown)}; give {_listing(expected)}")
        return {key: _cast(part, tree[key], f"{name}[{key!r}]") for key, part in expected.items()}
    if "none" in schema:
        if tree is not None:
            raise SessionError(f"{name} must be None as in the first round, got {packing.short(tree)}")
        return None
    for kind in (list, tuple):
        if kind.__name__ in schema:
            expected = schema[kind.__name__]
            if not isinstance(tree, list | tuple) or len(tree) != len(expected):
                raise SessionError(
                    f"{name} must be a {kind.__name__} of {len(expected)} parts as in the first round, got "
                    f"{_counted(tree)}"
                )
            return kind(_cast(schema, part, f"{name}[{i}]") for i, (schema, part) in enumerate(zip(expected, tree)))
    return _cast_leaf(schema, tree, name)


def _cast_leaf(schema, leaf, name):
    dtype, shape = jnp.dtype(schema["dtype"]), tuple(schema["shape"])
    values = _as_array(leaf, name)
    if values.shape != shape:
        raise SessionError(f"{name} must have the shape {shape}, got {values.shape}")
    whole_number = isinstance(leaf, int) and jnp.issubdtype(dtype, np.number)  # Python's have no width
    fits = whole_number or np.can_cast(values.dtype, dtype, "same_kind")
    if not fits or (values.dtype.kind == "b") != (dtype.kind == "b"):
        raise SessionError(f"{name} must be of dtype {dtype}, as in the first round, got {values.dtype}; cast it")
    with np.errstate(all="ignore"):
        array = values.astype(dtype)
    if jnp.issubdtype(dtype, jnp.inexact):
        if not np.isfinite(array).all():
            what = "is too large for" if np.isfinite(values).all() else "holds NaN or infinity in"
            where = entry_not_finite(array, name) if shape else None
            raise SessionError(
                f"{name} {what} {dtype}{f': {where}' if where else ''}; correct that round or leave it out"
            )
    elif not np.array_equal(array, values):
        raise SessionError(f"{name} does not fit into {dtype}; correct that round or leave it out")
    return array


def _as_array(leaf, name) -> np.ndarray:
    if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        raise SessionError(f"{name} is a random key; give jax.random.key_data(...) of it")
    try:
        array = np.asarray(None if np.ma.is_masked(leaf) else leaf)
    except Exception:  # of any kind: users' objects may raise anything
        array = np.asarray(None)
    if not check.is_numeric(array.dtype) or array.dtype.char in _NOT_IN_JAX or array.dtype.kind == "c":
        text = packing.short(leaf)
        raise SessionError(f"{name} must be a real number or an array of them, got {text}; give float(...)")
    return array


def _listing(names) -> str:
    return "no field" if not names else "the fields " + ", ".join(map(repr, names))


def _counted(tree) -> str:
    return f"{len(tree)}" if isinstance(tree, list | tuple) else packing.short(tree)


def _count(schema, left, deeper):
    left[0] -= 1
    match schema:
        case _ if left[0] < 0 or deeper < 0:
            raise ValueError("too many parts")
        case {"dict": dict(parts)} if len(schema) == 1:
            for part in parts.values():
                _count(part, left, deeper - 1)
        case {"list": [], "none": True} if len(schema) == 2:
            pass
        case {"list": list(parts)} | {"tuple": list(parts)} if len(schema) == 1:
            for part in parts:
                _count(part, left, deeper - 1)
        case {"dtype": str(dtype), "shape": list(shape)} if len(schema) == 2:
            if not check.is_numeric(jnp.dtype(dtype)) or not all(type(n) is int and n >= 0 for n in shape):
                raise ValueError("a wrong dtype or shape")
        case _:
            raise ValueError("a part that is not a schema")
