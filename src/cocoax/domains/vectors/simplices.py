"""Simplices."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...core.facts import DomainFacts
from ..arguments import count, scalar
from ..base import AbstractDomain, centred
from ..vertices import OneHot


class AbstractSimplex(AbstractDomain):
    """Nonnegative vectors of bounded sum."""

    axes = 1
    n: int = eqx.field(static=True)
    total: Float[Array, ""]

    def __init__(self, n, total=1.0):
        self.n = count(n)
        self.total = scalar(total, "total", positive=True)

    @property
    def shape(self):
        return (self.n,)


class ProbabilitySimplex(AbstractSimplex):
    r"""$X = \{x \in \mathbb{R}^n : x \ge 0,\ \sum_i x_i = r\}$.

    >>> import jax.numpy as jnp
    >>> simplex = ProbabilitySimplex(3)
    >>> simplex.lmo(jnp.array([2.0, -1.0, 0.5])).dense().tolist()
    [0.0, 1.0, 0.0]
    """

    facts = DomainFacts("a pass over the direction")

    def __init__(self, n: Any, total: Any = 1.0):
        super().__init__(n, total)

    def lmo(self, direction, guess=None):
        return OneHot(jnp.argmin(direction), self.total.astype(direction.dtype), self.shape)

    def tangent(self, direction):
        return centred(direction)

    def start(self):
        return jnp.full(self.shape, self.total / self.n)

    def diameter(self, ord):
        width = 0.0 if self.n == 1 else {1: 2.0, 2: 2.0**0.5}[ord]
        return width * self.total

    def inradius(self):
        return self.total / max(self.n * (self.n - 1), 1) ** 0.5

    def contains(self, x, tol=1e-6):
        slack = tol * self.total.astype(x.dtype)
        return (jnp.abs(x.sum() - self.total.astype(x.dtype)) <= slack) & (x.min() >= -slack)

    def project(self, x):
        return onto_simplex(x, self.total.astype(x.dtype))


class UnitSimplex(AbstractSimplex):
    r"""$X = \{x \in \mathbb{R}^n : x \ge 0,\ \sum_i x_i \le r\}$.

    >>> import jax.numpy as jnp
    >>> simplex = UnitSimplex(3, total=2.0)
    >>> simplex.lmo(jnp.array([2.0, -1.0, 0.5])).dense().tolist()
    [0.0, 2.0, 0.0]
    >>> simplex.lmo(jnp.array([2.0, 1.0, 0.5])).dense().tolist()
    [0.0, 0.0, 0.0]
    """

    facts = DomainFacts("a pass over the direction")

    def __init__(self, n: Any, total: Any = 1.0):
        super().__init__(n, total)

    def lmo(self, direction, guess=None):
        index = jnp.argmin(direction)
        return OneHot(index, jnp.where(direction[index] < 0, self.total.astype(direction.dtype), 0), self.shape)

    def start(self):
        return jnp.full(self.shape, self.total / (self.n + 1))

    def diameter(self, ord):
        return min(self.n, 2) ** (1 / ord) * self.total

    def inradius(self):
        level = self.start()[0]
        return jnp.minimum(level, (self.total - self.n * level) / self.n**0.5)

    def contains(self, x, tol=1e-6):
        total = self.total.astype(x.dtype)
        return (x.sum() <= (1 + tol) * total) & (x.min() >= -tol * total)

    def project(self, x):
        total = self.total.astype(x.dtype)
        positive = jnp.maximum(x, 0)
        return jnp.where(positive.sum() <= total, positive, onto_simplex(x, total))


def onto_simplex(x: Float[Array, " n"], total) -> Float[Array, " n"]:
    """The nearest point of {y >= 0, sum y = total}, by sorting (Held, Wolfe, Crowder, 1974)."""
    ordered = jnp.sort(x)[::-1]
    return above_level(x, ordered, jnp.arange(1, x.size + 1, dtype=x.dtype), total)


def above_level(x: Float[Array, " n"], ordered, weights, total) -> Float[Array, " n"]:
    """max(x - level, 0), for the level at which the sum of its entries, each times its weight, is `total`.

    `ordered` is x from the largest entry down, and `weights` the cumulative sums of the weights in that order. The
    level is found from the sums at each entry; these are made of differences of neighbours, so that large entries and
    large weights do not absorb small ones.
    """
    spent = jnp.cumsum(weights[:-1] * -jnp.diff(ordered))
    spent = jnp.concatenate([jnp.zeros(1, x.dtype), spent])
    last = jnp.sum(spent < total) - 1
    return jnp.maximum(x - ordered[last] + (total - spent[last]) / weights[last], 0)


def onto_capped_simplex(x: Float[Array, " n"], caps: Float[Array, " n"], total) -> Float[Array, " n"]:
    """The nearest point of {0 <= y <= caps, sum y = total}, by sorting, where caps <= total <= sum caps.

    It is y = clip(x - theta, 0, caps), and its sum is piecewise linear in theta. If the entries of x are filled
    to their caps from the largest down, theta lies at most one cap below the entry that completes the total.
    Measured from there, large entries do not absorb the caps.
    """
    order = jnp.argsort(-x)
    complete = jnp.sum(jnp.cumsum(caps[order]) < total)
    x = jnp.clip(x - x[order[jnp.minimum(complete, x.size - 1)]], -caps.max(), caps.max())

    corners = jnp.concatenate([x - caps, x])  # entry i leaves its cap at theta = x_i - caps_i, and is 0 from x_i on
    order = jnp.argsort(corners)
    corners = corners[order]
    moving = jnp.cumsum(jnp.where(order < x.size, 1, -1)).astype(x.dtype)
    lost = jnp.cumsum(moving[:-1] * jnp.diff(corners))
    excess = caps.sum() - total - jnp.concatenate([jnp.zeros(1, x.dtype), lost])
    last = jnp.maximum(jnp.sum(excess >= 0) - 1, 0)
    theta = corners[last] + excess[last] / jnp.maximum(moving[last], 1)
    return jnp.clip(x - theta, 0, caps)
