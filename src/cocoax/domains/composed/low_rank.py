"""A matrix of low rank plus biases of its rows and columns, as one domain."""

from typing import Any

import numpy as np

from ...core.facts import DomainFacts, with_facts
from ..matrices.base import as_matrix_shape
from ..matrices.nuclear_norm import NuclearNormBall
from ..matrices.weighted_nuclear_norm import WeightedNuclearNormBall
from ..vectors.balls import Box
from .product import Product


@with_facts(DomainFacts("the nuclear-norm ball's"))
def LowRankPlusBiases(
    shape: Any, radius: Any, *, mean: Any = (1.0, 5.0), biases: Any = 2.0, weights: Any = None, **options: Any
) -> Product:
    r"""$x_{ij} = m + b_i + c_j + Z_{ij}$ with $\|Z\|_*\le r$, m in an interval, and $|b_i|, |c_j|\le$ `biases`.

    A `Product` with the blocks `mean`, `rows`, `columns` and `matrix`.

    **Arguments:**

    - `shape`: (rows, columns).
    - `radius`: r.
    - `mean`: the ends of the interval of m.
    - `weights`: (p, q), to bound the weighted nuclear norm of Z (`WeightedNuclearNormBall`) instead.
    - `options`: of the ball: `method`, `iterations`; or `factored=True`, `entries` and `rank`, for a matrix that is too
      large to be written down. Losses then have `x["matrix"].entries(places)` of it, and the biases as arrays.

    >>> import jax.numpy as jnp
    >>> import cocoax as cx
    >>> def loss(x, r):  # of sparse triples
    ...     low_rank = x["matrix"][r["user"], r["item"]]
    ...     return jnp.mean((x["mean"] + x["rows"][r["user"]] + x["columns"][r["item"]] + low_rank - r["rating"]) ** 2)
    >>> problem = cx.Problem(LowRankPlusBiases((2, 3), 1.0), loss)
    >>> batch = {"user": jnp.array([0, 1]), "item": jnp.array([2, 2]), "rating": jnp.array([4.0, 5.0])}
    >>> float(problem.values(problem.domain.start(), batch)[0])
    2.5
    >>> large = LowRankPlusBiases((10**5, 10**5), 1.0, factored=True, entries=([0, 99999], [7, 5]), rank=4)
    >>> large.view(large.start())["matrix"].entries().tolist()
    [0.0, 0.0]
    """
    m, n = as_matrix_shape(shape, "matrix of low rank")
    ball = NuclearNormBall((m, n), radius, **options) if weights is None else _weighted(weights, radius, options)
    low, high = mean
    bound = float(biases)
    return Product(
        {
            "mean": Box([low], [high]),
            "rows": Box(np.full(m, -bound), np.full(m, bound)),
            "columns": Box(np.full(n, -bound), np.full(n, bound)),
            "matrix": ball,
        }
    )


def _weighted(weights, radius, options):
    rows, columns = weights
    return WeightedNuclearNormBall(rows, columns, radius, **options)
