"""Sets of matrices defined by their singular values or by their eigenvalues."""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...core import tree
from ...errors import DomainError
from ..arguments import as_shape
from ..base import AbstractDomain
from ..vectors.balls import rescale

_LARGEST_EXACT = 256  # rows or columns that are decomposed by default
_ABOVE = 1e-3  # how far above the square of a guess a proof is tried


class AbstractSpectral(AbstractDomain):
    """The matrices whose singular values, or eigenvalues, lie in a set S of vectors, in any order."""

    decomposes = True
    values: eqx.AbstractVar[Any]  # S, a domain

    @abc.abstractmethod
    def spectrum(self, x: Float[Array, "m n"]) -> Float[Array, " k"]:
        """The values of x."""

    @abc.abstractmethod
    def with_spectrum(self, function, x: Float[Array, "m n"]) -> Float[Array, "m n"]:
        """The matrix with the singular vectors, or eigenvectors, of x, and with `function` of its values."""

    def diameter(self, ord):
        r"""Exact in the l2 norm. In the l1 norm an upper bound, attained by matrices with entries of one size.

        $\langle x, y\rangle \ge \sum_i \lambda_i(x)\lambda_{n+1-i}(y)$ for ordered eigenvalues, and
        $\ge -\sum_i \sigma_i(x)\sigma_i(y)$ for singular values (von Neumann, 1937): x and y are no farther apart
        than two points of S, which diagonal matrices attain. And $\|x\|_1 \le \sqrt{mn}\,\|x\|_2$.
        """
        return self.values.diameter(2) * (self.dimension**0.5 if ord == 1 else 1.0)

    def inradius(self):
        """The inradius of S: a change of x changes its values by no more than its length (von Neumann, 1937)."""
        return self.values.inradius()

    def lowest(self, direction, guess: Any = None):
        """min <direction, x> over X, by a full decomposition, because the LMO of large matrices is not exact."""
        return self.values.lowest(self.spectrum(direction))

    def project(self, x):
        """The matrix whose values are projected onto S, by a full decomposition."""
        with jax.default_matmul_precision("highest"):
            return self.with_spectrum(self.values.project, x)

    def lmo_error(self, direction, vertex):
        r"""$|\langle d, v\rangle - \min_X\langle d, x\rangle| / \max_X|\langle d, x\rangle|$, by a full decomposition.

        It holds up to rounding, however v was computed. A v outside X with too small a value also has a large error.
        """
        direction, _ = rescale(direction)
        spectrum = self.spectrum(direction)
        lowest, highest = self.values.lowest(spectrum), self.values.support(spectrum)
        return relative_gap(vertex.dot(direction) - lowest, jnp.maximum(-lowest, highest))


class AbstractSingular(AbstractSpectral):
    """All m by n matrices with singular values in a set that is symmetric in the signs."""

    axes = 1
    sizes: eqx.AbstractVar[tuple[int, int]]

    @property
    def shape(self):
        return self.sizes

    def start(self):
        return jnp.zeros(self.shape)

    def contains(self, x, tol=1e-6):
        return self.values.contains(self.spectrum(x), tol)

    def project(self, x):
        """The matrix whose singular values are projected onto S.

        Points of the ball around 0 that X contains need no decomposition; a batch saves it only if all its points lie
        there.
        """
        return _projected(x, self)

    def spectrum(self, x):
        return jnp.linalg.svd(x, compute_uv=False)

    def with_spectrum(self, function, x):
        left, values, right = jnp.linalg.svd(x, full_matrices=False)
        return (left * function(values)[None]) @ right


@eqx.filter_custom_jvp
def _projected(x, domain):
    """The projection, computed only if x lies outside the inner ball; with a derivative of its own."""
    outside = ~(tree.norm(x) <= domain.inradius().astype(x.dtype))
    # a loop of at most one step: under vmap both sides of a `cond` are computed
    return jax.lax.while_loop(
        lambda state: state[0],
        lambda state: (jnp.zeros_like(outside), AbstractSpectral.project(domain, state[1])),
        (outside, x),
    )[1]


@_projected.def_jvp
def _projected_jvp(primals, tangents):
    return eqx.filter_jvp(lambda x, domain: AbstractSpectral.project(domain, x), primals, tangents)


class AbstractSymmetric(AbstractSpectral):
    """All symmetric n by n matrices with eigenvalues in a set."""

    axes = 2  # one on the diagonal, one beside it
    n: eqx.AbstractVar[int]

    @property
    def shape(self):
        return (self.n, self.n)

    def tangent(self, direction):
        """The symmetric part of the direction, without its multiple of the identity if all points have one trace."""
        direction = symmetric_part(direction)
        kept = self.values.tangent(jnp.ones(self.n, direction.dtype))
        return direction - jnp.diag((1 - kept) * jnp.trace(direction) / self.n)

    def start(self):
        return jnp.diag(self.values.start())

    def contains(self, x, tol=1e-6):
        largest = self.values.support(jnp.zeros(self.n, x.dtype).at[0].set(1))  # eigenvalue of any x in the set
        symmetric = jnp.max(jnp.abs(x - x.T)) <= tol * largest
        return symmetric & self.values.contains(self.spectrum(x), tol)

    def spectrum(self, x):
        return jnp.linalg.eigvalsh(x)

    def with_spectrum(self, function, x):
        values, vectors = jnp.linalg.eigh(symmetric_part(x))
        return (vectors * function(values)[None]) @ vectors.T


def symmetric_part(x):
    half = 0.5 * x  # XLA makes 0.5 * (x + x.T) of 0.5 * x + 0.5 * x.T, which may overflow
    return half + half.T


def relative_gap(gap, largest):
    """|gap| / largest, and 0 where both are 0."""
    return jnp.abs(gap) / jnp.where(largest > 0, largest, 1)


def unless(zero, vertex, default):
    """`default` if `zero` (the direction was zero), else `vertex`; in the vertex's dtype."""
    return tree.where(zero, tree.astype(default, tree.dtype(vertex)), vertex)


def as_matrix_shape(shape, name) -> tuple[int, int]:
    """The shape (rows, columns) of a set called `name`."""
    match as_shape(shape):
        case (rows, columns):
            return rows, columns
        case _:
            raise DomainError(f"a {name} needs a shape (rows, columns), got {shape}")


def as_method(method) -> str:
    if method not in ("auto", "power", "exact", "krylov"):
        raise DomainError(f"method must be 'auto', 'power', 'exact' or 'krylov', got {method!r}")
    return method


def is_exact(method: str, size: int) -> bool:
    """Whether an LMO without a guess uses a full decomposition."""
    return method == "exact" or (method != "krylov" and size <= _LARGEST_EXACT)


def proven_norm(matrix, guess):
    r"""(number, proven): a number slightly above `guess`, and whether it is proven to be at least the largest singular
    value.

    If $sI - xx^\top$ has a Cholesky decomposition, no singular value of x is above $\sqrt s$.
    """
    size = jnp.max(jnp.abs(matrix))
    size = jnp.where(size > 0, size, 1)
    with jax.default_matmul_precision("highest"):
        scaled, square = matrix / size, (1 + _ABOVE) * (guess / size) ** 2
        gram = scaled @ scaled.T if scaled.shape[0] <= scaled.shape[1] else scaled.T @ scaled
        factor = jnp.linalg.cholesky(square * jnp.eye(len(gram), dtype=gram.dtype) - gram)
    rounding = 4 * len(gram) * float(jnp.finfo(gram.dtype).eps)
    return size * jnp.sqrt((1 + rounding) * square), jnp.isfinite(factor[-1, -1])
