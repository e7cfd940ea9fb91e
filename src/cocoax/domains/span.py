"""Sums of two points and a few vertices: inner products come first, entries are written once at the end."""

import abc
from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array, Float

from ..core import tree
from .base import AbstractVertex, Point


class AbstractSpan(eqx.Module):
    """Sums of two points and some vertices. Each span has its own representation; `core.tree` adds and scales it."""

    @property
    @abc.abstractmethod
    def points(self) -> tuple[Any, Any]: ...

    @abc.abstractmethod
    def sum(self, weights: Float[Array, " k"]) -> Any:
        """The vertices, weighted."""

    @abc.abstractmethod
    def vertex(self, k) -> Any: ...

    @abc.abstractmethod
    def dot(self, a, b) -> Array:
        """<a, b>."""

    @abc.abstractmethod
    def square(self, a) -> Array:
        """<a, a>. Rounding never makes it too small, so that no line search goes too far."""

    @abc.abstractmethod
    def products(self, a) -> Float[Array, " k"]:
        """<a, v> for all vertices v."""

    @abc.abstractmethod
    def inner(self, domain, a) -> Any:
        """`domain.inner`."""

    @property
    def at_once(self) -> bool:
        """Whether it is best to write as many sums together as will be needed."""
        return False

    @abc.abstractmethod
    def written(self, *sums) -> tuple[Point, ...]:
        """Every sum as a point."""


class Entrywise(AbstractSpan):
    """Points and vertices entry by entry."""

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
