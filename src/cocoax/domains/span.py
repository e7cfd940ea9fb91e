"""Sums of two points and a few vertices: inner products come first, entries are computed once at the end."""

import abc
from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array, Float

from ..core import tree
from .base import AbstractVertex, Point


class AbstractSpan(eqx.Module):
    """Sums of two points and some vertices.

    A subclass chooses how to represent a sum; `core.tree` can add and scale it.
    """

    @property
    @abc.abstractmethod
    def points(self) -> tuple[Any, Any]: ...

    @abc.abstractmethod
    def sum(self, weights: Float[Array, " k"]) -> Any:
        """The sum of the vertices with these weights."""

    @abc.abstractmethod
    def vertex(self, k) -> Any: ...

    @abc.abstractmethod
    def dot(self, a, b) -> Array:
        """<a, b>."""

    @abc.abstractmethod
    def square(self, a) -> Array:
        """<a, a>. Rounding never makes it too small, so that a line search never goes too far."""

    @abc.abstractmethod
    def products(self, a) -> Float[Array, " k"]:
        """<a, v> for all vertices v."""

    @abc.abstractmethod
    def inner(self, domain, a) -> Any:
        """The sum moved to the nearest point of the ball that X is known to contain (`domain.inner`)."""

    @property
    def at_once(self) -> bool:
        """Whether it is faster to compute all sums that will be needed in one call of `written`."""
        return False

    @abc.abstractmethod
    def written(self, *sums) -> tuple[Point, ...]:
        """Each sum as a point, with its entries computed."""


class Entrywise(AbstractSpan):
    """Sums represented by their entries."""

    pair: tuple[Point, Point]
    vertices: AbstractVertex  # stacked

    @property
    def points(self):
        return self.pair

    def sum(self, weights):
        return self.vertices.combine(weights)

    def vertex(self, k):
        return jax.tree.map(lambda leaf: leaf[k], self.vertices).dense()

    def dot(self, a, b):
        return tree.dot(a, b)

    def square(self, a):
        return tree.dot(a, a)

    def products(self, a):
        return jax.vmap(lambda vertex: vertex.dot(a))(self.vertices)

    def inner(self, domain, a):
        return domain.inner(a)

    def written(self, *sums):
        return sums
