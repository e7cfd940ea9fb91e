"""Balls of group norms, and shifted balls of weighted l1 and l2 norms."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_solve, solve_triangular
from jaxtyping import Array, Float, Int

from .. import _tree as tree
from ..errors import DomainError
from .balls import Box, onto_l1_ball, rescale
from .base import AbstractDomain, check_norm, number
from .matroids import as_labels
from .vertices import Dense


class GroupLassoBall(AbstractDomain):
    r"""$X = \{x \in \mathbb{R}^n : \sum_j \|x_{G_j}\|_2 \le r\}$; a vertex is nonzero in one group $G_j$ only.

    `groups` lists the coordinates of every group, each coordinate in one group.

    >>> import jax.numpy as jnp
    >>> ball = GroupLassoBall([[0, 1], [2]], radius=10.0)
    >>> ball.lmo(jnp.array([3.0, -4.0, 2.0])).dense().round(4).tolist()
    [-6.0, 8.0, 0.0]
    """

    labels: Int[Array, " n"]  # the group of every coordinate
    sizes: Int[Array, " groups"]
    radius: Float[Array, ""]

    def __init__(self, groups, radius):
        self.labels = jnp.asarray(as_labels(groups))
        self.sizes = jnp.bincount(self.labels)
        self.radius = number(radius, "radius", positive=True)

    @property
    def shape(self):
        return self.labels.shape

    def lmo(self, direction, guess=None):
        direction, zero = rescale(direction)
        direction = jnp.where(zero, 1, direction)
        norms = self._norms(direction)
        best = jnp.argmax(norms)
        step = -self.radius.astype(direction.dtype) / norms[best]
        return Dense(jnp.where(self.labels == best, step * direction, 0))

    def vertex(self):
        return self.lmo(jnp.zeros(self.shape))

    def start(self):
        return jnp.zeros(self.shape)

    def diameter(self, ord):
        check_norm(ord)
        longest = {1: jnp.sqrt(self.sizes.max().astype(float)), 2: 1.0}[ord]
        return 2 * longest * self.radius

    def contains(self, x, tol=1e-6):
        return self._norms(x).sum() <= (1 + tol) * self.radius.astype(x.dtype)

    def project(self, x):
        norms = self._norms(x)
        shorter = onto_l1_ball(norms, self.radius.astype(x.dtype))
        return x * (shorter / jnp.where(norms > 0, norms, 1))[self.labels]

    def _norms(self, x):
        scaled, _ = rescale(x)  # so that squares of large entries do not overflow
        squares = jax.ops.segment_sum(scaled**2, self.labels, self.sizes.size)
        return tree.norm(x, jnp.inf) * jnp.sqrt(squares)


class Diamond(AbstractDomain):
    r"""$X = \{x : \sum_i |x_i - c_i| / h_i \le 1\}$ with $c = (l+u)/2$ and $h = (u-l)/2$, of any shape.

    Its vertices are the centre c of the box [l, u] with one coordinate moved to its bound.

    >>> import jax.numpy as jnp
    >>> diamond = Diamond(jnp.array([-1.0, -1.0]), jnp.array([3.0, 1.0]))
    >>> diamond.lmo(jnp.array([-1.0, 0.5])).dense().tolist()
    [3.0, 0.0]
    """

    box: Box

    def __init__(self, lower, upper):
        self.box = Box(lower, upper)

    @property
    def shape(self):
        return self.box.shape

    def lmo(self, direction, guess=None):
        direction, _ = rescale(direction)
        centre, half = self._frame(direction.dtype)
        index = jnp.unravel_index(jnp.argmax(half * jnp.abs(direction)), self.shape)
        return Dense(centre.at[index].add(jnp.where(direction[index] > 0, -half[index], half[index])))

    def vertex(self):
        return self.lmo(jnp.zeros(self.shape))

    def start(self):
        return self.box.start()

    def diameter(self, ord):
        """The widest side of the box: the set is symmetric, and a vertex differs from its centre in one entry."""
        check_norm(ord)
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
        weights = 1 / jnp.where(half > 0, half, jnp.inf)
        lengths = jnp.abs(offset)
        shorter = weights * _above_level(lengths * half, weights**2)
        lengths = jnp.where(jnp.sum(weights * lengths) <= 1, lengths, shorter)
        return centre + widest * jnp.sign(offset) * lengths

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

    factor: Float[Array, "n n"]  # lower triangular, factor @ factor.T = A
    centre: Float[Array, " n"]
    radius: Float[Array, ""]

    def __init__(self, matrix, centre=0.0, radius=1.0):
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
        self.radius = number(radius, "radius", positive=True)

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

    def vertex(self):
        return self.lmo(jnp.zeros(self.shape))

    def start(self):
        return self.centre

    def diameter(self, ord):
        r"""Exact in the l2 norm. In the l1 norm an upper bound, attained if A is diagonal, or $B = A^{-1} \ge 0$.

        $\max_x \|x-c\|_1 = \max_{s\in\{-1,1\}^n} \sqrt{r\,s^\top B s}$, and $s^\top B s$ is at most
        $\sum_{ij}|B_{ij}|$ and at most $n\,\lambda_{\max}(B)$.
        """
        check_norm(ord)
        with jax.default_matmul_precision("highest"):
            inverse = cho_solve((self.factor, True), jnp.eye(self.centre.size))
        longest = jnp.linalg.eigvalsh(inverse)[-1]
        square = longest if ord == 2 else jnp.minimum(jnp.abs(inverse).sum(), self.centre.size * longest)
        return 2 * jnp.sqrt(self.radius * square)

    def contains(self, x, tol=1e-6):
        with jax.default_matmul_precision("highest"):
            scaled = (x - self.centre.astype(x.dtype)) @ self.factor.astype(x.dtype)
        return tree.norm(scaled) <= (1 + tol) * jnp.sqrt(self.radius.astype(x.dtype))


def _above_level(x, weights):
    """max(x - level, 0) with the level at which its weighted sum is 1, by sorting; `onto_simplex` has weights 1."""
    x = x - x.max()  # the answer does not change, and large entries no longer swallow the sum
    order = jnp.argsort(-x.reshape(-1))
    ordered, weights = x.reshape(-1)[order], weights.reshape(-1)[order]
    level = (jnp.cumsum(weights * ordered) - 1) / jnp.cumsum(weights)
    last = jnp.sum(ordered > level) - 1
    return jnp.maximum(x - level[last], 0)
