"""Sums of two matrices and rank-one vertices, represented by their coefficients."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...core import tree
from ..span import AbstractSpan
from ..vertices import RankOne
from .kernels import large

_FEW = 16  # vertices whose factors stay in registers


class OfRankOne(AbstractSpan):
    """Sums as coefficients: one pass over the matrices gives all inner products, a second one writes new points.

    `inner` is right only for balls around 0.
    """

    matrices: tuple[Float[Array, "m n"], Float[Array, "m n"]]
    vertices: RankOne  # stacked
    table: Float[Array, "k k"]  # inner products of the matrices and the vertices

    def __init__(self, points, vertices: RankOne):
        self.matrices, self.vertices = points, vertices
        left, right = vertices.left * vertices.scale[:, None], vertices.right
        with jax.default_matmul_precision("highest"):
            between = (left @ left.T) * (right @ right.T)
        products = large.chosen(large.products, _products) if self.at_once else _products
        among, beside = products(points[0], points[1], left, right)
        self.table = jnp.block([[among, beside], [beside.T, between]])

    @property
    def at_once(self):
        few = len(self.vertices.scale) <= _FEW
        return few and large.pays(*jax.tree.leaves((self.matrices, self.vertices)))

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
        write = large.chosen(large.sums, _sums) if self.at_once else _sums
        return write(*self.matrices, self.vertices, sums)


def _products(one, other, left, right):
    """(2 x 2 inner products of two matrices, 2 x k inner products with left_k right_k^T)."""
    with jax.default_matmul_precision("highest"):
        beside = jnp.stack([jnp.sum(left * (matrix @ right.T).T, axis=1) for matrix in (one, other)])
    mixed = tree.dot(one, other)
    return jnp.array([[tree.dot(one, one), mixed], [mixed, tree.dot(other, other)]]), beside


def _sums(one, other, vertices, sums):
    return tuple(a[0] * one + a[1] * other + vertices.combine(a[2:]) for a in sums)
