"""Checks of what users give: each returns its input in the form that the code wants, or raises one sentence."""

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
    """A value in an error: as it is where it is short, else its type."""
    if isinstance(value, str | bytes | numbers.Number | tuple | list | np.ndarray | None) and len(repr(value)) < 40:
        return repr(value)
    shape = f" of shape {jnp.shape(value)}" if isinstance(value, jax.Array | np.ndarray) else ""
    return f"{type(value).__name__}{shape}"


def instance(value, kind, error, needed) -> Any:
    """An object of `kind`, not the class itself."""
    if isinstance(value, type):
        raise error(f"{needed}, but {value.__name__} is a class; write {value.__name__}(...)")
    if not isinstance(value, kind):
        raise error(f"{needed}, got {described(value)}")
    return value


def whole(value, name, error, low=None) -> int:
    """A whole number that int32 can hold."""
    try:
        if np.ndim(value) > 0:
            raise TypeError
        found = operator.index(value)
    except (TypeError, ValueError):
        raise error(f"{name} must be a whole number, got {described(value)}") from None
    if low is not None and found < low:
        raise error(f"{name} must be at least {low}, got {found}")
    if found > _LARGEST:
        raise error(f"{name} must be at most {_LARGEST}, got {found}")
    return found


def real(value, name, error) -> np.ndarray:
    """A number, or an array of numbers, that can be seen."""
    try:
        seen = np.asarray(value)
    except ValueError:  # lists of unequal lengths
        seen = np.asarray(None)
    if not is_numeric(seen.dtype):
        raise error(f"{name} must be a number, got {described(value)}")
    if np.iscomplexobj(seen):
        raise error(f"{name} must be real, got complex numbers")
    return seen.astype(float)


def scalar(value, name, error) -> float:
    """One number that can be seen."""
    seen = real(value, name, error)
    if seen.ndim > 0:
        raise error(f"{name} must be one number, got {described(value)}")
    return float(seen)


def is_numeric(dtype) -> bool:
    return jnp.issubdtype(dtype, np.number) or jnp.issubdtype(dtype, np.bool_)


def random_key(key, who, error):
    """One key, new style or old."""
    if isinstance(key, jax.Array | np.ndarray):
        if jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
            if key.ndim > 0:
                raise error(f"{who} needs one key, got a batch of shape {key.shape}; for a batch use jax.vmap")
            return key
        if key.dtype == np.uint32 and key.shape in ((2,), (4,)):
            return key
    raise error(f"{who} needs a key, for example key=jax.random.key(0), got {described(key)}")


def listed(x) -> Any:
    """A list of numbers, flat or nested, as the array that it spells; anything else as it is."""
    if isinstance(x, list | tuple) and x and all(isinstance(leaf, numbers.Number) for leaf in jax.tree.leaves(x)):
        with contextlib.suppress(ValueError):  # lists of unequal lengths
            return np.asarray(x, float)
    return x


def not_traceable(name, advice) -> str:
    """The sentence for a user's function that raises one of `NOT_TRACEABLE`."""
    return f"{name} is NumPy or Python code, which cannot be compiled; {advice}"
