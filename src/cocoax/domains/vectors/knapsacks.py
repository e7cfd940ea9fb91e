"""Budgets and demands, shared among coordinates that each have an upper bound."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...core import tree
from ...core.facts import DomainFacts
from ...errors import DomainError
from ..arguments import scalar, vector
from ..base import AbstractDomain
from ..vertices import Dense
from .simplices import onto_capped_simplex


class CappedSimplex(AbstractDomain):
    r"""$X = \{x \in \mathbb{R}^n : 0 \le x_i \le c_i,\ \sum_i x_i = r\}$, a budget with a cap on every coordinate.

    >>> import jax.numpy as jnp
    >>> simplex = CappedSimplex(jnp.array([0.5, 0.75, 1.0]))
    >>> simplex.lmo(jnp.array([2.0, -1.0, 0.5])).dense().tolist()
    [0.0, 0.75, 0.25]
    """

    facts = DomainFacts("a sort")

    caps: Float[Array, " n"]
    total: Float[Array, ""]

    def __init__(self, caps: Any, total: Any = 1.0):
        caps = _bounds(caps, "caps")
        self.total = _reachable(scalar(total, "total", positive=True), caps, "caps")
        self.caps = jnp.minimum(caps, self.total)  # a cap above the total binds nothing

    @property
    def shape(self):
        return self.caps.shape

    def lmo(self, direction, guess=None):
        return Dense(_fill_cheapest(direction, self.caps.astype(direction.dtype), self.total.astype(direction.dtype)))

    def start(self):
        return self.caps * (self.total / self.caps.sum())

    def diameter(self, ord):
        r"""Upper bounds, attained for equal caps that divide the total; the exact value is as hard as the partition
        problem.

        $\|x-y\|_1 = 2\sum_i (x_i-y_i)_+ \le 2\min(r, \sum_i c_i - r)$, since $0 \le y$ and $x \le c$; the l2 norm is
        largest if the largest caps are used up first.
        """
        l1 = 2 * jnp.minimum(self.total, jnp.maximum(self.caps.sum() - self.total, 0))
        return l1 if ord == 1 else _longest(jnp.minimum(self.caps, l1 / 2), l1)

    def contains(self, x, tol=1e-6):
        caps, total = self.caps.astype(x.dtype), self.total.astype(x.dtype)
        slack = tol * total
        return (jnp.abs(x.sum() - total) <= slack) & jnp.all((x >= -slack) & (x <= caps + slack))

    def project(self, x):
        return onto_capped_simplex(x, self.caps.astype(x.dtype), self.total.astype(x.dtype))


class ReverseKnapsack(AbstractDomain):
    r"""$X = \{x \in \mathbb{R}^n : 0 \le x_i \le u_i,\ \sum_i x_i \ge N\}$: bounded shares that cover a demand.

    >>> import jax.numpy as jnp
    >>> knapsack = ReverseKnapsack(jnp.array([1.0, 1.0, 2.0]), total=2.5)
    >>> knapsack.lmo(jnp.array([2.0, -1.0, 0.5])).dense().tolist()
    [0.0, 1.0, 1.5]
    """

    facts = DomainFacts("a sort")

    upper: Float[Array, " n"]
    total: Float[Array, ""]

    def __init__(self, upper: Any, total: Any):
        self.upper = _bounds(upper, "upper")
        self.total = _reachable(scalar(total, "total", positive=True), self.upper, "upper")

    @property
    def shape(self):
        return self.upper.shape

    def lmo(self, direction, guess=None):
        upper, total = self.upper.astype(direction.dtype), self.total.astype(direction.dtype)
        return Dense(jnp.where(direction <= 0, upper, _fill_cheapest(direction, upper, total)))

    def start(self):
        return self.upper * (0.5 + 0.5 * self.total / self.upper.sum())

    def diameter(self, ord):
        r"""Upper bounds, attained for equal bounds that divide $s = \sum_i u_i - N$, as for `CappedSimplex`.

        u - x and u - y are nonnegative with sums at most s, so $|x_i-y_i| \le \min(u_i, s)$ and
        $\|x-y\|_1 \le 2s$; the l2 norm is largest if the largest of these are used up first.
        """
        spare = jnp.maximum(self.upper.sum() - self.total, 0)
        widths = jnp.minimum(self.upper, spare)
        l1 = jnp.minimum(2 * spare, widths.sum())
        return l1 if ord == 1 else _longest(widths, l1)

    def contains(self, x, tol=1e-6):
        upper, total = self.upper.astype(x.dtype), self.total.astype(x.dtype)
        slack = tol * upper.max()
        return (x.sum() >= total - tol * upper.sum()) & jnp.all((x >= -slack) & (x <= upper + slack))

    def project(self, x):
        upper, total = self.upper.astype(x.dtype), self.total.astype(x.dtype)
        boxed = jnp.clip(x, 0, upper)
        return jnp.where(boxed.sum() >= total, boxed, onto_capped_simplex(x, jnp.minimum(upper, total), total))


def _fill_cheapest(costs, caps, total):
    """How much each entry gets if `total` goes to the cheapest entries first, each up to its cap."""
    order = jnp.argsort(costs)
    caps = caps[order]
    before = jnp.cumsum(jnp.concatenate([jnp.zeros(1, caps.dtype), caps[:-1]]))
    return jnp.zeros_like(caps).at[order].set(jnp.clip(total - before, 0, caps))


def _longest(widths, l1):
    """max |z|_2 over {0 <= z <= widths, sum z <= l1}."""
    return tree.length(_fill_cheapest(-widths, widths, l1))


def _bounds(values, name):
    """The user's bounds as a vector, checked to be nonnegative."""
    values = vector(values, name)
    if not tree.is_traced(values) and np.min(values) < 0:
        raise DomainError(f"{name} must not be negative, got {np.min(values)}")
    return values


def _reachable(total, bounds, name):
    """`total`, checked to be at most the sum of the bounds.

    If only rounding puts it above, that sum.
    """
    if not tree.is_traced(bounds, total) and np.sum(bounds) < (1 - 1e-6) * float(total):
        raise DomainError(f"the sum of {name} must reach total={float(total)}, got {np.sum(bounds)}")
    return jnp.minimum(total, jnp.sum(bounds))
