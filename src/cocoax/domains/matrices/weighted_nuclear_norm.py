"""The ball of a weighted nuclear norm, for matrices whose rows and columns are seen unequally often."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...core import tree
from ...core.facts import DomainFacts
from ...errors import DomainError
from ..base import AbstractDomain
from ..vertices import RankOne
from .nuclear_norm import NuclearNormBall


class WeightedNuclearNormBall(AbstractDomain):
    r"""$X = \{x : \|\mathrm{diag}(p)^{1/2}\,x\,\mathrm{diag}(q)^{1/2}\|_* \le r\}$ (Srebro, Salakhutdinov, 2010).

    p and q are usually the shares of all ratings in each row and column. Rows and columns with many ratings then pay
    more for large factors, but must fit many entries; the others may stay small. The LMO finds the largest singular
    pair of the direction with rows divided by $\sqrt p$ and columns by $\sqrt q$.

    **Arguments:**

    - `rows`, `columns`: p and q, positive; the shape is their lengths.
    - `radius`: r.
    - `method`, `iterations`: those of `NuclearNormBall`.

    >>> import jax.numpy as jnp
    >>> ball = WeightedNuclearNormBall([1.0, 4.0], [1.0, 1.0], radius=2.0)
    >>> abs(ball.lmo(jnp.array([[0.0, 0.0], [0.0, 3.0]])).dense().round(4)).tolist()
    [[0.0, 0.0], [0.0, 1.0]]
    """

    facts = DomainFacts("a few passes, warm")

    ball: NuclearNormBall
    rows: Float[Array, " m"]  # roots of p
    columns: Float[Array, " n"]

    def __init__(self, rows: Any, columns: Any, radius: Any, *, method: Any = "auto", iterations: Any = 4):
        self.rows, self.columns = _root(rows, "rows"), _root(columns, "columns")
        shape = self.rows.size, self.columns.size
        self.ball = NuclearNormBall(shape, radius, method=method, iterations=iterations)

    @property
    def shape(self):
        return self.ball.shape

    @property
    def radius(self) -> Float[Array, ""]:
        """The largest weighted nuclear norm."""
        return self.ball.radius

    def start(self):
        return jnp.zeros(self.shape)

    def vertex(self):
        return self._unweighted(self.ball.vertex())

    def lmo(self, direction, guess: Any = None):
        return self._unweighted(self.ball.lmo(*self._weighted(direction, guess)))

    def lowest(self, direction, guess: Any = None):
        return self.ball.lowest(*self._weighted(direction, guess))

    def diameter(self, ord):
        rows, columns = self._roots(self.radius.dtype)
        if ord == 2:
            return 2 * self.radius / (rows.min() * columns.min())
        return 2 * self.radius * tree.norm(1 / rows) * tree.norm(1 / columns)

    def inradius(self):
        rows, columns = self._roots(self.radius.dtype)
        return self.radius / (min(self.shape) ** 0.5 * rows.max() * columns.max())

    def contains(self, x, tol=1e-6):
        rows, columns = self._roots(x.dtype)
        return self.ball.contains(rows[:, None] * x * columns[None], tol)

    def _roots(self, dtype):
        return self.rows.astype(dtype), self.columns.astype(dtype)

    def _weighted(self, direction, guess):
        """(direction, guess) for the unweighted ball."""
        rows, columns = self._roots(direction.dtype)
        return direction / rows[:, None] / columns[None], None if guess is None else self._times(guess, 1.0)

    def _unweighted(self, vertex: RankOne) -> RankOne:
        """The vertex of X that corresponds to a vertex of the unweighted ball."""
        return self._times(vertex, -1.0)

    def _times(self, vertex: RankOne, power) -> RankOne:
        """The rank-one matrix with rows and columns multiplied by a power of their root weights."""
        rows, columns = self._roots(vertex.left.dtype)
        left, right = vertex.left * rows**power, vertex.right * columns**power
        lengths = tree.norm(left), tree.norm(right)
        return RankOne(left / lengths[0], right / lengths[1], vertex.scale * lengths[0] * lengths[1])


def _root(weights, name) -> Float[Array, " n"]:
    """The square roots of a vector of weights, checked to be positive."""
    weights = np.asarray(weights, float)
    if weights.ndim != 1 or not weights.size or not (np.isfinite(weights).all() and (weights > 0).all()):
        raise DomainError(f"{name} must be a vector of positive weights, got {weights!r:.80}")
    return jnp.sqrt(jnp.asarray(weights))
