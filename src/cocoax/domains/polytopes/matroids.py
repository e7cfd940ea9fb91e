"""Base polytopes of matroids: a greedy algorithm finds their vertices (Edmonds, 1971).

The uniform matroid's is `HyperSimplex`, in `selections.py`.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from ...core import check
from ...core.facts import DomainFacts, with_facts
from ...errors import DomainError
from ..arguments import as_labels, count
from ..base import AbstractDomain, centred, undecided
from ..vectors.simplices import onto_capped_simplex
from ..vertices import Chosen
from .linear_program import AbstractHosted


class PartitionMatroid(AbstractDomain):
    r"""$X = \{x \in [0,1]^n : \sum_{i\in G_j} x_i = k_j \text{ for all } j\}$: exactly $k_j$ from every group $G_j$.

    `groups` lists the coordinates of every group, each coordinate in one group, or gives for every coordinate the
    number of its group; `ranks` are the $k_j$.

    >>> import jax.numpy as jnp
    >>> matroid = PartitionMatroid(groups=[[0, 1], [2, 3, 4]], ranks=[1, 2])
    >>> matroid.lmo(jnp.array([2.0, 3.0, 0.0, -1.0, -2.0])).dense().tolist()
    [1.0, 0.0, 0.0, 1.0, 1.0]
    """

    facts = DomainFacts("a sort")

    labels: Int[Array, " n"]  # the group of every coordinate
    sizes: Int[Array, " groups"]
    ranks: Int[Array, " groups"]

    def __init__(self, groups: Any, ranks: Any):
        labels = as_labels(groups)
        sizes = np.bincount(labels)
        numbers = check.real(ranks, "ranks", DomainError)
        if numbers.shape != sizes.shape or np.any(numbers != np.round(numbers)):
            shown = check.described(ranks)
            raise DomainError(f"ranks must be one whole number for each of {len(sizes)} groups, got {shown}")
        ranks = numbers.astype(int)
        for group, (rank, size) in enumerate(zip(ranks, sizes)):
            if not 0 <= rank <= size:
                raise DomainError(f"the rank of group {group} must lie between 0 and its size {size}, got {rank}")
        self.labels, self.sizes, self.ranks = (jnp.asarray(array, int) for array in (labels, sizes, ranks))

    @property
    def shape(self):
        return self.labels.shape

    def lmo(self, direction, guess=None):
        order = jnp.lexsort((direction, self.labels))
        labels = self.labels[order]
        place = jnp.arange(labels.size) - (jnp.cumsum(self.sizes) - self.sizes)[labels]
        mask = jnp.zeros(self.shape, bool).at[order].set(place < self.ranks[labels])
        return Chosen(mask, jnp.ones((), direction.dtype))

    def tangent(self, direction):
        means = jax.ops.segment_sum(direction, self.labels, self.ranks.size) / self.sizes.astype(direction.dtype)
        return direction - means[self.labels].astype(direction.dtype)

    def start(self):
        return (self.ranks / self.sizes)[self.labels]

    def diameter(self, ord):
        return (2.0 * jnp.minimum(self.ranks, self.sizes - self.ranks).sum().astype(float)) ** (1 / ord)

    def contains(self, x, tol=1e-6):
        sums = jax.ops.segment_sum(x, self.labels, self.ranks.size)
        ranks = self.ranks.astype(x.dtype)
        sums_match = jnp.all(jnp.abs(sums - ranks) <= tol * jnp.maximum(ranks, 1))
        return sums_match & jnp.all((x >= -tol) & (x <= 1 + tol))

    def project(self, x):
        """The groups one by one, at the price of a sort of all coordinates for each."""
        members = (self.labels[None] == jnp.arange(self.ranks.size)[:, None]).astype(x.dtype)
        return jax.vmap(onto_capped_simplex, (None, 0, 0))(x, members, self.ranks.astype(x.dtype)).sum(0)


class Matroid(AbstractHosted):
    """The base polytope of a matroid that is known by its independent sets; see `matroid`."""

    def tangent(self, direction):
        return centred(direction)

    def contains(self, x, tol=1e-6):
        raise undecided(self)


@with_facts(DomainFacts("a solver on the host", on_host=True))
def matroid(n: int, independent: Callable) -> Matroid:
    r"""$X = \mathrm{conv}\{1_B : B \subseteq \{0,\dots,n-1\} \text{ a largest independent set}\}$, of any matroid.

    `independent(chosen)` tells whether the list `chosen` of different elements is independent; without its last
    element it always is. It is called n times for an answer, on the host. Membership in X is not decided. The
    diameters are upper bounds, attained if two bases have as little in common as their size allows.

    >>> import numpy as np, jax.numpy as jnp
    >>> columns = np.array([[1.0, 2.0, 0.0, 1.0], [1.0, 2.0, 1.0, 0.0]])
    >>> def independent(chosen):
    ...     return np.linalg.matrix_rank(columns[:, chosen]) == len(chosen)
    >>> matroid(4, independent).lmo(jnp.array([-2.0, -1.0, 0.5, 3.0])).dense().tolist()
    [1.0, 0.0, 1.0, 0.0]
    """
    oracle = _Greedy(count(n), independent)
    first = oracle.minimise(np.zeros(oracle.n))
    rank = int(first.sum())
    if rank in (0, oracle.n):
        raise DomainError(f"a matroid with one base only is a point, got rank {rank} of n={n}")
    apart = 2 * min(rank, oracle.n - rank)
    return Matroid(oracle, (oracle.n,), jnp.asarray(first), jnp.asarray([apart, apart**0.5]))


class _Greedy:
    """The lightest base: takes elements in order of weight, if they stay independent of those taken before."""

    def __init__(self, n, independent):
        if not callable(independent):
            raise DomainError(f"independent must be a function of a list of elements, got {independent!r}")
        self.n, self.independent = n, independent

    def minimise(self, directions):
        flat = directions.reshape(-1, self.n)
        return np.stack([self._base(direction) for direction in flat]).reshape(directions.shape)

    def _base(self, direction):
        """The lightest base for these weights, as a vector of 0 and 1 over the elements."""
        chosen = []
        for element in np.argsort(direction, kind="stable").tolist():
            if self._is_independent([*chosen, element]):
                chosen.append(element)
        return np.isin(np.arange(self.n), chosen).astype(float)

    def _is_independent(self, elements):
        """The user's answer for these elements; raises `DomainError` if the function fails."""
        try:
            return bool(self.independent(elements))
        except Exception as error:
            name = type(error).__name__
            raise DomainError(f"independent fails for the elements {elements}: {name}: {error}") from error
