"""Polytopes given by their points, by their inequalities, or as matrices of given row and column sums."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from .. import _tree as tree
from ..errors import DomainError
from ._host import AbstractHosted, LinearProgram, needs, on_host
from .balls import rescale
from .base import AbstractDomain, AbstractVertex, check_norm, number
from .vertices import Dense


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

    points: Float[Array, "k ..."]
    widths: Float[Array, " 2"]

    def __init__(self, points):
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

    def vertex(self):
        return Dense(self.points[0])

    def start(self):
        return self.points.mean(axis=0)

    def diameter(self, ord):
        check_norm(ord)
        return self.widths[ord - 1]

    def contains(self, x, tol=1e-6):
        """Whether the l1 distance from x to X is at most `tol` times the l1 norm of the largest point."""
        points = self.points.reshape(len(self.points), -1)
        return on_host(_distance, (), x.reshape(-1), points) <= tol


class Polytope(AbstractHosted):
    r"""$X = \{x \in \mathbb{R}^n : Ax \le b,\ Cx = d,\ l \le x \le u\}$, which must be bounded and not empty.

    The LMO is HiGHS on the host (`pip install 'cocoax[lp]'`); a batch of directions goes there in one call.
    A and C may be SciPy sparse. `lower` and `upper` are numbers or vectors; by default there are none. `diameter`
    is an upper bound, see `LinearProgram.diameters`.

    >>> import jax.numpy as jnp
    >>> budget = Polytope([[1.0, 2.0, 4.0]], [4.0], lower=0.0, upper=1.0)
    >>> budget.lmo(jnp.array([-1.0, -1.0, -3.0])).dense().round(4).tolist()
    [1.0, 0.0, 0.75]
    """

    def __init__(self, A=None, b=None, C=None, d=None, *, lower=-np.inf, upper=np.inf):
        from scipy import sparse

        lower, upper = np.asarray(lower, float), np.asarray(upper, float)
        sides = [_rows(A, b, "A", "b"), _rows(C, d, "C", "d")]
        sizes = {
            part.shape[-1]
            for part in (*(matrix for matrix, _ in sides if matrix is not None), lower, upper)
            if part.ndim
        }
        if len(sizes) != 1 or sizes == {0}:
            raise DomainError(f"A, C, lower and upper must agree on one number of variables, got {sorted(sizes)}")
        (n,) = sizes
        (A, b), (C, d) = ((sparse.csc_array((0, n)) if matrix is None else matrix, side) for matrix, side in sides)
        matrix = sparse.vstack([A, C], format="csc")
        bounds = np.broadcast_to(lower, n), np.broadcast_to(upper, n)
        if np.isnan(bounds).any():
            raise DomainError("lower and upper must be numbers or infinite, got NaN")
        self.oracle = LinearProgram(matrix, (np.r_[np.full(len(b), -np.inf), d], np.r_[b, d]), bounds)
        self.sizes = (n,)
        self.middle, self.widths = jnp.asarray(self.oracle.middle), jnp.asarray(self.oracle.diameters())


class Transport(AbstractHosted):
    r"""$X = \{x \in \mathbb{R}^{m\times n} : x \ge 0,\ \sum_j x_{ij} = s_i,\ \sum_i x_{ij} = d_j\}$.

    What each of m suppliers sends to each of n customers. The LMO is HiGHS on the host (`pip install
    'cocoax[lp]'`). `diameter` is an upper bound, see `LinearProgram.diameters`.

    >>> import jax.numpy as jnp
    >>> plans = Transport(supply=[2.0, 1.0], demand=[1.0, 2.0])
    >>> plans.lmo(jnp.array([[0.0, 1.0], [1.0, 1.0]])).dense().tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """

    def __init__(self, supply, demand):
        from scipy import sparse

        supply, demand = (
            np.atleast_1d(np.asarray(number(x, name), float)) for x, name in ((supply, "supply"), (demand, "demand"))
        )
        for amounts, name in ((supply, "supply"), (demand, "demand")):
            if amounts.ndim != 1 or amounts.min(initial=0) < 0:
                raise DomainError(f"{name} must be a vector with no negative entry, got {amounts.tolist()}")
        total = supply.sum()
        if not np.isclose(total, demand.sum(), rtol=1e-6) or total == 0:
            raise DomainError(f"supply and demand must have one positive total, got {total} and {demand.sum()}")
        demand = demand * (total / demand.sum())
        m, n = self.sizes = len(supply), len(demand)
        rows, columns = sparse.eye_array(m), sparse.eye_array(n)
        sums = sparse.vstack([sparse.kron(rows, np.ones((1, n))), sparse.kron(np.ones((1, m)), columns)], format="csc")
        # the last column's sum follows from the others
        amounts = np.r_[supply, demand[:-1]]
        least = np.maximum(np.add.outer(supply, demand) - total, 0)
        most = np.minimum.outer(supply, demand)
        self.oracle = LinearProgram(sums[:-1], (amounts, amounts), (least.ravel(), most.ravel()))
        self.middle = jnp.asarray(np.outer(supply, demand) / total)
        self.widths = jnp.asarray(self.oracle.diameters())


class Birkhoff(AbstractDomain):
    r"""$X = \{x \in \mathbb{R}^{n\times n} : x \ge 0,\ \sum_j x_{ij} = \sum_i x_{ij} = 1\}$; permutations are its vertices.

    The LMO is Optax's Hungarian algorithm (`pip install 'cocoax[assignment]'`), on the device.

    >>> import jax.numpy as jnp
    >>> birkhoff = Birkhoff(3)
    >>> birkhoff.lmo(jnp.array([[0.0, 2.0, 2.0], [0.0, 1.0, 3.0], [1.0, 0.0, 0.0]])).dense().tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """

    n: int = eqx.field(static=True)

    def __init__(self, n):
        if n < 1:
            raise DomainError(f"a Birkhoff polytope needs at least one row, got n={n}")
        needs("optax.assignment", "assignment")
        self.n = int(n)

    @property
    def shape(self):
        return (self.n, self.n)

    def lmo(self, direction, guess=None):
        scaled, _ = rescale(direction)
        rows, _ = needs("optax.assignment", "assignment").hungarian_algorithm(scaled)
        return Permutation(rows.astype(jnp.int32), jnp.ones((), direction.dtype))

    def vertex(self):
        return Permutation(jnp.arange(self.n, dtype=jnp.int32), jnp.ones(()))

    def start(self):
        return jnp.full(self.shape, 1 / self.n)

    def diameter(self, ord):
        check_norm(ord)
        return jnp.asarray(0.0 if self.n == 1 else (2.0 * self.n) ** (1 / ord))

    def contains(self, x, tol=1e-6):
        sums = jnp.concatenate([x.sum(axis=0), x.sum(axis=1)])
        return (x.min() >= -tol) & (jnp.max(jnp.abs(sums - 1)) <= tol)


class Permutation(AbstractVertex):
    """A permutation matrix, by the row of the one in each column; `one` carries the dtype."""

    rows: Int[Array, " n"]
    one: Float[Array, ""]

    def dense(self):
        n = self.rows.shape[-1]
        return jnp.zeros((n, n), self.one.dtype).at[self.rows, jnp.arange(n)].set(self.one)

    def dot(self, x):
        return x[self.rows, jnp.arange(self.rows.size)].sum()

    def mix(self, x, step):
        step = jnp.asarray(step, x.dtype)
        return ((1 - step) * x).at[self.rows, jnp.arange(self.rows.size)].add(step)

    def combine(self, weights):
        n = self.rows.shape[-1]
        total = jnp.zeros((*weights.shape[:-1], n, n), jnp.result_type(weights, self.one))
        return total.at[..., self.rows, jnp.arange(n)].add(weights[..., None])


def _rows(matrix, side, name, side_name):
    """A block of constraints as a sparse matrix and a vector, neither given meaning none."""
    from scipy import sparse

    if matrix is None and side is None:
        return None, np.zeros(0)
    if matrix is None or side is None:
        raise DomainError(f"{name} and {side_name} belong together, got only one of them")
    matrix, side = sparse.csc_array(matrix, dtype=float), np.asarray(side, float)
    if side.shape != matrix.shape[:1]:
        raise DomainError(
            f"{side_name} must have one entry for each row of {name}, got {side.shape} and {matrix.shape}"
        )
    if not (np.isfinite(matrix.data).all() and np.isfinite(side).all()):
        raise DomainError(f"{name} and {side_name} must be finite")
    return matrix, side


def _farthest(points):
    """The largest l1 and l2 distances between two of the points, against one point at a time to save memory."""
    scaled, _ = rescale(points)  # so that squares of large entries do not overflow
    size = jnp.max(jnp.abs(points))

    def from_one(point):
        apart = jax.vmap(lambda other: tree.sub(other, point))(scaled)
        return jnp.stack([jnp.max(jax.vmap(lambda x, ord=ord: tree.norm(x, ord))(apart)) for ord in (1, 2)])

    return size * jnp.max(jax.lax.map(from_one, scaled), axis=0)


def _distance(x, points):
    r"""The l1 distance to the hull over the largest l1 norm of a point; infinite if x is not finite.

    $\min_p \|x - p\|_1 = \max\{\langle y, x\rangle - s : |y_i| \le 1,\ \langle y, p_k\rangle \le s\}$: one model for
    all x, which only the direction knows.
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
