"""Positive semidefinite matrices of bounded trace, whose LMO finds the lowest eigenvector."""

import functools
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...core import tree
from ...core.facts import DomainFacts
from ..arguments import count, scalar
from ..vectors.balls import rescale
from ..vectors.simplices import ProbabilitySimplex, UnitSimplex
from ..vertices import RankOne
from .base import (
    AbstractSymmetric,
    as_method,
    is_exact,
    relative_gap,
    symmetric_part,
    unless,
)
from .krylov import (
    fixed_directions,
    lanczos,
    nudged,
    power,
    ritz_gap,
    ritz_range,
    scaled_products,
    top_eigenvector,
    unit,
)


class _AbstractTrace(AbstractSymmetric):
    """Positive semidefinite matrices of bounded trace. `lmo` works on the symmetric part of the direction."""

    simplex: ClassVar[type[Any]]  # what the eigenvalues lie in
    n: int = eqx.field(static=True)
    values: ProbabilitySimplex | UnitSimplex
    method: str = eqx.field(static=True)
    iterations: int = eqx.field(static=True)

    def __init__(self, n, trace, method, iterations):
        self.n = count(n)
        self.values = self.simplex(self.n, scalar(trace, "trace", positive=True))
        self.method = as_method(method)
        self.iterations = count(iterations, "iterations")

    @property
    def trace(self) -> Float[Array, ""]:
        return self.values.total

    def _total(self, quotient) -> Float[Array, ""]:
        r"""The trace r for which $r\,q^T d q$ is lowest, given the sign of $q^T d q$ by `quotient`."""
        return self.values.lmo(jnp.full(self.n, quotient)).value

    def lmo(self, direction, guess: Any = None):
        direction = symmetric_part(direction)
        with jax.default_matmul_precision("highest"):
            if guess is not None and self.method != "exact":
                q, zero = self._improved(direction, unit(nudged(guess.right, direction.dtype)))
            else:
                direction, zero = rescale(direction)
                q = _lowest_eigenvector(direction, is_exact(self.method, self.n))
            short = q * (0.5 / self.n**0.5)  # so that nothing overflows: only the sign is asked for
            total = self._total(short @ (direction @ short))
        return unless(zero, RankOne(q, q, total), self.vertex() if guess is None else guess)

    def _improved(self, direction, first):
        """(q, whether the direction is 0): a unit vector q nearer to the lowest eigenvector than `first`."""
        if self.method != "power":
            forward, _, zero = scaled_products(direction, first)
            return lanczos(lambda x: -forward(x), first, self.iterations), zero
        # n bound > |d|: all eigenvalues of 1 - d / (n bound) are positive, and no sum overflows
        bound = 1.01 * jnp.max(jnp.sum(jnp.abs(direction) / self.n, axis=0))
        zero = bound <= jnp.finfo(direction.dtype).tiny
        bound = jnp.where(zero, 1, bound)
        return power(lambda x: x - (direction @ (x / self.n)) / bound, first, self.iterations, unit), zero

    def vertex(self):
        q = fixed_directions((self.n,))
        return tree.astype(RankOne(q, q, self.trace), self.trace.dtype)

    def likely_lmo_error(self, direction, vertex, *, key, steps=64, failure=1e-6):
        """A bound on `lmo_error` that is wrong with probability at most `failure`, by Lanczos steps from a random
        vector.

        See `NuclearNormBall.likely_lmo_error`.
        """
        direction, _ = rescale(symmetric_part(direction))
        with jax.default_matmul_precision("highest"):
            first = unit(jax.random.normal(key, (self.n,), direction.dtype))
            lowest, highest = ritz_range(lambda x: direction @ x, first, steps)
        # each end is missed by at most gap * (the true distance of the ends), with half of the failures
        gap = ritz_gap(self.n, steps, failure / 2).astype(direction.dtype)
        beyond = jnp.where(gap < 0.5, gap / (1 - 2 * gap) * (highest - lowest), jnp.inf)
        bound, reached = (self._total(value) * value for value in (lowest - beyond, lowest))
        largest = jnp.maximum(-reached, self._total(-highest) * highest)
        return relative_gap(vertex.dot(direction) - bound, largest)


class Spectraplex(_AbstractTrace):
    r"""$X = \{x \in \mathbb{S}^n : x \succeq 0,\ \mathrm{tr}\,x = r\}$, with vertices $r\,qq^\top$.

    `lmo` is as for `NuclearNormBall`, on the symmetric part of the direction; from a guess it makes
    `iterations` Lanczos steps, with one product each.

    >>> import jax.numpy as jnp
    >>> spectraplex = Spectraplex(2)
    >>> spectraplex.lmo(jnp.array([[1.0, 2.0], [2.0, 1.0]])).dense().round(4).tolist()
    [[0.5, -0.5], [-0.5, 0.5]]
    """

    facts = DomainFacts("a few passes, warm")

    simplex = ProbabilitySimplex

    def __init__(self, n: Any, trace: Any = 1.0, *, method: Any = "auto", iterations: Any = 4):
        super().__init__(n, trace, method, iterations)


class UnitSpectrahedron(_AbstractTrace):
    r"""$X = \{x \in \mathbb{S}^n : x \succeq 0,\ \mathrm{tr}\,x \le r\}$, with vertices $r\,qq^\top$ and 0.

    `lmo` is as for `Spectraplex`.

    >>> import jax.numpy as jnp
    >>> spectrahedron = UnitSpectrahedron(2)
    >>> spectrahedron.lmo(jnp.array([[1.0, 2.0], [2.0, 1.0]])).dense().round(4).tolist()
    [[0.5, -0.5], [-0.5, 0.5]]
    >>> abs(spectrahedron.lmo(jnp.array([[2.0, 1.0], [1.0, 2.0]])).dense()).tolist()
    [[0.0, 0.0], [0.0, 0.0]]
    """

    facts = DomainFacts("a few passes, warm")

    simplex = UnitSimplex

    def __init__(self, n: Any, trace: Any = 1.0, *, method: Any = "auto", iterations: Any = 4):
        super().__init__(n, trace, method, iterations)


@functools.partial(jax.jit, static_argnums=1)
def _lowest_eigenvector(matrix, exact):
    """A unit eigenvector of the lowest eigenvalue, by a full decomposition if `exact`, else by Lanczos steps."""

    def decomposed():
        return jnp.linalg.eigh(matrix).eigenvectors[:, 0]

    return decomposed() if exact else top_eigenvector(lambda x: -(matrix @ x), decomposed, len(matrix), matrix.dtype)
