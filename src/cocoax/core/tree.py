"""Vector arithmetic on decisions: arrays, PyTrees of arrays, or elements with their own arithmetic."""

import abc
import functools
import operator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer


class AbstractElement(eqx.Module):
    """A vector that is not stored entry by entry, such as a factored matrix; it has its own arithmetic."""

    @property
    @abc.abstractmethod
    def size(self) -> int:
        """Number of entries."""

    @abc.abstractmethod
    def is_like(self, other) -> bool:
        """Whether both are vectors of one space, stored in one way."""

    @abc.abstractmethod
    def __add__(self, other) -> Any: ...

    @abc.abstractmethod
    def __sub__(self, other) -> Any: ...

    @abc.abstractmethod
    def scaled(self, factor) -> Any:
        """factor x."""

    @abc.abstractmethod
    def dot(self, other) -> Any:
        """<x, y>; of x with itself never below 0."""

    @abc.abstractmethod
    def combined(self, weights) -> Any:
        """For a batch of elements: sum_k weights[k] x_k."""

    @abc.abstractmethod
    def zeros(self) -> Any:
        """0, in the form that is stored between rounds."""


def is_element(node) -> bool:
    return isinstance(node, AbstractElement)


def has_element(x) -> bool:
    """Whether a vector has a part that is not stored entry by entry."""
    return any(map(is_element, jax.tree.leaves(x, is_leaf=is_element)))


def is_like(x, other) -> bool:
    """Whether both are vectors of one space, stored in one way."""
    (nodes, structure), (others, needed) = (jax.tree.flatten(each, is_leaf=is_element) for each in (x, other))
    return structure == needed and all(map(_is_like, nodes, others))


def _is_like(node, other) -> bool:
    if is_element(node) and is_element(other):
        return node.is_like(other)
    return not (is_element(node) or is_element(other)) and jnp.shape(node) == jnp.shape(other)


def is_shape(node):
    """Whether a node of a tree of shapes is one shape, a tuple of sizes."""
    return isinstance(node, tuple) and all(isinstance(size, int) for size in node)


def add(x, y):
    return _map(jnp.add, operator.add, x, y)


def sub(x, y):
    return _map(jnp.subtract, operator.sub, x, y)


def scale(factor, x):
    return _map(lambda leaf: jnp.asarray(factor, leaf.dtype) * leaf, lambda element: element.scaled(factor), x)


def mix(x, y, step):
    """(1 - step) x + step y."""
    return _map(
        lambda a, b: a + jnp.asarray(step, a.dtype) * (b - a), lambda a, b: a.scaled(1 - step) + b.scaled(step), x, y
    )


def combine(weights, x):
    """For a batch of vectors along a leading axis: sum_k weights[..., k] x_k."""
    return _map(lambda leaf: jnp.tensordot(weights, leaf, axes=1), lambda element: element.combined(weights), x)


def dot(x, y):
    products = jax.tree.leaves(_map(_dot, lambda a, b: a.dot(b), x, y))
    return functools.reduce(operator.add, products)


def _map(of_arrays, of_elements, *trees):
    def of_nodes(*nodes):
        return (of_elements if is_element(nodes[0]) else of_arrays)(*nodes)

    return jax.tree.map(of_nodes, *trees, is_leaf=is_element)


def _dot(x, y):
    if x.ndim < 2:
        return jnp.vdot(x, y)
    return jnp.sum(jnp.sum(x * y, axis=0))


def norm(x, ord: float = 2):
    """The l1, l2 or linf norm of all entries together."""
    leaves = jax.tree.leaves(x, is_leaf=is_element)
    if ord == 1:
        return functools.reduce(operator.add, [jnp.sum(jnp.abs(leaf)) for leaf in leaves])
    if ord == 2:
        return jnp.sqrt(dot(x, x))
    return functools.reduce(jnp.maximum, [jnp.max(jnp.abs(leaf), initial=0) for leaf in leaves])


def length(x):
    """The l2 norm without over- or underflow of squares, at the price of a second pass."""
    largest = norm(x, jnp.inf)
    shares = jax.tree.map(lambda leaf: leaf / jnp.where(largest > 0, largest, 1).astype(leaf.dtype), x)
    return largest * norm(shares)


def size(x) -> int:
    """Number of entries: the dimension d."""
    return sum(leaf.size for leaf in jax.tree.leaves(x, is_leaf=is_element))


def dtype(x):
    """The leaves' common dtype, also where users ask JAX for strict promotion."""
    with jax.numpy_dtype_promotion("standard"):
        return jnp.result_type(*jax.tree.leaves(x))


def astype(x, dtype):
    """Cast the floating leaves; indices, keys and counters stay as they are."""

    def cast(leaf):
        return leaf.astype(dtype) if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf

    return jax.tree.map(cast, x)


def zeros_like(x):
    return _map(jnp.zeros_like, lambda element: element.zeros(), x)


def all_finite(x):
    finite = [jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(x)]
    return functools.reduce(operator.and_, finite, jnp.asarray(True))


def where(condition, x, y):
    def of_elements(a, b):
        return a.scaled(jnp.where(condition, 1, 0)) + b.scaled(jnp.where(condition, 0, 1))

    return _map(lambda a, b: jnp.where(condition, a, b), of_elements, x, y)


def finite(x):
    """x with 0 for entries that are not finite."""
    return jax.tree.map(lambda leaf: jnp.where(jnp.isfinite(leaf), leaf, 0), x)


def with_leading_axes(x, count: int):
    """An array with `count` axes of length 1 in front, to be multiplied with a stack of arrays."""
    return jnp.expand_dims(x, tuple(range(count)))


def is_nonzero(x):
    """Whether any entry is not 0."""
    return dot(x, x) > 0 if has_element(x) else norm(x, jnp.inf) > 0


def ratio(above, below):
    """above / below, and 0 where below is 0.

    >>> ratio(jnp.array([6.0, 1.0]), jnp.array([2.0, 0.0])).tolist()
    [3.0, 0.0]
    """
    return jnp.where(below != 0, above / jnp.where(below != 0, below, 1), 0)


def is_traced(*trees) -> bool:
    """Whether any leaf is a tracer, so that its value is not known now."""
    return any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(trees))


def as_floats(value) -> jax.Array:
    """An array of floats. Numbers that are known are cast by NumPy: JAX would compile a program for each shape."""
    if isinstance(value, jax.Array):
        return jnp.asarray(value, float)
    return jax.device_put(np.asarray(value, jax.dtypes.canonicalize_dtype(float)))


def as_pytree(function) -> Any:
    """A callable as a PyTree without function leaves: a plain function becomes part of the tree's structure."""
    return jax.tree_util.Partial(function) if jax.tree_util.all_leaves([function]) else function
