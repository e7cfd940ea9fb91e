"""Shifted balls of weighted l1 and l2 norms."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_solve, solve_triangular
from jaxtyping import Array, Float

from ...core import tree
from ...core.facts import DomainFacts
from ...errors import DomainError
from ..arguments import number, scalar
from ..base import AbstractDomain
from ..composed.transforms import normalise
from ..vertices import Dense
from .balls import Box, rescale
from .groups import GroupLassoBall as GroupLassoBall
from .simplices import above_level


class Diamond(AbstractDomain):
    r"""$X = \{x : \sum_i |x_i - c_i| / h_i \le 1\}$ with $c = (l+u)/2$ and $h = (u-l)/2$, of any shape.

    Its vertices are the centre c of the box [l, u] with one coordinate moved to its bound.

    >>> import jax.numpy as jnp
    >>> diamond = Diamond(jnp.array([-1.0, -1.0]), jnp.array([3.0, 1.0]))
    >>> diamond.lmo(jnp.array([-1.0, 0.5])).dense().tolist()
    [3.0, 0.0]
    """

    facts = DomainFacts("a pass over the direction")

    box: Box

    def __init__(self, lower: Any, upper: Any):
        self.box = Box(lower, upper)

    @property
    def shape(self):
        return self.box.shape

    def lmo(self, direction, guess=None):
        direction, _ = rescale(direction)
        centre, half = self._frame(direction.dtype)
        index = jnp.unravel_index(jnp.argmax(half * jnp.abs(direction)), self.shape)
        return Dense(centre.at[index].add(jnp.where(direction[index] > 0, -half[index], half[index])))

    def start(self):
        return self.box.start()

    def diameter(self, ord):
        """The widest side of the box: the set is symmetric, and a vertex differs from its centre in one entry."""
        return jnp.max(self.box.upper - self.box.lower)

    def contains(self, x, tol=1e-6):
        centre, half = self._frame(x.dtype)
        outside = jnp.maximum(jnp.abs(x - centre) - tol * jnp.max(jnp.abs(centre)), 0)
        return jnp.all(outside <= (1 + tol) * half) & (jnp.sum(outside / jnp.where(half > 0, half, 1)) <= 1 + tol)

    def project(self, x):
        """Soft thresholding around the centre, at a level found by sorting."""
        centre, half = self._frame(x.dtype)
        widest = jnp.where(half.max() > 0, half.max(), 1)
        half = half / widest
        offset = jnp.where(half > 0, (x - centre) / widest, 0)
        lengths = jnp.abs(offset)
        shares = lengths / jnp.where(half > 0, half, 1)
        sides = jnp.maximum(half, jnp.finfo(x.dtype).eps ** 2)  # so that no square overflows
        levels, weights = (lengths * sides).reshape(-1), jnp.where(half > 0, 1 / sides, 0).reshape(-1)
        # sorted themselves, since levels computed a second time may be rounded otherwise
        ordered, order = jax.lax.sort((-levels, jnp.arange(levels.size)), num_keys=1)
        squares = weights[order] ** 2
        shorter = jnp.minimum(squares * above_level(-ordered, -ordered, jnp.cumsum(squares), 1), 1)
        shorter = jnp.zeros_like(levels).at[order].set(shorter).reshape(half.shape)
        shares = jnp.where(jnp.sum(shares) <= 1, shares, shorter / jnp.sum(shorter))
        return centre + widest * half * jnp.sign(offset) * shares

    def _frame(self, dtype):
        return self.box.start().astype(dtype), (0.5 * (self.box.upper - self.box.lower)).astype(dtype)


class Ellipsoid(AbstractDomain):
    r"""$X = \{x \in \mathbb{R}^n : (x-c)^\top A\,(x-c) \le r\}$, for a positive definite A.

    The LMO is $c - \sqrt{r}\,A^{-1}d / \sqrt{d^\top A^{-1} d}$, two triangular solves.

    >>> import jax.numpy as jnp
    >>> ellipsoid = Ellipsoid(jnp.diag(jnp.array([4.0, 1.0])), centre=jnp.array([1.0, 0.0]))
    >>> ellipsoid.lmo(jnp.array([-1.0, 0.0])).dense().round(4).tolist()
    [1.5, 0.0]
    """

    facts = DomainFacts("a triangular solve")

    factor: Float[Array, "n n"]  # lower triangular, factor @ factor.T = A
    centre: Float[Array, " n"]
    radius: Float[Array, ""]

    def __init__(self, matrix: Any, centre: Any = 0.0, radius: Any = 1.0):
        matrix, centre = number(matrix, "matrix"), number(centre, "centre")
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.size == 0:
            raise DomainError(f"matrix must be square, got shape {matrix.shape}")
        if centre.shape not in ((), matrix.shape[:1]):
            raise DomainError(f"centre must have shape {matrix.shape[:1]}, or be a number, got shape {centre.shape}")
        self.factor = jnp.linalg.cholesky(matrix)
        if not tree.is_traced(self.factor):
            if not np.allclose(matrix, matrix.T):
                raise DomainError(f"matrix must be symmetric, got one that is off by {np.abs(matrix - matrix.T).max()}")
            if not np.all(np.isfinite(self.factor)):
                smallest = np.linalg.eigvalsh(matrix)[0]
                raise DomainError(f"matrix must be positive definite, got the eigenvalue {smallest}")
        self.centre = jnp.broadcast_to(centre, matrix.shape[:1])
        self.radius = scalar(radius, "radius", positive=True)

    @property
    def shape(self):
        return self.centre.shape

    def lmo(self, direction, guess=None):
        direction, zero = rescale(direction)
        direction = jnp.where(zero, 1, direction)
        factor = self.factor.astype(direction.dtype)
        with jax.default_matmul_precision("highest"):
            toward, _ = rescale(solve_triangular(factor, direction, lower=True))
            toward = solve_triangular(factor, toward / tree.norm(toward), lower=True, trans=1)
        return Dense(self.centre.astype(direction.dtype) - jnp.sqrt(self.radius.astype(direction.dtype)) * toward)

    def start(self):
        return self.centre

    def diameter(self, ord):
        r"""Exact in the l2 norm. In the l1 norm an upper bound, attained if A is diagonal, or $B = A^{-1} \ge 0$.

        $\max_x \|x-c\|_1 = \max_{s\in\{-1,1\}^n} \sqrt{r\,s^\top B s}$, and $s^\top B s$ is at most
        $\sum_{ij}|B_{ij}|$ and at most $n\,\lambda_{\max}(B)$.
        """
        with jax.default_matmul_precision("highest"):
            inverse = cho_solve((self.factor, True), jnp.eye(self.centre.size))
        longest = jnp.linalg.eigvalsh(inverse)[-1]
        square = longest if ord == 2 else jnp.minimum(jnp.abs(inverse).sum(), self.centre.size * longest)
        return 2 * jnp.sqrt(self.radius * square)

    def contains(self, x, tol=1e-6):
        r"""Whether $g(x) = |L^\top(x-c)| \le \sqrt r$ after x moves by `tol` $\cdot|c|$ along $-\nabla g$."""
        factor, centre = self.factor.astype(x.dtype), self.centre.astype(x.dtype)
        with jax.default_matmul_precision("highest"):
            unit, length = normalise((x - centre) @ factor)
            steepness = tree.norm(factor @ unit)
        return length <= (1 + tol) * jnp.sqrt(self.radius.astype(x.dtype)) + tol * tree.norm(centre) * steepness
