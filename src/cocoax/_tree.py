"""Vector arithmetic on decisions, which may be arrays or any PyTree of arrays."""

import functools
import operator
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import Tracer


def is_shape(node):
    """Whether a node of a tree of shapes is one shape, a tuple of sizes."""
    return isinstance(node, tuple) and all(isinstance(size, int) for size in node)


def add(x, y):
    return jax.tree.map(jnp.add, x, y)


def sub(x, y):
    return jax.tree.map(jnp.subtract, x, y)


def scale(factor, x):
    return jax.tree.map(lambda leaf: jnp.asarray(factor, leaf.dtype) * leaf, x)


def mix(x, y, step):
    """(1 - step) x + step y."""
    return jax.tree.map(lambda a, b: a + jnp.asarray(step, a.dtype) * (b - a), x, y)


def dot(x, y):
    products = jax.tree.leaves(jax.tree.map(_dot, x, y))
    return functools.reduce(operator.add, products)


def _dot(x, y):
    if x.ndim < 2:
        return jnp.vdot(x, y)
    return jnp.sum(jnp.sum(x * y, axis=0))


def norm(x, ord: float = 2):
    """The l1, l2 or linf norm of all entries together."""
    leaves = jax.tree.leaves(x)
    if ord == 1:
        return functools.reduce(operator.add, [jnp.sum(jnp.abs(leaf)) for leaf in leaves])
    if ord == 2:
        return jnp.sqrt(dot(x, x))
    return functools.reduce(jnp.maximum, [jnp.max(jnp.abs(leaf), initial=0) for leaf in leaves])


def length(x):
    """The l2 norm where no square may over- or underflow, at the price of a second pass."""
    largest = norm(x, jnp.inf)
    shares = jax.tree.map(lambda leaf: leaf / jnp.where(largest > 0, largest, 1).astype(leaf.dtype), x)
    return largest * norm(shares)


def size(x) -> int:
    """Number of entries: the dimension d."""
    return sum(leaf.size for leaf in jax.tree.leaves(x))


def dtype(x):
    return jnp.result_type(*jax.tree.leaves(x))


def astype(x, dtype):
    """Cast the floating leaves; indices, keys and counters stay as they are."""

    def cast(leaf):
        return leaf.astype(dtype) if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf

    return jax.tree.map(cast, x)


def zeros_like(x):
    return jax.tree.map(jnp.zeros_like, x)


def all_finite(x):
    finite = [jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(x)]
    return functools.reduce(operator.and_, finite, jnp.asarray(True))


def where(condition, x, y):
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), x, y)


def ratio(above, below):
    """above / below, and 0 where below is."""
    return jnp.where(below != 0, above / jnp.where(below != 0, below, 1), 0)


def is_traced(*trees) -> bool:
    """Whether any leaf is abstract, so that its value cannot be looked at now."""
    return any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(trees))


def as_pytree(function) -> Any:
    """A callable as a PyTree without function leaves: a plain function becomes part of the tree's structure."""
    return jax.tree_util.Partial(function) if jax.tree_util.all_leaves([function]) else function
