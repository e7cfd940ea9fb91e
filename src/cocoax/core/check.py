"""Checks of users' arguments: each returns the argument in the form that the code needs, or raises one sentence."""

import contextlib
import numbers
import operator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.errors import ConcretizationTypeError, TracerArrayConversionError

NOT_TRACEABLE = TracerArrayConversionError, ConcretizationTypeError
_LARGEST = 2**31 - 1  # rounds are counted in int32


def described(value) -> str:
    """Short description of a value for error messages: its repr if that is short, else its type and size."""
    if isinstance(value, str | bytes | numbers.Number | tuple | list | np.ndarray | None) and len(repr(value)) < 40:
        return repr(value)
    if isinstance(value, str):
        return f"a string of {len(value)} characters"
    shape = f" of shape {jnp.shape(value)}" if isinstance(value, jax.Array | np.ndarray) else ""
    return f"{type(value).__name__}{shape}"


def instance(value, kind, error, needed) -> Any:
    """Check that a value is an object of `kind`, and not the class itself."""
    if isinstance(value, type):
        raise error(f"{needed}, but {value.__name__} is a class; write {value.__name__}(...)")
    if not isinstance(value, kind):
        raise error(f"{needed}, got {described(value)}")
    return value


def whole(value, name, error, low=None, high=_LARGEST) -> int:
    """A whole number that int32 can hold.

    >>> whole(2**31 - 1, "rounds", ValueError)
    2147483647
    """
    try:
        if np.ndim(value) > 0:
            raise TypeError
        number = operator.index(value)
    except (TypeError, ValueError):
        raise error(f"{name} must be a whole number, got {described(value)}") from None
    if low is not None and number < low:
        raise error(f"{name} must be at least {low}, got {number}")
    if number > high:
        raise error(f"{name} must be at most {high}, got {number}")
    return number


def flag(value, name, error) -> bool:
    """A static bool."""
    if not isinstance(value, bool | np.bool_):
        raise error(f"{name} must be True or False, got {described(value)}")
    return bool(value)


def real(value, name, error) -> np.ndarray:
    """A number, or an array of numbers, that is not traced."""
    try:
        array = np.asarray(value)
    except ValueError:  # lists of unequal lengths
        array = np.asarray(None)
    if not is_numeric(array.dtype):
        raise error(f"{name} must be a number, got {described(value)}")
    if np.iscomplexobj(array):
        raise error(f"{name} must be real, got complex numbers")
    return array.astype(float)


def scalar(value, name, error) -> float:
    """One number that is not traced."""
    array = real(value, name, error)
    if array.ndim > 0:
        raise error(f"{name} must be one number, got {described(value)}")
    return float(array)


def is_numeric(dtype) -> bool:
    return jnp.issubdtype(dtype, np.number) or jnp.issubdtype(dtype, np.bool_)


def random_key(key, who, error):
    """Check that this is one random key, new style or old."""
    if isinstance(key, jax.Array | np.ndarray):
        if jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
            if key.ndim > 0:
                raise error(f"{who} needs one key, got a batch of shape {key.shape}; for a batch use jax.vmap")
            return key
        if key.dtype == np.uint32 and key.shape in ((2,), (4,)):
            return key
    raise error(f"{who} needs a key, for example key=jax.random.key(0), got {described(key)}")


def listed(x) -> Any:
    """A list of numbers, flat or nested, as an array; anything else unchanged."""
    if isinstance(x, list | tuple) and x and all(isinstance(leaf, numbers.Number) for leaf in jax.tree.leaves(x)):
        with contextlib.suppress(ValueError):  # lists of unequal lengths
            return np.asarray(x, float)
    return x


def not_traceable(name, advice) -> str:
    """The sentence for a user's function that raises one of `NOT_TRACEABLE`."""
    return f"{name} is NumPy or Python code, which cannot be compiled; {advice}"
