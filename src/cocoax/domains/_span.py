"""Sums of a few points and vertices, of which inner products are wanted first, and entries only at the end."""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .. import _tree as tree
from . import _kernels
from .base import AbstractVertex, Point
from .vertices import RankOne

_FEW = 16  # vertices whose factors stay in registers


class AbstractSpan(eqx.Module):
    """All sums of two points and of some vertices. How they are kept is the span's; `_tree` adds and scales them."""

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
        """Each as a point."""


class Entrywise(AbstractSpan):
    """As they are."""

    given: tuple[Point, Point]
    vertices: AbstractVertex  # stacked

    @property
    def points(self):
        return self.given

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


class OfRankOne(AbstractSpan):
    """Matrices as coefficients: one pass over them gives all inner products, a second one writes new points.

    For balls around 0, as far as `inner` is asked.
    """

    matrices: tuple[Float[Array, "m n"], Float[Array, "m n"]]
    vertices: RankOne  # stacked
    table: Float[Array, "k k"]  # inner products of the matrices and the vertices

    def __init__(self, points, vertices: RankOne):
        self.matrices, self.vertices = points, vertices
        left, right = vertices.left * vertices.scale[:, None], vertices.right
        with jax.default_matmul_precision("highest"):
            between = (left @ left.T) * (right @ right.T)
        products = _kernels.chosen(_kernels.products, _products) if self.at_once else _products
        among, beside = products(points[0], points[1], left, right)
        self.table = jnp.block([[among, beside], [beside.T, between]])

    @property
    def at_once(self):
        few = len(self.vertices.scale) <= _FEW
        return few and _kernels.pays(*jax.tree.leaves((self.matrices, self.vertices)))

    @property
    def points(self):
        one, other, *_ = jnp.eye(len(self.table), dtype=self.table.dtype)
        return one, other

    def sum(self, weights):
        return jnp.concatenate([jnp.zeros(2, weights.dtype), weights])

    def vertex(self, k):
        return self.sum(jax.nn.one_hot(k, len(self.table) - 2, dtype=self.table.dtype))

    def dot(self, a, b):
        return a @ (self.table @ b)

    def square(self, a):
        lost = (16 if self.at_once else 4) * jnp.finfo(a.dtype).eps * (a**2 @ jnp.diagonal(self.table))
        return jnp.maximum(self.dot(a, a), 0) + lost

    def products(self, a):
        return (self.table @ a)[2:]

    def inner(self, domain, a):
        return jnp.minimum(1, tree.ratio(domain.inradius().astype(a.dtype), jnp.sqrt(self.square(a)))) * a

    def written(self, *sums):
        write = _kernels.chosen(_kernels.sums, _sums) if self.at_once else _sums
        return write(*self.matrices, self.vertices, sums)


def _products(one, other, left, right):
    with jax.default_matmul_precision("highest"):
        beside = jnp.stack([jnp.sum(left * (matrix @ right.T).T, axis=1) for matrix in (one, other)])
    mixed = tree.dot(one, other)
    return jnp.array([[tree.dot(one, one), mixed], [mixed, tree.dot(other, other)]]), beside


def _sums(one, other, vertices, sums):
    return tuple(a[0] * one + a[1] * other + vertices.combine(a[2:]) for a in sums)
