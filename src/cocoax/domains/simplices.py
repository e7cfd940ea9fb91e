"""Simplices."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..errors import DomainError
from .base import AbstractDomain, check_norm, number
from .vertices import OneHot


class ProbabilitySimplex(AbstractDomain):
    r"""$X = \{x \in \mathbb{R}^n : x \ge 0,\ \sum_i x_i = r\}$.

    >>> import jax.numpy as jnp
    >>> simplex = ProbabilitySimplex(3)
    >>> simplex.lmo(jnp.array([2.0, -1.0, 0.5])).dense().tolist()
    [0.0, 1.0, 0.0]
    """

    n: int = eqx.field(static=True)
    total: Float[Array, ""]

    def __init__(self, n, total=1.0):
        if n < 1:
            raise DomainError(f"a simplex needs at least one coordinate, got n={n}")
        self.n = int(n)
        self.total = number(total, "total", positive=True)

    @property
    def shape(self):
        return (self.n,)

    def lmo(self, direction, guess=None):
        return OneHot(jnp.argmin(direction), self.total.astype(direction.dtype), self.shape)

    def vertex(self):
        return OneHot(jnp.argmin(jnp.zeros(self.n)), self.total, self.shape)

    def start(self):
        return jnp.full(self.shape, self.total / self.n)

    def diameter(self, ord):
        check_norm(ord)
        width = 0.0 if self.n == 1 else {1: 2.0, 2: 2.0**0.5}[ord]
        return width * self.total

    def contains(self, x, tol=1e-6):
        slack = tol * self.total.astype(x.dtype)
        return (jnp.abs(x.sum() - self.total.astype(x.dtype)) <= slack) & (x.min() >= -slack)

    def project(self, x):
        return onto_simplex(x, self.total.astype(x.dtype))


def onto_simplex(x: Float[Array, " n"], total) -> Float[Array, " n"]:
    """The nearest point of {y >= 0, sum y = total}, by sorting (Held, Wolfe, Crowder, 1974)."""
    x = x - x.max()  # the answer does not change, and large entries no longer swallow the total
    ordered = jnp.sort(x)[::-1]
    excess = (jnp.cumsum(ordered) - total) / jnp.arange(1, x.size + 1, dtype=x.dtype)
    last = jnp.sum(ordered > excess) - 1
    return jnp.maximum(x - excess[last], 0)
