"""The nuclear-norm ball of matrices that are too large to be stored as arrays."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...core import check, tree
from ...core.tree import ratio
from ...errors import DomainError
from ..arguments import count
from ..base import AbstractVertex, undecided
from ..span import Entrywise
from ..vertices import RankOne
from .base import unless
from .factors import Block, Factored, Pattern
from .krylov import fixed_directions, lanczos, nudged, scaled_products, unit
from .nuclear_norm import NuclearNormBall
from .view import View

_SMALL = 256  # rows or columns of matrices that are decomposed
_STEPS = 64


class FactoredRankOne(AbstractVertex):
    """scale * left right^T, with unit vectors, and with the entries of left right^T on the pattern."""

    left: Float[Array, " rows"]
    right: Float[Array, " cols"]
    scale: Float[Array, ""]
    low: Float[Array, " count"]
    rank: int = eqx.field(static=True)

    def dense(self):
        shape = (self.left.size, self.right.size)
        block = Block.of(self.left[None], self.scale[None], self.right[None])
        return Factored((block,), self.scale * self.low, None, shape, self.low.size, self.rank)


class FactoredNuclearNormBall(NuclearNormBall):
    r"""$X = \{x \in \mathbb{R}^{m\times n} : \sum_i \sigma_i(x) \le r\}$, of matrices that are never stored as arrays.

    `NuclearNormBall(shape, radius, factored=True, entries=(rows, columns), rank=32)` makes it. A decision is a sum of
    rank-one terms plus values on the pattern of `entries`; memory grows with entries and rank. Losses and constraints
    see it as a `View`: `x.entries()`, `x.inner(left, right)`, `x @ vector`. Gradients of entries are kept on the
    pattern, those of the others as terms. Arithmetic is exact until a matrix has more than `rank` terms at the end of a
    round. Then the smallest terms are dropped, `x.error` bounds the change in the nuclear norm, and decisions stay in
    X. `view(x)` shows what a game or a session returns.

    `lmo` without a guess uses a full decomposition up to 256 rows or columns, and otherwise 64 Lanczos steps.

    >>> import jax.numpy as jnp
    >>> from cocoax.domains import NuclearNormBall
    >>> ball = NuclearNormBall((2, 3), radius=2.0, factored=True, entries=([0, 1], [1, 0]))
    >>> vertex = ball.lmo(ball.element(values=jnp.array([3.0, 1.0])))
    >>> abs(ball.view(vertex.dense()).dense().round(4)).tolist()
    [[0.0, 2.0, 0.0], [0.0, 0.0, 0.0]]
    """

    pattern: Pattern
    rank: int = eqx.field(static=True)

    def __init__(self, shape, radius, *, factored=True, entries=None, rank=32, method="auto", iterations=4):
        super().__init__(shape, radius, method=method, iterations=iterations)
        self.pattern = _as_pattern(entries, self.sizes)
        self.rank = count(rank, "rank")

    def grown(self, entries: Any, shape: Any = None) -> "FactoredNuclearNormBall":
        """This ball with `entries` appended to its pattern, and with more rows and columns if `shape` says so.

        See `carried`.

        >>> from cocoax.domains import NuclearNormBall
        >>> ball = NuclearNormBall((2, 3), radius=2.0, factored=True, entries=([0, 1], [1, 0]))
        >>> ball.grown(([2], [2]), shape=(3, 3)).pattern.rows.tolist()
        [0, 1, 2]
        """
        from . import growth

        return growth.grown(self, entries, shape)

    def carried(self, state: Any) -> Any:
        """A decision or a learner's whole state, made for a smaller ball, as one for this ball, which came from it by
        `grown`.

        The matrices stay the same: new rows and columns are 0, and entries at new places are computed from the factors.
        """
        from . import growth

        return growth.carried(state, self)

    def element(self, left=None, right=None, values=None) -> Factored:
        r"""A point or direction: $\sum_k l_k r_k^\top$ plus `values` on the pattern.

        `left` is (k, rows) and `right` (k, columns), with the vectors $l_k$ and $r_k$ as rows.
        """
        made = self.start()
        if values is not None:
            values = jnp.asarray(values, float)
            if values.shape != (made.count,):
                raise DomainError(f"values must be {made.count}, one for each entry, got shape {values.shape}")
            made = eqx.tree_at(lambda x: x.values, made, values)
        if left is None and right is None:
            return made
        if left is None or right is None:
            raise DomainError("element takes left and right together, or neither")
        left, right = (jnp.atleast_2d(jnp.asarray(factor, float)) for factor in (left, right))
        if (len(left), *self.sizes) != (len(right), left.shape[1], right.shape[1]):
            shapes = f"(k, {self.sizes[0]}) and (k, {self.sizes[1]})"
            raise DomainError(f"left and right must have the shapes {shapes}, got {left.shape} and {right.shape}")
        block = Block.of(left, jnp.ones(len(left), left.dtype), right)
        low = self.pattern.entries(left, block.weights, right)
        return made + Factored((block,), low, None, self.sizes, made.count, self.rank)

    def view(self, x: Factored) -> View:
        """The matrix as losses and constraints see it: they can ask for entries and products, not for the array."""
        return x if isinstance(x, View) else View(self.validate(x, "point"), self.pattern)

    def validate(self, point, what, may_be_infinite=True):
        """The user's point, checked to be a matrix of this ball."""
        if not isinstance(point, Factored) or (point.shape, point.count) != (self.sizes, self.pattern.rows.size):
            raise DomainError(
                f"a {what} for this {type(self).__name__} must be one of its matrices, as element(left, right, values) "
                f"makes them, got {check.described(point)}"
            )
        if not may_be_infinite and not tree.is_traced(point) and not bool(tree.all_finite(point)):
            raise DomainError(f"a {what} must be finite, got NaN or infinity")
        return point

    def truncate(self, x, weight=None):
        """x with at most `rank` terms, in one block. With a weight w, a point of w X stays in w X.

        Dropping the smallest terms shortens the matrix, unless `values` cancelled them; then it is scaled down.
        """
        made, dropped = x.cut(self.pattern)
        if weight is None:
            return made
        size = jnp.maximum(weight, 0) * self.radius.astype(made.dtype)
        has_values = jnp.any(made.values != 0)
        shorter = made.scaled(jnp.where(has_values, ratio(size, size + dropped), 1))
        (block,) = shorter.blocks
        error = made.error + jnp.where(has_values, dropped, 0)  # as much again
        block = Block(block.left, block.factor * block.weights, block.right, jnp.ones_like(error), error)
        return eqx.tree_at(lambda x: x.blocks, shorter, (block,))

    def start(self) -> Any:
        nothing = jnp.zeros(self.pattern.rows.size, self.radius.dtype)
        return Factored((), None, nothing, self.sizes, nothing.size, self.rank)

    def lmo(self, direction, guess: Any = None):
        radius, matrix = self.radius.astype(direction.dtype), self.view(direction)
        small = self.method != "krylov" and min(self.sizes) <= _SMALL
        if self.method == "exact" or (guess is None and small):
            vertex = self._dense_ball().lmo(matrix.dense())
            left, right, zero = -vertex.left, vertex.right, ~tree.is_nonzero(direction)
        else:
            with jax.default_matmul_precision("highest"):
                if guess is None:
                    left, right, zero = self._lanczos_pair(matrix)
                else:
                    left, right, zero = self._improved(matrix, unit(nudged(guess.right, direction.dtype)))
        return unless(zero, self._vertex(-left, right, radius), self.vertex() if guess is None else guess)

    def _dense_ball(self):
        """The same ball for matrices stored as arrays."""
        return NuclearNormBall(self.sizes, self.radius, method="exact")

    def _lanczos_pair(self, matrix):
        """(u, v, whether the matrix is 0): the top singular pair by Lanczos steps from fixed directions."""
        first = fixed_directions((self.sizes[1],), 2).astype(matrix.dtype)
        forward, backward, zero = scaled_products(matrix, first)
        right = lanczos(lambda x: backward(forward(x)), first, _STEPS)
        return unit(forward(right)), right, zero

    def span(self, points, vertices) -> Any:
        return Entrywise(points, vertices)

    def vertex(self):
        vertex = super().vertex()
        return self._vertex(vertex.left, vertex.right, vertex.scale)

    def _vertex(self, left, right, scale):
        low = self.pattern.entries(left[None], jnp.ones(1, left.dtype), right[None])
        return FactoredRankOne(left, right, scale, low, self.rank)

    def spectrum(self, x):
        """The singular values of a matrix without `values`, or of a small one; others raise a `DomainError`."""
        if x.values is None or not (tree.is_traced(x.values) or np.any(np.asarray(x.values))):
            left, weights, right = x.joined()
            upper, other = (jnp.linalg.qr(factor.T, mode="r") for factor in (left, right))
            return jnp.linalg.svd((upper * weights) @ other.T, compute_uv=False)
        if min(self.sizes) > _SMALL:
            raise undecided(self)
        return self._dense_ball().spectrum(self.view(x).dense())

    def contains(self, x, tol=1e-6):
        return jnp.sum(self.spectrum(x)) <= (1 + tol) * self.radius.astype(x.dtype)

    def project(self, x):
        raise DomainError(
            "a factored NuclearNormBall does not project; choose a learner that needs no projection, such as "
            "learners.Auto()"
        )

    def lmo_error(self, direction, vertex):
        vertex = RankOne(vertex.left, vertex.right, vertex.scale)
        return self._dense_ball().lmo_error(self.view(direction).dense(), vertex)

    def likely_lmo_error(self, direction, vertex, *, key, steps=64, failure=1e-6):
        raise DomainError("a factored NuclearNormBall has no likely_lmo_error; take lmo_error, of a small one")

    def intersect(self, A, b):
        raise DomainError("a factored NuclearNormBall cannot be intersected; give Problem(constraint=...)")

    def widest(self):
        return 2 * self.radius


def _as_pattern(entries, shape) -> Pattern:
    """The user's `entries` as a pattern, each place once."""
    if entries is None:
        entries = ((), ())
    if not isinstance(entries, tuple | list) or len(entries) != 2:
        raise DomainError(f"entries must be (rows, columns), two vectors of numbers, got {check.described(entries)}")
    rows, columns = (np.asarray(indices) for indices in entries)
    if rows.shape != columns.shape or rows.ndim != 1:
        raise DomainError(f"entries must be two vectors of one length, got shapes {rows.shape} and {columns.shape}")
    if rows.size and not all(np.issubdtype(indices.dtype, np.integer) for indices in (rows, columns)):
        raise DomainError(f"entries must be whole numbers, got {rows.dtype} and {columns.dtype}")
    for name, index, size in zip(("rows", "columns"), (rows, columns), shape):
        if index.size and not 0 <= index.min() <= index.max() < size:
            raise DomainError(
                f"{name} of entries must lie between 0 and {size - 1}, got {index.min()} to {index.max()}"
            )
    places = np.sort(rows.astype(np.int64) * shape[1] + columns)
    twice = places[1:][places[1:] == places[:-1]]
    if twice.size:
        raise DomainError(f"entries hold {tuple(int(i) for i in divmod(twice[0], shape[1]))} twice; give each once")
    return Pattern(jnp.asarray(rows, jnp.int32), jnp.asarray(columns, jnp.int32), shape)
