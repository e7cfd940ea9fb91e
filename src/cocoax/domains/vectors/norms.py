"""Balls of lp norms, and of norms that weigh the entries by rank."""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...core import tree
from ...core.facts import DomainFacts
from ...errors import DomainError
from ..arguments import at_most, exponent, vector
from ..vertices import Dense, Sparse
from .balls import AbstractBall, L1Ball, L2Ball, LinfBall, rescale
from .selections import onto_selection

_AS_INFINITE = 1e30  # for larger p, n^(1/p) rounds to 1 for every n


class LpBall(AbstractBall):
    r"""$X = \{x : \sum_i |x_i|^p \le r^p\}$ for $1 \le p \le \infty$, of any shape.

    The LMO is Hölder's equality, $v_i = -r\,\mathrm{sign}(d_i)\,w_i / \|w\|_p$ with $w_i = |d_i|^{1/(p-1)}$.
    Projections are known for p = 1, 2 and infinity.

    >>> import jax.numpy as jnp
    >>> ball = LpBall(3, radius=36.0, p=1.5)
    >>> ball.lmo(jnp.array([3.0, -4.0, 5.0])).dense().round().tolist()
    [-9.0, 16.0, -25.0]
    """

    facts = DomainFacts("a pass over the direction")

    p: float = eqx.field(static=True)
    plain: L1Ball | L2Ball | LinfBall | None  # the same set, where it has a class of its own

    def __init__(self, shape: Any, radius: Any, p: Any):
        super().__init__(shape, radius)
        self.p = exponent(p)
        kind = LinfBall if self.p > _AS_INFINITE else {1.0: L1Ball, 2.0: L2Ball}.get(self.p)
        self.plain = None if kind is None else kind(shape, radius)

    def lmo(self, direction, guess=None):
        if self.plain is not None:
            return self.plain.lmo(direction)
        powers = _relative_magnitudes(direction) ** (1 / (self.p - 1))
        lengths = self.radius.astype(direction.dtype) * powers / _lp_norm(powers, self.p)
        return Dense(jnp.where(direction > 0, -lengths, lengths))

    def diameter(self, ord):
        return 2 * math.prod(self.shape) ** max(0.0, 1 / ord - 1 / self.p) * self.radius

    def inradius(self):
        return self.dimension ** min(0.0, 1 / 2 - 1 / self.p) * self.radius

    def contains(self, x, tol=1e-6):
        if self.plain is not None:
            return self.plain.contains(x, tol)
        return _lp_norm(x, self.p) <= (1 + tol) * self.radius.astype(x.dtype)

    def project(self, x):
        return super().project(x) if self.plain is None else self.plain.project(x)


class AbstractTop(AbstractBall):
    """Balls of norms that depend on the k largest entries only."""

    k: int = eqx.field(static=True)

    def __init__(self, n, k, radius):
        n, self.k = at_most(n, k)
        super().__init__(n, radius)

    @property
    def n(self) -> int:
        return self.dimension


class KSparse(AbstractTop):
    r"""$X = \{x \in \mathbb{R}^n : \sum_i |x_i| \le kr,\ \max_i |x_i| \le r\}$, with k entries $\pm r$ in a vertex.

    >>> import jax.numpy as jnp
    >>> KSparse(4, 2, radius=3.0).lmo(jnp.array([1.0, -2.0, 0.0, 4.0])).dense().tolist()
    [0.0, 3.0, 0.0, -3.0]
    """

    facts = DomainFacts("a pass over the direction")

    def __init__(self, n: Any, k: Any, radius: Any):
        super().__init__(n, k, radius)

    def lmo(self, direction, guess=None):
        radius = self.radius.astype(direction.dtype)
        _, index = jax.lax.top_k(jnp.abs(direction), self.k)
        return Sparse(index, jnp.where(direction[index] > 0, -radius, radius), self.shape)

    def diameter(self, ord):
        return 2 * self.k ** (1 / ord) * self.radius

    def inradius(self):
        return min(1.0, self.k / self.dimension**0.5) * self.radius

    def contains(self, x, tol=1e-6):
        radius = (1 + tol) * self.radius.astype(x.dtype)
        return (tree.norm(x, 1) <= self.k * radius) & (tree.norm(x, jnp.inf) <= radius)

    def project(self, x):
        return jnp.sign(x) * onto_selection(jnp.abs(x), self.radius.astype(x.dtype), self.k)


class KNormBall(AbstractTop):
    r"""$X = \{x \in \mathbb{R}^n : \sum_{i\le k} |x|_{(i)} \le r\}$, where $|x|_{(i)}$ is the i-th largest.

    It is the hull of the l1 ball of radius r and the linf ball of radius r/k.

    >>> import jax.numpy as jnp
    >>> ball = KNormBall(3, 2, radius=4.0)
    >>> ball.lmo(jnp.array([1.0, -4.0, 1.0])).dense().tolist()
    [0.0, 4.0, 0.0]
    >>> ball.lmo(jnp.array([2.0, -3.0, 2.0])).dense().tolist()
    [-2.0, 2.0, -2.0]
    """

    facts = DomainFacts("a pass over the direction")

    def __init__(self, n: Any, k: Any, radius: Any):
        super().__init__(n, k, radius)

    def lmo(self, direction, guess=None):
        direction, _ = rescale(direction)
        radius = self.radius.astype(direction.dtype)
        signs = jnp.where(direction > 0, -radius, radius)
        index = jnp.argmax(jnp.abs(direction))
        one = jnp.where(jnp.arange(direction.size) == index, signs, 0)
        return Dense(jnp.where(self.k * jnp.abs(direction[index]) >= tree.norm(direction, 1), one, signs / self.k))

    def diameter(self, ord):
        return 2 * max(1.0, self.dimension ** (1 / ord) / self.k) * self.radius

    def inradius(self):
        return self.radius / self.k**0.5

    def contains(self, x, tol=1e-6):
        return jnp.sort(jnp.abs(x))[-self.k :].sum() <= (1 + tol) * self.radius.astype(x.dtype)


class OWLBall(AbstractBall):
    r"""$X = \{x \in \mathbb{R}^n : \sum_i w_i |x|_{(i)} \le r\}$ for weights $w_1 \ge \dots \ge w_n \ge 0$, $w_1 > 0$.

    $|x|_{(i)}$ is the i-th largest: the ordered weighted l1 norm. In a vertex, the j largest entries of the
    direction are at $\pm r / \sum_{i\le j} w_i$, for the best j.

    >>> import jax.numpy as jnp
    >>> ball = OWLBall(jnp.array([2.0, 1.0, 1.0]), radius=6.0)
    >>> ball.lmo(jnp.array([1.0, -4.0, 3.0])).dense().tolist()
    [0.0, 2.0, -2.0]
    """

    facts = DomainFacts("a sort")

    weights: Float[Array, " n"]

    def __init__(self, weights: Any, radius: Any):
        self.weights = vector(weights, "weights", of="rank")
        super().__init__(self.weights.size, radius)
        if tree.is_traced(self.weights):
            return
        if np.any(np.diff(self.weights) > 0) or np.max(self.weights) <= 0 or np.min(self.weights) < 0:
            raise DomainError(f"weights must not increase or be negative, and the first be positive, got {weights}")

    def lmo(self, direction, guess=None):
        direction, _ = rescale(direction)
        order = jnp.argsort(-jnp.abs(direction))
        sizes = self._entry_sizes().astype(direction.dtype)
        best = jnp.argmax(jnp.cumsum(jnp.abs(direction[order])) * sizes)
        signs = jnp.where(direction[order] > 0, -sizes[best], sizes[best])
        return Dense(jnp.zeros_like(direction).at[order].set(jnp.where(jnp.arange(order.size) <= best, signs, 0)))

    def diameter(self, ord):
        counts = jnp.arange(1, self.weights.size + 1)
        return 2 * jnp.max(counts.astype(float) ** (1 / ord) * self._entry_sizes())

    def inradius(self):
        return self.radius / tree.norm(self.weights)

    def contains(self, x, tol=1e-6):
        norm = tree.dot(self.weights.astype(x.dtype), -jnp.sort(-jnp.abs(x)))
        return norm <= (1 + tol) * self.radius.astype(x.dtype)

    def _entry_sizes(self):
        """The size of the nonzero entries in a vertex with 1, 2, ... of them."""
        return self.radius / jnp.cumsum(self.weights)


def _lp_norm(x, p):
    """The lp norm of all entries of x together."""
    return tree.norm(x, jnp.inf) * jnp.sum(_relative_magnitudes(x) ** p) ** (1 / p)


def _relative_magnitudes(x):
    """|x_i| over the largest magnitude; the largest entry becomes exactly 1, so that all its powers are 1."""
    magnitudes, largest = jnp.abs(x), tree.norm(x, jnp.inf)
    shares = magnitudes / jnp.where(largest > 0, largest, 1)
    return jnp.where(magnitudes < largest, jnp.minimum(shares, 1), 1)
