"""What all rounds of a session look like, from the first one on. As JSON it is on disk."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..core import check
from ..errors import SessionError
from . import packing

_MOST_NODES, _DEEPEST = 10_000, 50  # of a form
_SURELY_FITS = 6e4  # into every kind of float
_NOT_IN_JAX = np.typecodes["Datetime"] + "gG"  # which NumPy counts as numbers


class Form:
    """Dicts, lists and tuples of arrays, each with a dtype and a shape."""

    def __init__(self, json):
        _count(json, [_MOST_NODES], _DEEPEST)
        self.json = json
        self._like = _example(json)
        self.size = packing.size_like(self._like)  # in bytes
        self._fields = None  # of a dict of arrays, which most rounds are
        if isinstance(self._like, dict) and all(isinstance(part, np.ndarray) for part in self._like.values()):
            self._fields = {key: (part.dtype, part.shape) for key, part in self._like.items()}

    @classmethod
    def of(cls, tree, name) -> "Form":
        """Of a first round: lists of numbers count as arrays, whole numbers as real ones."""
        form = _form_of(tree, name)
        try:
            return cls(form)
        except ValueError as error:
            raise SessionError(f"{name} has {error}; give fewer and larger arrays") from None

    def cast(self, tree, name) -> Any:
        """The tree in this form, as NumPy arrays of its own; or a sentence that names the field."""
        if self._fields is not None and type(tree) is dict and tree.keys() == self._fields.keys():
            arrays = {key: _taken(tree[key], *kind) for key, kind in self._fields.items()}
            if not any(array is None for array in arrays.values()):
                return arrays
        return _cast(self.json, tree, name)

    def unpack(self, data: bytes) -> Any:
        """What `packing.pack` made of a tree of this form."""
        return packing.unpack_like(self._like, data)


def _taken(leaf, dtype, shape) -> np.ndarray | None:
    """A copy of a leaf that is as it should be; None if it must be looked at more closely."""
    if type(leaf) is float and abs(leaf) < _SURELY_FITS and dtype.kind == "f" and not shape:
        return np.array(leaf, dtype)
    if isinstance(leaf, np.generic) or type(leaf) is np.ndarray:
        if leaf.dtype != dtype or leaf.shape != shape:
            return None
        if dtype.kind in "biu" or (dtype.kind == "f" and np.isfinite(leaf).all()):
            return np.array(leaf)
    return None


def _example(form) -> Any:
    """A tree of this form, whose arrays take no memory."""
    match form:
        case {"dict": parts}:
            return {key: _example(part) for key, part in parts.items()}
        case {"none": _}:
            return None
        case {"list": parts}:
            return [_example(part) for part in parts]
        case {"tuple": parts}:
            return tuple(_example(part) for part in parts)
    return np.broadcast_to(np.zeros((), jnp.dtype(form["dtype"])), form["shape"])


def _form_of(tree, name, depth=0) -> Any:
    """The form of dicts, lists and tuples of numbers; lists of numbers count as arrays, whole ones as real ones."""
    if depth > _DEEPEST:
        raise SessionError(f"a round is nested more than {_DEEPEST} levels deep; give a flatter one")
    match _listed(tree) if isinstance(tree, list) else tree:
        case dict():
            if not all(isinstance(key, str) for key in tree):
                raise SessionError(f"{name} has a key that is no string; give a dict with string keys")
            return {"dict": {key: _form_of(tree[key], f"{name}[{key!r}]", depth + 1) for key in sorted(tree)}}
        case list() | tuple() if type(tree) in (list, tuple):
            return {type(tree).__name__: [_form_of(each, f"{name}[{i}]", depth + 1) for i, each in enumerate(tree)]}
        case None:
            return {"list": [], "none": True}
        case leaf:
            array = _as_array(float(leaf) if type(leaf) is int and abs(leaf) < 2**53 else leaf, name)
            return {"dtype": str(jax.dtypes.canonicalize_dtype(array.dtype)), "shape": list(array.shape)}


def _listed(tree) -> Any:
    """As `check.listed`, of any list."""
    try:
        found = check.listed(tree)
        is_bool = found is not tree and np.asarray(tree).dtype.kind == "b"
        return np.asarray(tree) if is_bool else found
    except Exception:  # of any kind: JAX fails on lists that hold themselves, and on keys without an order
        return tree


def _cast(form, tree, name):
    """As `Form.cast`, of any tree."""
    if "dict" in form:
        expected = form["dict"]
        tree = dict(tree) if isinstance(tree, Mapping) else tree
        if not isinstance(tree, dict):
            raise SessionError(f"{name} must be a dict with {_listing(expected)}, got {packing.short(tree)}")
        for key in expected:
            if key not in tree:
                raise SessionError(f"{name} lacks the field {key!r}; give {_listing(expected)}")
        if len(tree) > len(expected):
            unknown = next(key for key in tree if key not in expected)
            raise SessionError(f"{name} has an unknown field {packing.short(unknown)}; give {_listing(expected)}")
        return {key: _cast(each, tree[key], f"{name}[{key!r}]") for key, each in expected.items()}
    if "none" in form:
        if tree is not None:
            raise SessionError(f"{name} must be None as in the first round, got {packing.short(tree)}")
        return None
    for kind in (list, tuple):
        if kind.__name__ in form:
            expected = form[kind.__name__]
            if not isinstance(tree, list | tuple) or len(tree) != len(expected):
                raise SessionError(
                    f"{name} must be a {kind.__name__} of {len(expected)} parts as in the first round, got "
                    f"{_counted(tree)}"
                )
            return kind(_cast(each, part, f"{name}[{i}]") for i, (each, part) in enumerate(zip(expected, tree)))
    return _cast_leaf(form, tree, name)


def _cast_leaf(form, leaf, name):
    dtype, shape = jnp.dtype(form["dtype"]), tuple(form["shape"])
    given = _as_array(leaf, name)
    if given.shape != shape:
        raise SessionError(f"{name} must have the shape {shape}, got {given.shape}")
    whole_number = isinstance(leaf, int) and jnp.issubdtype(dtype, np.number)  # Python's have no width
    fits = whole_number or np.can_cast(given.dtype, dtype, "same_kind")
    if not fits or (given.dtype.kind == "b") != (dtype.kind == "b"):
        raise SessionError(f"{name} must be of dtype {dtype}, as in the first round, got {given.dtype}; cast it")
    with np.errstate(all="ignore"):
        array = given.astype(dtype)
    if jnp.issubdtype(dtype, jnp.inexact):
        if not np.isfinite(array).all():
            what = "is too large for" if np.isfinite(given).all() else "holds NaN or infinity in"
            raise SessionError(f"{name} {what} {dtype}; mend or drop that round")
    elif not np.array_equal(array, given):
        raise SessionError(f"{name} does not fit into {dtype}; mend or drop that round")
    return array


def _as_array(leaf, name) -> np.ndarray:
    if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        raise SessionError(f"{name} is a random key; give jax.random.key_data(...) of it")
    try:
        array = np.asarray(None if np.ma.is_masked(leaf) else leaf)
    except Exception:  # of any kind: what users' objects do when they are asked for numbers
        array = np.asarray(None)
    if not check.is_numeric(array.dtype) or array.dtype.char in _NOT_IN_JAX or array.dtype.kind == "c":
        given = packing.short(leaf)
        raise SessionError(f"{name} must be a real number or an array of them, got {given}; give float(...)")
    return array


def _listing(names) -> str:
    return "no field" if not names else "the fields " + ", ".join(map(repr, names))


def _counted(tree) -> str:
    return f"{len(tree)}" if isinstance(tree, list | tuple) else packing.short(tree)


def _count(form, left, deeper):
    left[0] -= 1
    match form:
        case _ if left[0] < 0 or deeper < 0:
            raise ValueError("too many parts")
        case {"dict": dict(parts)} if len(form) == 1:
            for each in parts.values():
                _count(each, left, deeper - 1)
        case {"list": [], "none": True} if len(form) == 2:
            pass
        case {"list": list(parts)} | {"tuple": list(parts)} if len(form) == 1:
            for each in parts:
                _count(each, left, deeper - 1)
        case {"dtype": str(dtype), "shape": list(shape)} if len(form) == 2:
            if not check.is_numeric(jnp.dtype(dtype)) or not all(type(n) is int and n >= 0 for n in shape):
                raise ValueError("no dtype and shape")
        case _:
            raise ValueError("no form")
