"""Polytopes given by their points or by their inequalities."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...core import check
from ...core.facts import DomainFacts
from ...errors import DomainError
from ..arguments import number
from ..base import AbstractDomain
from ..vectors.balls import rescale
from ..vertices import Dense
from .integer_program import IntegerProgram
from .linear_program import AbstractHosted, LinearProgram, callback, needs


class ConvexHull(AbstractDomain):
    r"""$X = \mathrm{conv}\{p_1, \dots, p_k\}$, the points being the rows of an array of shape (k, ...).

    A vertex holds its point: an index would have to carry all of them along, once for each of a batch.
    Membership is decided on the host, by a linear program (`pip install 'cocoax[lp]'`).

    >>> import jax.numpy as jnp
    >>> triangle = ConvexHull([[0.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
    >>> triangle.lmo(jnp.array([-1.0, -1.0])).dense().tolist()
    [2.0, 0.0]
    >>> float(triangle.diameter(1))
    3.0
    """

    facts = DomainFacts("a product with the points")

    points: Float[Array, "k ..."]
    widths: Float[Array, " 2"]

    def __init__(self, points: Any):
        self.points = number(points, "points")
        if self.points.ndim < 2 or self.points.size == 0:
            raise DomainError(f"a convex hull needs points of shape (k, ...), got shape {self.points.shape}")
        self.widths = _farthest(self.points)

    @property
    def shape(self):
        return self.points.shape[1:]

    def lmo(self, direction, guess=None):
        points = self.points.astype(direction.dtype)
        direction, _ = rescale(direction)
        with jax.default_matmul_precision("highest"):
            values = jnp.tensordot(points, direction, axes=direction.ndim)
        return Dense(points[jnp.argmin(values)])

    def start(self):
        return self.points.mean(axis=0)

    def diameter(self, ord):
        return self.widths[ord - 1]

    def contains(self, x, tol=1e-6):
        """Whether the l1 distance from x to X is at most `tol` times the l1 norm of the largest point."""
        needs("highspy", "lp")
        points = self.points.reshape(len(self.points), -1)
        return callback(_distance_to_hull, (), x.reshape(-1), points) <= tol


class Polytope(AbstractHosted):
    r"""$X = \{x \in \mathbb{R}^n : Ax \le b,\ Cx = d,\ l \le x \le u\}$, which must be bounded and not empty.

    The LMO is HiGHS on the host (`pip install 'cocoax[lp]'`); a batch of directions goes there in one call.
    A and C may be SciPy sparse, or one row; `lower` and `upper` are numbers or vectors; by default there are none.
    `diameter` is an upper bound, see `LinearProgram.diameters`.

    With `integer`, True or one boolean for each variable, X is the hull of the points in which these variables are
    whole numbers. An answer is then one mixed-integer program, which may take long, and `contains` is refused.

    >>> import jax.numpy as jnp
    >>> budget = Polytope([[1.0, 2.0, 4.0]], [4.0], lower=0.0, upper=1.0)
    >>> budget.lmo(jnp.array([-1.0, -1.0, -3.0])).dense().round(4).tolist()
    [1.0, 0.0, 0.75]
    >>> knapsack = Polytope([[1.0, 2.0, 4.0]], [4.0], lower=0.0, upper=1.0, integer=True)
    >>> knapsack.lmo(jnp.array([-1.0, -1.0, -3.0])).dense().tolist()
    [0.0, 0.0, 1.0]
    """

    facts = DomainFacts("a solver on the host", on_host=True)

    def __init__(
        self,
        A: Any = None,
        b: Any = None,
        C: Any = None,
        d: Any = None,
        *,
        lower: Any = -np.inf,
        upper: Any = np.inf,
        integer: Any = False,
    ):
        from scipy import sparse

        A, b = _rows(A, b, "A", "b")
        C, d = _rows(C, d, "C", "d")
        lower, upper = check.real(lower, "lower", DomainError), check.real(upper, "upper", DomainError)
        sizes = {part.shape[-1] for part in (A, C, lower, upper) if part is not None and part.ndim}
        if len(sizes) != 1 or sizes == {0}:
            raise DomainError(f"A, C, lower and upper must agree on one number of variables, got {sorted(sizes)}")
        if np.isnan(lower).any() or np.isnan(upper).any():
            raise DomainError("lower and upper must be numbers or infinite, got NaN")
        (n,) = sizes
        none = sparse.csc_array((0, n))
        matrix = sparse.vstack([none if block is None else block for block in (A, C)], format="csc")
        bounds = np.broadcast_to(lower, n), np.broadcast_to(upper, n)
        rows = np.r_[np.full(len(b), -np.inf), d], np.r_[b, d]
        whole = _as_mask(integer, n)
        program = (matrix, rows, bounds)
        self.oracle = IntegerProgram(*program, whole) if whole.any() else LinearProgram(*program)
        self.sizes = (n,)
        self.middle, self.widths = jnp.asarray(self.oracle.middle), jnp.asarray(self.oracle.diameters())

    def contains(self, x, tol=1e-6):
        if isinstance(self.oracle, IntegerProgram):
            raise DomainError("membership in a hull of whole numbers is hard, and not decided here")
        return super().contains(x, tol)


def _as_mask(integer, n) -> np.ndarray:
    """The user's `integer` as one boolean per variable."""
    mask = check.real(integer, "integer", DomainError)
    if mask.shape not in ((), (n,)) or not np.isin(mask, (0, 1)).all():
        raise DomainError(f"integer must be True, False, or {n} of them, got {check.described(integer)}")
    return np.broadcast_to(mask.astype(bool), n)


def _rows(matrix: Any, side, name, side_name) -> tuple[Any, np.ndarray]:
    """The user's matrix and right-hand side as (sparse matrix, vector); (None, empty) if both are None."""
    from scipy import sparse

    if matrix is side is None:
        return None, np.zeros(0)
    if matrix is None or side is None:
        raise DomainError(f"{name} and {side_name} belong together, got only one of them")
    if not sparse.issparse(matrix):
        matrix = np.atleast_2d(check.real(matrix, name, DomainError))
        if matrix.ndim != 2:
            raise DomainError(f"{name} must have one row for each constraint, got shape {matrix.shape}")
    matrix = sparse.csc_array(matrix, dtype=float)
    side = np.atleast_1d(check.real(side, side_name, DomainError))
    if side.shape != matrix.shape[:1]:
        raise DomainError(
            f"{side_name} must have one entry for each row of {name}, got {side.shape} and {matrix.shape}"
        )
    if not (np.isfinite(matrix.data).all() and np.isfinite(side).all()):
        raise DomainError(f"{name} and {side_name} must be finite")
    return matrix, side


def _farthest(points):
    """The largest l1 and l2 distance between two of the points; one point at a time, to save memory."""
    scaled, _ = rescale(points)  # so that squares of large entries do not overflow
    size = jnp.max(jnp.abs(points))

    def from_one(point):
        apart = (scaled - point[None]).reshape(len(scaled), -1)
        return jnp.stack([jnp.abs(apart).sum(axis=1).max(), jnp.sqrt(jnp.square(apart).sum(axis=1).max())])

    return size * jnp.max(jax.lax.map(from_one, scaled), axis=0)


def _distance_to_hull(x, points):
    r"""The l1 distance from x to the hull, over the largest l1 norm of a point; infinite if x is not finite.

    $\min_p \|x - p\|_1 = \max\{\langle y, x\rangle - s : |y_i| \le 1,\ \langle y, p_k\rangle \le s\}$. x occurs in the
    cost only, so that one model serves all x.
    """
    from scipy import sparse

    k, n = points.shape
    points, x = points.astype(float), x.astype(float)
    size = np.abs(points).sum(axis=1).max() or 1.0
    below = sparse.csc_array(np.c_[points / size, -np.ones(k)])
    bounds = np.r_[-np.ones(n), -1.0], np.ones(n + 1)
    separation = LinearProgram(below, (np.full(k, -np.inf), np.zeros(k)), bounds)
    cost = np.concatenate([-x / size, np.ones((*x.shape[:-1], 1))], axis=-1)
    distance = -(cost * separation.minimise(cost)).sum(axis=-1)
    return np.where(np.isfinite(distance), distance, np.inf)
