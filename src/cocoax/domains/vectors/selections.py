"""Sets whose vertices select k of n coordinates, or order them.

The base polytope of the uniform matroid is `HyperSimplex`; other matroids are in `matroids.py`.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...core import tree
from ...core.facts import DomainFacts
from ..arguments import at_most, scalar, vector
from ..base import AbstractDomain, centred
from ..vertices import Dense, Sparse
from .simplices import onto_capped_simplex


class AbstractSelection(AbstractDomain):
    """Vectors with entries from 0 to v whose sum is bounded."""

    axes = 1
    n: int = eqx.field(static=True)
    k: int = eqx.field(static=True)
    value: Float[Array, ""]

    def __init__(self, n, k, value=1.0):
        self.n, self.k = at_most(n, k)
        self.value = scalar(value, "value", positive=True)

    @property
    def shape(self):
        return (self.n,)


class HyperSimplex(AbstractSelection):
    r"""$X = \{x \in \mathbb{R}^n : 0 \le x_i \le v,\ \sum_i x_i = kv\}$: exactly k of n coordinates at v.

    >>> import jax.numpy as jnp
    >>> HyperSimplex(4, 2).lmo(jnp.array([2.0, -1.0, 0.5, 3.0])).dense().tolist()
    [0.0, 1.0, 1.0, 0.0]
    """

    facts = DomainFacts("a pass over the direction")

    def __init__(self, n: Any, k: Any, value: Any = 1.0):
        super().__init__(n, k, value)

    def lmo(self, direction, guess=None):
        _, index = jax.lax.top_k(-direction, self.k)
        return Sparse(index, jnp.full(self.k, self.value, direction.dtype), self.shape)

    def tangent(self, direction):
        return centred(direction)

    def start(self):
        return jnp.full(self.n, self.k / self.n * self.value)

    def diameter(self, ord):
        return (2 * min(self.k, self.n - self.k)) ** (1 / ord) * self.value

    def inradius(self):
        return min(self.k, self.n - self.k) / max(self.n * (self.n - 1), 1) ** 0.5 * self.value

    def contains(self, x, tol=1e-6):
        x = x / self.value.astype(x.dtype)
        return (jnp.abs(x.sum() - self.k) <= tol * self.k) & jnp.all((x >= -tol) & (x <= 1 + tol))

    def project(self, x):
        value = self.value.astype(x.dtype)
        return onto_capped_simplex(x, jnp.full_like(x, value), self.k * value)


class UnitHyperSimplex(AbstractSelection):
    r"""$X = \{x \in \mathbb{R}^n : 0 \le x_i \le v,\ \sum_i x_i \le kv\}$: at most k of n coordinates at v.

    >>> import jax.numpy as jnp
    >>> UnitHyperSimplex(4, 2).lmo(jnp.array([2.0, -1.0, 0.5, 3.0])).dense().tolist()
    [0.0, 1.0, 0.0, 0.0]
    """

    facts = DomainFacts("a pass over the direction")

    def __init__(self, n: Any, k: Any, value: Any = 1.0):
        super().__init__(n, k, value)

    def lmo(self, direction, guess=None):
        highest, index = jax.lax.top_k(-direction, self.k)
        return Sparse(index, jnp.where(highest > 0, self.value.astype(direction.dtype), 0), self.shape)

    def start(self):
        return jnp.full(self.n, self.k / (2 * self.n) * self.value)

    def diameter(self, ord):
        return min(2 * self.k, self.n) ** (1 / ord) * self.value

    def inradius(self):
        return self.k / 2 / self.n * self.value  # the sum leaves more room, and so does the value

    def contains(self, x, tol=1e-6):
        x = x / self.value.astype(x.dtype)
        return (x.sum() <= (1 + tol) * self.k) & jnp.all((x >= -tol) & (x <= 1 + tol))

    def project(self, x):
        return onto_selection(x, self.value.astype(x.dtype), self.k)


class Permutahedron(AbstractDomain):
    r"""$X = \mathrm{conv}\{(w_{\pi(1)}, \dots, w_{\pi(n)}) : \pi \text{ a permutation}\}$, all orders of given values.

    >>> import jax.numpy as jnp
    >>> Permutahedron(jnp.array([1.0, 2.0, 3.0])).lmo(jnp.array([2.0, -1.0, 0.5])).dense().tolist()
    [1.0, 3.0, 2.0]
    """

    facts = DomainFacts("a sort")

    axes = 1
    values: Float[Array, " n"]  # from the largest down

    def __init__(self, values: Any):
        self.values = -jnp.sort(-vector(values, "values"))

    @property
    def shape(self):
        return self.values.shape

    def lmo(self, direction, guess=None):
        # dense, because the permutation would be as large
        point = jnp.zeros_like(direction).at[jnp.argsort(direction)].set(self.values.astype(direction.dtype))
        return Dense(point)

    def tangent(self, direction):
        return centred(direction)

    def start(self):
        return jnp.full(self.shape, self.values.mean())

    def diameter(self, ord):
        """From one order to its reverse: no other pairing of the values makes a convex function of them larger."""
        widths = self.values - self.values[::-1]
        return tree.length(widths) if ord == 2 else tree.norm(widths, ord)

    def contains(self, x, tol=1e-6):
        """Whether the sum of the k largest entries is at most that of the k largest values for all k, with equality for
        all entries.

        That is the criterion of Rado (1952).
        """
        excess = jnp.cumsum(-jnp.sort(-x)) - jnp.cumsum(self.values.astype(x.dtype))
        slack = tol * tree.norm(self.values, 1).astype(x.dtype)
        return jnp.all(excess <= slack) & (excess[-1] >= -slack)

    def project(self, x):
        """The nearest point, by isotonic regression of the sorted entries (Lim, Wright, 2016) in an n by n array."""
        values = self.values.astype(x.dtype)
        order = jnp.argsort(-x)
        # only differences matter, and none beyond the widest of the values: large entries do not swallow them
        drops = jnp.minimum(-jnp.diff(x[order]), values[0] - values[-1])
        ordered = -jnp.cumsum(jnp.concatenate([jnp.zeros(1, x.dtype), drops]))
        return jnp.zeros_like(x).at[order].set(ordered - _nonincreasing(ordered - values))


def onto_selection(x, value, k):
    """The nearest point of {0 <= y <= value, sum y <= k value}."""
    boxed = jnp.clip(x, 0, value)
    return jnp.where(boxed.sum() <= k * value, boxed, onto_capped_simplex(x, jnp.full_like(x, value), k * value))


def _nonincreasing(x):
    """The nearest nonincreasing sequence: entry i is the minimum over j <= i of the maximum over k >= i of
    mean(x_j..x_k).
    """
    position = jnp.arange(x.size)
    first, last = position[:, None], position[None, :]
    sums = jnp.concatenate([jnp.zeros(1, x.dtype), jnp.cumsum(x)])
    means = (sums[None, 1:] - sums[:-1, None]) / jnp.maximum(last - first + 1, 1).astype(x.dtype)
    highest = jax.lax.cummax(jnp.where(first <= last, means, -jnp.inf), axis=1, reverse=True)
    return jnp.min(jnp.where(first <= last, highest, jnp.inf), axis=0)
