"""The nuclear-norm ball, whose LMO finds the largest singular pair."""

import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from ...core import tree
from ...core.facts import DomainFacts
from ...errors import DomainError
from ..arguments import count
from ..base import AbstractVertex, Point
from ..vectors.balls import L1Ball, rescale
from ..vertices import RankOne
from .base import (
    AbstractSingular,
    as_matrix_shape,
    as_method,
    is_exact,
    proven_norm,
    relative_gap,
    unless,
)
from .kernels.dispatch import improved
from .krylov import (
    fixed_directions,
    nudged,
    power,
    ritz_gap,
    ritz_range,
    scaled_products,
    top_eigenvector,
    unit,
)
from .span import OfRankOne

_SMALL = 100  # rows or columns for which a decomposition takes no longer than a proof without it


class NuclearNormBall(AbstractSingular):
    r"""$X = \{x \in \mathbb{R}^{m\times n} : \sum_i \sigma_i(x) \le r\}$, whose vertices are $r\,u v^\top$.

    `lmo(direction)` is accurate up to rounding (relative error about 1e-6 in float32, 1e-9 in float64). That is proven
    for a decomposition, and almost certain for a Krylov space, which begins at fixed random directions. `lmo(direction,
    guess)` makes exactly `iterations` steps from the guess, so that all of a batch take the same time; each step takes
    two products with the direction. `lmo_error` computes how good an answer was.

    | `method` | without a guess | from a guess |
    |---|---|---|
    | `"auto"` | `"exact"` up to 256 rows or columns, then `"krylov"` | `"krylov"` |
    | `"krylov"` | restarted Lanczos, and a decomposition where that would be faster | Golub-Kahan steps |
    | `"power"` | as `"auto"` | power iterations: cheaper steps, but more of them for the same error |
    | `"exact"` | one dense decomposition | the same; the guess is ignored |

    `factored=True`, with `entries=(rows, columns)` and `rank=`, makes the ball of matrices that are too large to be
    stored as arrays: see `factored.FactoredNuclearNormBall`.

    >>> import jax.numpy as jnp
    >>> ball = NuclearNormBall((2, 3), radius=2.0)
    >>> vertex = ball.lmo(jnp.array([[0.0, 3.0, 0.0], [1.0, 0.0, 0.0]]))
    >>> abs(vertex.dense().round(4)).tolist()
    [[0.0, 2.0, 0.0], [0.0, 0.0, 0.0]]
    """

    facts = DomainFacts("a few passes, warm")

    sizes: tuple[int, int] = eqx.field(static=True)
    values: L1Ball
    method: str = eqx.field(static=True)
    iterations: int = eqx.field(static=True)

    def __new__(cls, *arguments, factored=False, **options):
        made: Any = cls
        if factored and cls is NuclearNormBall:
            from .factored import FactoredNuclearNormBall as made
        return super().__new__(made)

    def __init__(
        self,
        shape: Any,
        radius: Any,
        *,
        factored: Any = False,
        entries: Any = None,
        rank: Any = None,
        method: Any = "auto",
        iterations: Any = 4,
    ):
        if entries is not None or rank is not None:
            raise DomainError("entries= and rank= are for matrices that are not written down; give factored=True")
        self.sizes = as_matrix_shape(shape, "nuclear-norm ball")
        self.values = L1Ball(min(self.sizes), radius)
        self.method = as_method(method)
        self.iterations = count(iterations, "iterations")

    @property
    def radius(self) -> Float[Array, ""]:
        """The largest sum of singular values."""
        return self.values.radius

    def lmo(self, direction, guess: Any = None):
        radius = self.radius.astype(direction.dtype)
        with jax.default_matmul_precision("highest"):
            if guess is None or self.method == "exact":
                direction, zero = rescale(direction)
                left, right = _top_singular_pair(direction, is_exact(self.method, min(self.shape)))
            else:
                left, right, zero = self._improved(direction, unit(nudged(guess.right, direction.dtype)))
        return unless(zero, RankOne(-left, right, radius), self.vertex() if guess is None else guess)

    def lowest(self, direction, guess: Any = None):
        """min <direction, x> over X, by a full decomposition; for large matrices, by a proof that the guess is nearly
        optimal.
        """
        if guess is None or min(self.shape) <= _SMALL:
            return super().lowest(direction)
        radius = self.radius.astype(direction.dtype)
        vertex = self.lmo(direction, self.lmo(direction, guess))
        bound, proven = proven_norm(direction, -vertex.dot(direction) / radius)
        # a loop of at most one step: under vmap both sides of a `cond` are computed
        return jax.lax.while_loop(
            lambda state: ~state[1],
            lambda _: (super(NuclearNormBall, self).lowest(direction), jnp.asarray(True)),
            (-radius * bound, proven),
        )[0]

    def _improved(self, direction, first):
        """(u, v, whether the direction is 0): unit vectors nearer to the top singular pair than v = `first`."""
        if self.method == "power":
            forward, backward, zero = scaled_products(direction, first)
            left = unit(forward(first))
            left = power(lambda x: forward(unit(backward(x))), left, self.iterations - 1, unit)
            return left, unit(backward(left)), zero
        return improved(direction, first, self.iterations)

    def span(self, points, vertices: Any):
        return OfRankOne(points, vertices)

    def vertex(self):
        left, right = (fixed_directions((size,), seed) for seed, size in enumerate(self.shape))
        return tree.astype(RankOne(left, right, self.radius), self.radius.dtype)

    def likely_lmo_error(
        self, direction: Point, vertex: AbstractVertex, *, key: PRNGKeyArray, steps: int = 64, failure: float = 1e-6
    ) -> Array:
        """A bound on `lmo_error` that is wrong with probability at most `failure`, for matrices too large to decompose.

        It takes `steps` Lanczos steps from a random vector, and falls like `1 / steps**2`.
        """
        direction, _ = rescale(direction)
        matrix = direction if self.sizes[0] >= self.sizes[1] else direction.T
        with jax.default_matmul_precision("highest"):
            first = unit(jax.random.normal(key, matrix.shape[1:], matrix.dtype))
            _, square = ritz_range(lambda x: (matrix @ x) @ matrix, first, steps)
        ritz = jnp.sqrt(jnp.maximum(square, 0))  # at most the largest singular value
        largest = ritz / jnp.sqrt(1 - ritz_gap(first.size, steps, failure)).astype(ritz.dtype)
        radius = self.radius.astype(ritz.dtype)
        return relative_gap(vertex.dot(direction) + radius * largest, radius * ritz)


@functools.partial(jax.jit, static_argnums=1)
def _top_singular_pair(matrix, exact):
    """Unit vectors (u, v) with the largest u^T C v, from the Gram matrix of the smaller side."""
    rows, columns = matrix.shape
    if rows < columns:
        return _top_singular_pair(matrix.T, exact)[::-1]

    def decomposed():
        return jnp.linalg.eigh(matrix.T @ matrix).eigenvectors[:, -1]

    def product(x):
        return (matrix @ x) @ matrix

    right = decomposed() if exact else top_eigenvector(product, decomposed, columns, matrix.dtype)
    return unit(matrix @ right), right
