"""The hull of the projections onto subspaces."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...core import tree
from ...core.facts import DomainFacts
from ..arguments import at_most, count
from ..base import AbstractVertex
from ..vectors.balls import rescale
from ..vectors.selections import HyperSimplex
from .base import AbstractSymmetric, as_method, symmetric_part, unless
from .krylov import block_krylov, fixed_directions, nudged, power


class Projector(AbstractVertex):
    """Q Q^T, with orthonormal columns."""

    factor: Float[Array, "n k"]

    def dense(self):
        return self.factor @ self.factor.T

    def dot(self, x):
        return tree.dot(self.factor, x @ self.factor)

    def combine(self, weights):
        return jnp.einsum("...v,vik,vjk->...ij", weights, self.factor, self.factor)


class Fantope(AbstractSymmetric):
    r"""$X = \{x \in \mathbb{S}^n : 0 \preceq x \preceq 1,\ \mathrm{tr}\,x = k\}$, with vertices $QQ^\top$.

    The columns of Q are orthonormal, and span the k lowest eigenvectors of the symmetric part of the direction.
    `lmo(direction)` uses a full decomposition. `lmo(direction, guess)` makes `iterations` steps from the guess: of a
    block Krylov space (`method="auto"` or `"krylov"`), or of subspace iteration (`"power"`). It uses a full
    decomposition with `method="exact"`, and where that costs no more than the steps, $k \cdot$ `iterations` $\ge n$.

    >>> import jax.numpy as jnp
    >>> fantope = Fantope(3, 2)
    >>> abs(fantope.lmo(jnp.diag(jnp.array([3.0, -1.0, 2.0]))).dense().round(4)).tolist()
    [[0.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """

    facts = DomainFacts("one decomposition")

    n: int = eqx.field(static=True)
    k: int = eqx.field(static=True)
    values: HyperSimplex
    method: str = eqx.field(static=True)
    iterations: int = eqx.field(static=True)

    def __init__(self, n: Any, k: Any, *, method: Any = "auto", iterations: Any = 4):
        self.n, self.k = at_most(n, k)
        self.values = HyperSimplex(self.n, self.k)
        self.method = as_method(method)
        self.iterations = count(iterations, "iterations")

    def lmo(self, direction, guess: Any = None):
        direction, zero = rescale(symmetric_part(direction))
        with jax.default_matmul_precision("highest"):
            if guess is None or self.method == "exact" or self.k * self.iterations >= self.n:
                factor = jnp.linalg.eigh(direction).eigenvectors[:, : self.k]
            else:
                factor = self._improved(direction, _orthonormal(nudged(guess.factor, direction.dtype)))
        return unless(zero, Projector(factor), self.vertex() if guess is None else guess)

    def _improved(self, direction, first):
        """Orthonormal columns nearer to the k lowest eigenvectors than `first`, after `iterations` steps."""
        if self.method != "power":
            return block_krylov(lambda x: direction @ x, first, self.iterations)
        bound = jnp.max(jnp.sum(jnp.abs(direction), axis=0))  # of the eigenvalues: those of bound - d are >= 0
        return power(lambda x: bound * x - direction @ x, first, self.iterations, _orthonormal)

    def vertex(self):
        return Projector(_orthonormal(fixed_directions((self.n, self.k))))


def _orthonormal(x):
    return jnp.linalg.qr(x).Q
