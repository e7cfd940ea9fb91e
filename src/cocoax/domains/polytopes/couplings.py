"""Matrices of given row and column sums."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ...core.facts import DomainFacts
from ...errors import DomainError
from ..arguments import count, number
from ..base import AbstractDomain
from ..vectors.balls import rescale
from ..vertices import Sparse
from .linear_program import AbstractHosted, LinearProgram, needs


class Birkhoff(AbstractDomain):
    r"""$X = \{x \in \mathbb{R}^{n\times n} : x \ge 0,\ \sum_j x_{ij} = \sum_i x_{ij} = 1\}$.

    Its vertices are the permutations, found on the device by Optax's Hungarian algorithm
    (`pip install 'cocoax[assignment]'`).

    >>> import jax.numpy as jnp
    >>> birkhoff = Birkhoff(3)
    >>> birkhoff.lmo(jnp.array([[0.0, 2.0, 2.0], [0.0, 1.0, 3.0], [1.0, 0.0, 0.0]])).dense().tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """

    facts = DomainFacts("n^3")

    axes = 1
    n: int = eqx.field(static=True)

    def __init__(self, n: Any):
        self.n = count(n)
        needs("optax.assignment", "assignment")

    @property
    def shape(self):
        return (self.n, self.n)

    def lmo(self, direction, guess=None):
        scaled, _ = rescale(direction)
        with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):  # Optax promotes
            rows, _ = needs("optax.assignment", "assignment").hungarian_algorithm(scaled)
        return self._permutation(rows, direction.dtype)

    def vertex(self):
        return self._permutation(jnp.arange(self.n), jnp.result_type(float))

    def _permutation(self, rows, dtype):
        """The permutation matrix that has the one of column j in row `rows[j]`."""
        return Sparse(
            self.n * rows.astype(jnp.int32) + jnp.arange(self.n, dtype=jnp.int32), jnp.ones(self.n, dtype), self.shape
        )

    def tangent(self, direction):
        return _doubly_centred(direction)

    def start(self):
        return jnp.full(self.shape, 1 / self.n)

    def diameter(self, ord):
        return jnp.asarray(0.0 if self.n == 1 else (2.0 * self.n) ** (1 / ord))

    def inradius(self):
        return jnp.asarray(1 / max(self.n - 1, 1))

    def contains(self, x, tol=1e-6):
        sums = jnp.concatenate([x.sum(axis=0), x.sum(axis=1)])
        return (x.min() >= -tol) & (jnp.max(jnp.abs(sums - 1)) <= tol)


class Transport(AbstractHosted):
    r"""$X = \{x \in \mathbb{R}^{m\times n} : x \ge 0,\ \sum_j x_{ij} = s_i,\ \sum_i x_{ij} = d_j\}$.

    What each of m suppliers sends to each of n customers. The LMO is HiGHS on the host (`pip install
    'cocoax[lp]'`). `diameter` is an upper bound, see `LinearProgram.diameters`.

    >>> import jax.numpy as jnp
    >>> plans = Transport(supply=[2.0, 1.0], demand=[1.0, 2.0])
    >>> plans.lmo(jnp.array([[0.0, 1.0], [1.0, 1.0]])).dense().tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """

    facts = DomainFacts("a solver on the host", on_host=True)

    def __init__(self, supply: Any, demand: Any):
        from scipy import sparse

        supply, demand = _amounts(supply, "supply"), _amounts(demand, "demand")
        total = supply.sum()
        if not np.isclose(total, demand.sum(), rtol=1e-6) or total == 0:
            raise DomainError(f"supply and demand must have one positive total, got {total} and {demand.sum()}")
        demand = demand * (total / demand.sum())
        m, n = self.sizes = len(supply), len(demand)
        row_sums = sparse.kron(sparse.eye_array(m), np.ones((1, n)))
        column_sums = sparse.kron(np.ones((1, m)), sparse.eye_array(n - 1, n))  # the last one follows
        amounts = np.r_[supply, demand[:-1]]
        sums = sparse.vstack([row_sums, column_sums], format="csc")
        least = np.maximum(np.add.outer(supply, demand) - total, 0)
        most = np.minimum.outer(supply, demand)
        self.oracle = LinearProgram(sums, (amounts, amounts), (least.ravel(), most.ravel()))
        self.middle = jnp.asarray(np.outer(supply / total, demand))
        self.widths = jnp.asarray(self.oracle.diameters())

    def tangent(self, direction):
        return _doubly_centred(direction)


def _doubly_centred(direction):
    """The tangent of a set whose points have the same row sums and column sums."""
    rows = direction - direction.mean(axis=1, keepdims=True)
    return rows - rows.mean(axis=0, keepdims=True)


def _amounts(amounts, name):
    """The user's supply or demand as a vector, checked to be nonnegative."""
    number(amounts, name)
    amounts = np.asarray(amounts, float)
    if amounts.ndim != 1 or amounts.size == 0 or amounts.min() < 0:
        raise DomainError(f"{name} must be a vector with no negative entry, got {amounts.tolist()}")
    return amounts
