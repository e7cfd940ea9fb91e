"""PyTrees of arrays as plain bytes. The form, which is JSON, says what the bytes are."""

import functools
import math
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from . import _check as check
from .errors import SessionError

_MOST_NODES, _DEEPEST = 10_000, 50  # of a form
_NOT_IN_JAX = np.typecodes["Datetime"] + "gG"  # which NumPy counts as numbers


def form_of(tree, name, depth=0) -> Any:
    """The form of dicts, lists and tuples of numbers; lists of numbers count as arrays, whole ones as real ones."""
    if depth > _DEEPEST:
        raise SessionError(f"a round is nested more than {_DEEPEST} levels deep; give a flatter one")
    match listed(tree) if isinstance(tree, list) else tree:
        case dict():
            if not all(isinstance(key, str) for key in tree):
                raise SessionError(f"{name} has a key that is no string; give a dict with string keys")
            return {"dict": {key: form_of(tree[key], f"{name}[{key!r}]", depth + 1) for key in sorted(tree)}}
        case list() | tuple() if type(tree) in (list, tuple):
            return {type(tree).__name__: [form_of(each, f"{name}[{i}]", depth + 1) for i, each in enumerate(tree)]}
        case None:
            return {"list": [], "none": True}
        case leaf:
            array = _as_array(float(leaf) if type(leaf) is int and abs(leaf) < 2**53 else leaf, name)
            return {"dtype": str(jax.dtypes.canonicalize_dtype(array.dtype)), "shape": list(array.shape)}


def listed(tree) -> Any:
    """As `check.listed`, of anything."""
    try:
        found = check.listed(tree)
        is_bool = found is not tree and np.asarray(tree).dtype.kind == "b"
        return np.asarray(tree) if is_bool else found
    except Exception:  # of any kind: JAX fails on lists that hold themselves, and on keys without an order
        return None


def new_form(tree, name) -> Any:
    """The form that a first round gives to all later ones."""
    form = form_of(tree, name)
    try:
        return checked_form(form)
    except ValueError as error:
        raise SessionError(f"{name} has {error}; give fewer and larger arrays") from None


def cast(form, tree, name):
    """The tree in the recorded form, as NumPy arrays; or a sentence that names the field."""
    if "dict" in form:
        expected = form["dict"]
        tree = dict(tree) if isinstance(tree, Mapping) else tree
        if not isinstance(tree, dict):
            raise SessionError(f"{name} must be a dict with {_listing(expected)}, got {short(tree)}")
        for key in expected:
            if key not in tree:
                raise SessionError(f"{name} lacks the field {key!r}; give {_listing(expected)}")
        if len(tree) > len(expected):
            unknown = next(key for key in tree if key not in expected)
            raise SessionError(f"{name} has an unknown field {short(unknown)}; give {_listing(expected)}")
        return {key: cast(each, tree[key], f"{name}[{key!r}]") for key, each in expected.items()}
    if "none" in form:
        if tree is not None:
            raise SessionError(f"{name} must be None as in the first round, got {short(tree)}")
        return None
    for kind in (list, tuple):
        if kind.__name__ in form:
            expected = form[kind.__name__]
            if not isinstance(tree, list | tuple) or len(tree) != len(expected):
                raise SessionError(
                    f"{name} must be a {kind.__name__} of {len(expected)} parts as in the first round, got "
                    f"{_counted(tree)}"
                )
            return kind(cast(each, part, f"{name}[{i}]") for i, (each, part) in enumerate(zip(expected, tree)))
    return _cast_leaf(form, tree, name)


_dtype = functools.lru_cache(jnp.dtype)


def _cast_leaf(form, leaf, name):
    dtype, shape = _dtype(form["dtype"]), tuple(form["shape"])
    if type(leaf) is np.ndarray and leaf.dtype == dtype and leaf.shape == shape and np.isfinite(leaf).all():
        return leaf.copy()
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
        raise SessionError(f"{name} must be a real number or an array of them, got {short(leaf)}; give float(...)")
    return array


def short(value) -> str:
    """In an error, whatever it is."""
    try:
        return check.described(value)
    except Exception:  # objects whose repr fails
        return type(value).__name__


def _listing(names) -> str:
    return "no field" if not names else "the fields " + ", ".join(map(repr, names))


def _counted(tree) -> str:
    return f"{len(tree)}" if isinstance(tree, list | tuple) else short(tree)


def checked_form(form) -> Any:
    """A form that was read from a file, if it is one."""
    _count(form, [_MOST_NODES], _DEEPEST)
    return form


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


def size(form) -> int:
    """In bytes."""
    return sum(_leaf_size(leaf) for leaf in _leaves(form))


def pack(tree) -> bytes:
    """The leaves of a tree of arrays, one after the other; typed keys as their data."""
    return b"".join(np.asarray(_plain(leaf)).tobytes() for leaf in jax.tree.leaves(tree))


def unpack(form, data: bytes) -> Any:
    """A tree of arrays of that form."""
    arrays = iter(_split(data, [(jnp.dtype(leaf["dtype"]), tuple(leaf["shape"])) for leaf in _leaves(form)]))

    def build(form):
        if "dict" in form:
            return {key: build(form["dict"][key]) for key in sorted(form["dict"])}
        if "none" in form:
            return None
        for kind in (list, tuple):
            if kind.__name__ in form:
                return kind(build(each) for each in form[kind.__name__])
        return next(arrays)

    return build(form)


def unpack_like(tree, data: bytes) -> Any:
    """A tree like another one, typed keys included; NumPy's arrays stay with NumPy."""
    leaves, structure = jax.tree.flatten(tree)
    plain = [_plain(leaf) for leaf in leaves]
    arrays = _split(data, [(leaf.dtype, leaf.shape) for leaf in plain])

    def restored(like, array):
        if _is_key(like):
            return jax.random.wrap_key_data(jnp.asarray(array), impl=jax.random.key_impl(like))
        return array.copy() if isinstance(like, np.ndarray) else jnp.asarray(array)

    return jax.tree.unflatten(structure, [restored(*pair) for pair in zip(leaves, arrays)])


def size_like(tree) -> int:
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
        raise ValueError("the bytes do not fit the form")
    return arrays


def _leaves(form):
    if "dict" in form:
        return [leaf for key in sorted(form["dict"]) for leaf in _leaves(form["dict"][key])]
    for kind in ("list", "tuple"):
        if kind in form:
            return [leaf for each in form[kind] for leaf in _leaves(each)]
    return [form]


def _leaf_size(leaf):
    return math.prod(leaf["shape"]) * jnp.dtype(leaf["dtype"]).itemsize


def _is_key(leaf):
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _plain(leaf):
    return jax.random.key_data(leaf) if _is_key(leaf) else leaf
