"""A domain scaled or shifted, and helpers for all domains that are made from others."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...core import check, tree
from ...core.facts import DomainFacts
from ...errors import DomainError
from ..arguments import number, scalar
from ..base import AbstractDomain, AbstractVertex, Point


class Scaled(AbstractVertex):
    """factor * v."""

    inner: AbstractVertex
    factor: Float[Array, ""]

    def dense(self):
        return tree.scale(self.factor, self.inner.dense())

    def dot(self, x):
        return self.factor * self.inner.dot(x)

    def mix(self, x, step):
        return plus(tree.scale(1 - step, x), step * self.factor, self.inner)

    def combine(self, weights):
        return self.inner.combine(weights * tree.with_leading_axes(self.factor, weights.ndim - 1))


class Scale(AbstractDomain):
    r"""$\{a x : x \in X\}$; a negative factor also reflects X in the origin.

    >>> import jax.numpy as jnp
    >>> from cocoax.domains import Box
    >>> flipped = Scale(Box(1.0, jnp.array([3.0, 4.0])), -2.0)
    >>> flipped.lmo(jnp.array([1.0, -1.0])).dense().tolist()
    [-6.0, -2.0]
    """

    facts = DomainFacts("its parts'")

    domain: AbstractDomain
    factor: Float[Array, ""]

    def __init__(self, domain: Any, factor: Any):
        self.domain = as_domain(domain)
        self.factor = scalar(factor, "factor")
        if not tree.is_traced(self.factor) and np.asarray(self.factor) == 0:
            raise DomainError("factor must not be 0, which would leave a single point")

    @property
    def shape(self):
        return self.domain.shape

    def lmo(self, direction, guess: Any = None):
        inner = ask(self.domain, tree.scale(jnp.sign(self.factor), direction), guess)
        return Scaled(inner, self.factor.astype(tree.dtype(direction)))

    def lowest(self, direction, guess: Any = None):
        """The inner domain's `lowest`, which proves a bound even where the LMO is not exact."""
        inner = tree.scale(jnp.sign(self.factor), direction)
        return jnp.abs(self.factor).astype(tree.dtype(direction)) * lowest(self.domain, inner, guess)

    def vertex(self):
        return Scaled(self.domain.vertex(), self.factor)

    def tangent(self, direction):
        return self.domain.tangent(direction)

    def start(self):
        return tree.scale(self.factor, self.domain.start())

    def inradius(self):
        radius = self.domain.inradius()
        return None if radius is None else jnp.abs(self.factor) * radius

    def intervals(self):
        widths = self.domain.intervals()
        return None if widths is None else tree.scale(jnp.abs(self.factor), widths)

    def diameter(self, ord):
        return jnp.abs(self.factor) * self.domain.diameter(ord)

    def contains(self, x, tol=1e-6):
        return self.domain.contains(self._back(x), tol)

    def project(self, x):
        return tree.scale(self.factor, self.domain.project(self._back(x)))

    def _back(self, x):
        return jax.tree.map(lambda leaf: leaf / self.factor.astype(leaf.dtype), x)


class Translated(AbstractVertex):
    """v + shift."""

    inner: AbstractVertex
    shift: Point

    def dense(self):
        return tree.add(self.inner.dense(), self.shift)

    def dot(self, x):
        return self.inner.dot(x) + tree.dot(x, self.shift)

    def mix(self, x, step):
        return tree.add(self.inner.mix(x, step), tree.scale(step, self.shift))

    def combine(self, weights):
        moved = jax.tree.map(lambda leaf: jnp.tensordot(weights, leaf, axes=1), self.shift)
        return tree.add(self.inner.combine(weights), moved)


class Translate(AbstractDomain):
    r"""$\{x + s : x \in X\}$; a single number shifts every entry of an array.

    >>> import jax.numpy as jnp
    >>> from cocoax.domains import L1Ball
    >>> moved = Translate(L1Ball(3, radius=1.0), jnp.array([5.0, 0.0, 0.0]))
    >>> moved.lmo(jnp.array([1.0, 3.0, 2.0])).dense().tolist()
    [5.0, -1.0, 0.0]
    """

    facts = DomainFacts("its parts'")

    domain: AbstractDomain
    shift: Point

    def __init__(self, domain: Any, shift: Any):
        self.domain = as_domain(domain)
        shapes, structure, leaves = leaves_like(self.domain, shift, "shift")
        leaves = [number(leaf, "shift") for leaf in leaves]
        for leaf, shape in zip(leaves, shapes):
            if leaf.shape not in ((), shape):
                raise DomainError(f"shift must have the domain's shape {shape}, or be one number, got {leaf.shape}")
        leaves = [jnp.broadcast_to(leaf, shape) for leaf, shape in zip(leaves, shapes)]
        self.shift = jax.tree.unflatten(structure, leaves)

    @property
    def shape(self):
        return self.domain.shape

    def lmo(self, direction, guess: Any = None):
        return Translated(ask(self.domain, direction, guess), self._shift(direction))

    def lowest(self, direction, guess: Any = None):
        return lowest(self.domain, direction, guess) + tree.dot(direction, self._shift(direction))

    def vertex(self):
        return Translated(self.domain.vertex(), self.shift)

    def tangent(self, direction):
        return self.domain.tangent(direction)

    def start(self):
        return tree.add(self.domain.start(), self.shift)

    def inradius(self):
        return self.domain.inradius()

    def diameter(self, ord):
        return self.domain.diameter(ord)

    def contains(self, x, tol: Any = 1e-6):
        size = reach(self.domain)
        larger = 1 + tree.norm(self.shift) / jnp.where(size > 0, size, jnp.inf)  # X + s, not X
        return self.domain.contains(tree.sub(x, self._shift(x)), tol * larger.astype(tree.dtype(x)))

    def project(self, x):
        return tree.add(self.domain.project(tree.sub(x, self._shift(x))), self._shift(x))

    def _shift(self, like):
        return tree.astype(self.shift, tree.dtype(like))


def as_domain(domain) -> AbstractDomain:
    return check.instance(domain, AbstractDomain, DomainError, "a set is made from a domain")


def leaves_like(domain, value, name):
    """(shapes, structure, leaves) of the tree `value`, which must have a leaf for each leaf of a decision."""
    shapes, structure = jax.tree.flatten(domain.shape, is_leaf=tree.is_shape)
    try:
        return shapes, structure, structure.flatten_up_to(value)
    except (ValueError, TypeError):
        raise DomainError(f"{name} must be a tree like the domain's shape {domain.shape}, got {value}") from None


def ask(domain, direction, guess: Any):
    """The inner domain's LMO; `guess` is an earlier answer that wraps one of the inner domain."""
    return domain.lmo(direction, None if guess is None else guess.inner)


def lowest(domain, direction, guess: Any):
    """The inner lowest value: where an LMO is not exact, a vertex proves none."""
    return domain.lowest(direction, None if guess is None else guess.inner)


def plus(x, weight, vertex):
    """x + weight v."""
    return tree.add(x, vertex.mix(tree.zeros_like(x), weight))


def width(domain):
    """The l2 diameter of X or, if that is not known, its l1 diameter, which is larger."""
    try:
        return domain.diameter(2)
    except DomainError:
        return domain.diameter(1)


def reach(domain):
    """An upper bound on the l2 norm of all points of X."""
    return tree.norm(domain.start()) + width(domain)


def normalise(x):
    """(x / |x|_2, |x|_2) for x of any scale; (0, 0) for x = 0."""
    largest = tree.norm(x, jnp.inf)
    x = tree.scale(1 / jnp.where(largest > 0, largest, 1), x)
    length = tree.norm(x)
    return tree.scale(1 / jnp.where(length > 0, length, 1), x), largest * length
