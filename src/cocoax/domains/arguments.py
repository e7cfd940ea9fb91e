"""Checks of arguments that several sets share: radii, counts, shapes, groups."""

import jax
import jax.numpy as jnp
import numpy as np

from ..core import check, tree
from ..errors import DomainError


def number(value, name):
    """A parameter of a set as a floating array, checked to be real and finite unless it is traced."""
    if not tree.is_traced(value):
        seen = check.real(value, name, DomainError)
        if not np.all(np.isfinite(seen)):
            raise DomainError(f"{name} must be finite, got {check.described(value)}")
        kind = jax.dtypes.canonicalize_dtype(float)
        if np.any(np.abs(seen) > np.finfo(kind).max / 4):
            raise DomainError(f"{name} is too large for {kind}, got {check.described(value)}; use a larger unit")
    elif jnp.iscomplexobj(value):
        raise DomainError(f"{name} must be real, got complex numbers")
    return tree.as_floats(value)


def scalar(value, name, *, positive=False):
    """One number as a floating array of shape ()."""
    made = number(value, name)
    if made.ndim > 0:
        raise DomainError(f"{name} must be one number, got shape {made.shape}")
    if positive and not tree.is_traced(value) and not np.asarray(value) > 0:
        raise DomainError(f"{name} must be positive, got {value}")
    return made


def vector(values, name, of="coordinate"):
    """A vector with at least one entry; errors say "one number per" `of`."""
    values = number(values, name)
    if values.ndim != 1 or values.size == 0:
        raise DomainError(f"{name} must be a vector with one number per {of}, got shape {values.shape}")
    return values


def count(value, name="n") -> int:
    """A whole number >= 1."""
    return check.whole(value, name, DomainError, low=1)


def at_most(n, k) -> tuple[int, int]:
    """n and k as integers with 1 <= k <= n."""
    n, k = count(n), check.whole(k, "k", DomainError)
    if not 1 <= k <= n:
        raise DomainError(f"k must lie between 1 and n={n}, got {k}")
    return n, k


def exponent(p) -> float:
    """The exponent p >= 1 of a norm, as a float."""
    number = check.scalar(p, "p", DomainError)
    if not number >= 1:
        raise DomainError(f"p must be at least 1, got {p}")
    return number


def as_shape(shape) -> tuple[int, ...]:
    """A shape as a tuple of positive sizes; a number is one axis."""
    sizes = shape if isinstance(shape, tuple | list) else (shape,)
    shape = tuple(check.whole(size, "every size in a shape", DomainError) for size in sizes)
    if any(size < 1 for size in shape):
        raise DomainError(f"every size in a shape must be at least 1, got {shape}")
    return shape


def as_labels(groups) -> np.ndarray:
    """The number of each coordinate's group, from lists of coordinates per group, or from such numbers."""
    groups = _as_lists(groups)
    if not isinstance(groups, list) or len(groups) == 0:
        raise DomainError(f"groups must be lists of coordinates, like [[0, 1], [2]], got {check.described(groups)}")
    if not any(isinstance(group, list) for group in groups):
        labels = np.array([check.whole(label, "the label of a group", DomainError) for label in groups])
        if set(labels.tolist()) != set(range(labels.max() + 1)):
            raise DomainError(f"the labels of groups must be 0, 1, ..., each used, got {check.described(groups)}")
        return labels
    if not all(isinstance(group, list) for group in groups):
        raise DomainError(f"groups must be all lists of coordinates, or all labels, got {groups}")
    lists = [[check.whole(i, "a coordinate in a group", DomainError) for i in group] for group in groups]
    flat = [i for group in lists for i in group]
    if not all(lists) or sorted(flat) != list(range(len(flat))):
        raise DomainError(
            f"groups must be nonempty and hold each of the coordinates 0, 1, ... exactly once, got {groups}"
        )
    labels = np.zeros(len(flat), int)
    for label, group in enumerate(lists):
        labels[group] = label
    return labels


def _as_lists(value):
    if isinstance(value, np.ndarray | jnp.ndarray):
        return value.tolist()
    return [_as_lists(item) for item in value] if isinstance(value, list | tuple | range | set) else value


def by_norm(value, name):
    """{norm: number}, from such a dict with keys 1 and 2, or from the number for the l2 norm alone."""
    numbers = value if isinstance(value, dict) else {2: value}
    if not numbers or not numbers.keys() <= {1, 2}:
        raise DomainError(f"{name} must be one number, for the l2 norm, or {{1: ..., 2: ...}}, got {value!r}")
    return {ord: scalar(number, name, positive=True) for ord, number in numbers.items()}
