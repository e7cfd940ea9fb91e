"""Vertices in forms that take little memory."""

import functools
import math
import operator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from ..core.tree import with_leading_axes
from .base import AbstractVertex, Point

_FEW = 16  # terms of a sum that are written one by one


class Dense(AbstractVertex):
    """A vertex with no structure to exploit."""

    point: Point

    def dense(self):
        return self.point


class OneHot(AbstractVertex):
    """One nonzero entry: `value` at flat position `index`."""

    index: Int[Array, ""]
    value: Float[Array, ""]
    shape: tuple[int, ...] = eqx.field(static=True)

    def dense(self):
        return self.mix(jnp.zeros(self.shape, self.value.dtype), 1.0)

    def dot(self, x):
        return x.reshape(-1)[self.index] * self.value

    def mix(self, x, step):
        step = jnp.asarray(step, x.dtype)
        return ((1 - step) * x).reshape(-1).at[self.index].add(step * self.value).reshape(self.shape)

    def combine(self, weights):
        heights = weights * with_leading_axes(self.value, weights.ndim - 1)
        lead = weights.shape[:-1]
        total = jnp.zeros((*lead, math.prod(self.shape)), heights.dtype)
        return total.at[..., self.index].add(heights).reshape(*lead, *self.shape)


class Sparse(AbstractVertex):
    """Few nonzero entries: `value` at the flat positions `index`, all different."""

    index: Int[Array, " k"]
    value: Float[Array, " k"]
    shape: tuple[int, ...] = eqx.field(static=True)

    def dense(self):
        return self.mix(jnp.zeros(self.shape, self.value.dtype), 1.0)

    def dot(self, x):
        return jnp.vdot(x.reshape(-1)[self.index], self.value)

    def mix(self, x, step):
        step = jnp.asarray(step, x.dtype)
        return ((1 - step) * x).reshape(-1).at[self.index].add(step * self.value).reshape(self.shape)

    def combine(self, weights):
        lead, dtype = weights.shape[:-1], jnp.result_type(weights, self.value)
        value = with_leading_axes(self.value, len(lead))
        total = jnp.zeros((*lead, math.prod(self.shape)), dtype)
        return total.at[..., self.index].add(weights[..., None] * value).reshape(*lead, *self.shape)


class Chosen(AbstractVertex):
    """`value` where `mask`, 0 elsewhere: one byte per entry."""

    mask: Bool[Array, " n"]
    value: Float[Array, ""]

    def dense(self):
        return jnp.where(self.mask, self.value, 0)


class RankOne(AbstractVertex):
    """scale * left right^T, with unit vectors."""

    left: Float[Array, " rows"]
    right: Float[Array, " cols"]
    scale: Float[Array, ""]

    def dense(self):
        return self.scale * jnp.outer(self.left, self.right)

    def dot(self, x):
        return self.scale * (self.left @ (x @ self.right))

    def mix(self, x, step):
        step = jnp.asarray(step, x.dtype)
        return (1 - step) * x + (step * self.scale) * jnp.outer(self.left, self.right)

    def combine(self, weights):
        if weights.ndim > 1 or not 0 < len(weights) <= _FEW:
            scale, left = (with_leading_axes(leaf, weights.ndim - 1) for leaf in (self.scale, self.left.T))
            lefts = (weights * scale)[..., None, :] * left  # so that no result is transposed
            return jnp.einsum("...ik,kj->...ij", lefts, self.right, precision="highest")
        parts = zip(weights * self.scale, self.left, self.right)  # XLA fuses them with what they are added to
        return functools.reduce(operator.add, [(weight * left)[:, None] * right[None] for weight, left, right in parts])


class Signs(AbstractVertex):
    """+scale where `positive`, -scale elsewhere: one byte per entry."""

    positive: Bool[Array, "..."]
    scale: Float[Array, ""]

    def dense(self):
        return jnp.where(self.positive, self.scale, -self.scale)


class ProductVertex(AbstractVertex):
    """A PyTree of vertices, one for each factor of a product."""

    blocks: Any

    def dense(self):
        return self._map(lambda vertex: vertex.dense())

    def dot(self, x):
        products = self._map(lambda vertex, part: vertex.dot(part), x)
        return functools.reduce(operator.add, jax.tree.leaves(products))

    def mix(self, x, step):
        return self._map(lambda vertex, part: vertex.mix(part, step), x)

    def combine(self, weights):
        return self._map(lambda vertex: vertex.combine(weights))

    def _map(self, function, *trees):
        return jax.tree.map(function, self.blocks, *trees, is_leaf=lambda node: isinstance(node, AbstractVertex))
