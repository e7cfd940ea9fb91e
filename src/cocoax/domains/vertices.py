"""Small forms of extreme points."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from .base import AbstractVertex, Point


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
