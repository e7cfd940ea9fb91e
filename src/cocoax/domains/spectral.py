"""Sets of matrices whose vertices have rank one. They differ from the rest in that their LMO is iterative."""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import _tree as tree
from ..errors import DomainError
from ._krylov import lanczos, top_eigenvector, unit
from .balls import as_shape, onto_l1_ball, rescale
from .base import AbstractDomain, check_norm, number
from .simplices import onto_simplex
from .vertices import RankOne

_LARGEST_EXACT = 256
_NUDGE = 0.01


class NuclearNormBall(AbstractDomain):
    r"""$X = \{x \in \mathbb{R}^{m\times n} : \sum_i \sigma_i(x) \le r\}$, whose vertices are $r\,u v^\top$.

    `lmo(direction)` answers to rounding (relative error about 1e-6 in float32, 1e-9 in float64): by one dense
    decomposition (`method="exact"`), by restarted Lanczos (`"krylov"`), or by whichever suits the size
    (`"auto"`). `lmo(direction, guess)` makes `iterations` power iterations from the guess, always as many, so
    that in a batch nobody waits; only `"exact"` ignores the guess.

    >>> import jax.numpy as jnp
    >>> ball = NuclearNormBall((2, 3), radius=2.0)
    >>> vertex = ball.lmo(jnp.array([[0.0, 3.0, 0.0], [1.0, 0.0, 0.0]]))
    >>> abs(vertex.dense().round(4)).tolist()
    [[0.0, 2.0, 0.0], [0.0, 0.0, 0.0]]
    """

    sizes: tuple[int, int] = eqx.field(static=True)
    radius: Float[Array, ""]
    method: str = eqx.field(static=True)
    iterations: int = eqx.field(static=True)

    def __init__(self, shape, radius, *, method="auto", iterations=4):
        match as_shape(shape):
            case (rows, columns):
                self.sizes = (rows, columns)
            case _:
                raise DomainError(f"a nuclear-norm ball needs a shape (rows, columns), got {shape}")
        self.radius = number(radius, "radius", positive=True)
        self.method = _method(method)
        self.iterations = _iterations(iterations)

    @property
    def shape(self):
        return self.sizes

    def lmo(self, direction, guess: Any = None):
        direction, zero = rescale(direction)
        with jax.default_matmul_precision("highest"):
            if guess is None or self.method == "exact":
                left, right = _top_singular_pair(direction, _exact(self.method, min(self.shape)))
            else:
                left, right = _power_iteration(direction, _nudged(guess.right, direction), self.iterations)
        found = RankOne(-left, right, self.radius)
        return _unless(zero, found, self.vertex() if guess is None else guess, direction.dtype)

    def vertex(self):
        left, right = (_fixed_unit_vector(size, seed) for seed, size in enumerate(self.shape))
        return tree.astype(RankOne(left, right, self.radius), self.radius.dtype)

    def start(self):
        return jnp.zeros(self.shape)

    def diameter(self, ord):
        check_norm(ord)
        return {1: 2 * math.prod(self.shape) ** 0.5, 2: 2.0}[ord] * self.radius

    def contains(self, x, tol=1e-6):
        return jnp.linalg.svd(x, compute_uv=False).sum() <= (1 + tol) * self.radius.astype(x.dtype)

    def project(self, x):
        """The singular values projected onto the l1 ball, at the price of a full SVD."""
        left, values, right = jnp.linalg.svd(x, full_matrices=False)
        with jax.default_matmul_precision("highest"):
            return (left * onto_l1_ball(values, self.radius.astype(x.dtype))) @ right


class Spectraplex(AbstractDomain):
    r"""$X = \{x \in \mathbb{S}^n : x \succeq 0,\ \mathrm{tr}\,x = r\}$, with vertices $r\,qq^\top$.

    `lmo` is as for `NuclearNormBall`, on the symmetric part of the direction; from a guess it makes
    `iterations` Lanczos steps.

    >>> import jax.numpy as jnp
    >>> spectraplex = Spectraplex(2)
    >>> spectraplex.lmo(jnp.array([[1.0, 2.0], [2.0, 1.0]])).dense().round(4).tolist()
    [[0.5, -0.5], [-0.5, 0.5]]
    """

    n: int = eqx.field(static=True)
    trace: Float[Array, ""]
    method: str = eqx.field(static=True)
    iterations: int = eqx.field(static=True)

    def __init__(self, n, trace=1.0, *, method="auto", iterations=4):
        if n < 1:
            raise DomainError(f"a spectraplex needs at least one row, got n={n}")
        self.n = int(n)
        self.trace = number(trace, "trace", positive=True)
        self.method = _method(method)
        self.iterations = _iterations(iterations)

    @property
    def shape(self):
        return (self.n, self.n)

    def lmo(self, direction, guess: Any = None):
        direction, zero = rescale(0.5 * direction + 0.5 * direction.T)
        with jax.default_matmul_precision("highest"):
            if guess is not None and self.method != "exact":
                first = _nudged(guess.right, direction)
                q = lanczos(lambda x: -(direction @ x), first, self.iterations).vector
            elif _exact(self.method, self.n):
                q = jnp.linalg.eigh(direction).eigenvectors[:, 0]
            else:
                first = _fixed_unit_vector(self.n).astype(direction.dtype)
                q = top_eigenvector(lambda x: -(direction @ x), first)
        found = RankOne(q, q, self.trace)
        return _unless(zero, found, self.vertex() if guess is None else guess, direction.dtype)

    def vertex(self):
        q = _fixed_unit_vector(self.n)
        return tree.astype(RankOne(q, q, self.trace), self.trace.dtype)

    def start(self):
        return self.trace / self.n * jnp.eye(self.n)

    def diameter(self, ord):
        r"""Exact in the l2 norm. In the l1 norm an upper bound, attained for even n.

        For symmetric S with entries in [-1, 1],
        $\lambda_{\max}(S) - \lambda_{\min}(S) \le \sqrt{2}\,\|S\|_F \le \sqrt{2}\,n$.
        """
        check_norm(ord)
        width = 0.0 if self.n == 1 else {1: 2**0.5 * self.n, 2: 2**0.5}[ord]
        return width * self.trace

    def contains(self, x, tol=1e-6):
        trace = self.trace.astype(x.dtype)
        slack = tol * trace
        symmetric = jnp.max(jnp.abs(x - x.T)) <= slack
        positive = jnp.linalg.eigvalsh(x)[0] >= -slack
        return symmetric & positive & (jnp.abs(jnp.trace(x) - trace) <= slack)

    def project(self, x):
        """The eigenvalues of the symmetric part projected onto the simplex, at the price of a full `eigh`."""
        values, vectors = jnp.linalg.eigh(0.5 * x + 0.5 * x.T)
        with jax.default_matmul_precision("highest"):
            return (vectors * onto_simplex(values, self.trace.astype(x.dtype))) @ vectors.T


def _top_singular_pair(matrix, exact):
    """Unit (u, v) with the largest u^T C v, from the Gram matrix of the smaller side."""
    rows, columns = matrix.shape
    if rows < columns:
        return _top_singular_pair(matrix.T, exact)[::-1]
    if exact:
        right = jnp.linalg.eigh(matrix.T @ matrix).eigenvectors[:, -1]
    else:
        first = _fixed_unit_vector(columns).astype(matrix.dtype)
        right = top_eigenvector(lambda x: (matrix @ x) @ matrix, first)
    return unit(matrix @ right), right


def _power_iteration(matrix, right, iterations):
    left = unit(matrix @ right)
    for _ in range(iterations - 1):
        right = unit(left @ matrix)
        left = unit(matrix @ right)
    return left, unit(left @ matrix)


def _nudged(guess, direction):
    """The guess with a little fixed randomness: one orthogonal to the answer would otherwise never turn."""
    nudge = _NUDGE * _fixed_unit_vector(guess.size)
    return unit((guess + nudge).astype(direction.dtype))


def _fixed_unit_vector(size, seed=0):
    vector = np.random.default_rng(seed).standard_normal(size)
    return jnp.asarray(vector / np.linalg.norm(vector))


def _unless(zero, found, known, dtype):
    """The known vertex if the direction was zero; else the one found."""
    return tree.where(zero, tree.astype(known, dtype), tree.astype(found, dtype))


def _exact(method, size):
    return method == "exact" or (method == "auto" and size <= _LARGEST_EXACT)


def _method(method):
    if method not in ("auto", "exact", "krylov"):
        raise DomainError(f"method must be 'auto', 'exact' or 'krylov', got {method!r}")
    return method


def _iterations(iterations):
    if iterations < 1:
        raise DomainError(f"iterations must be at least 1, got {iterations}")
    return int(iterations)
