"""Base polytopes of matroids: a greedy algorithm finds their vertices (Edmonds, 1971).

The uniform matroid's is `HyperSimplex`, in `selections.py`.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from ..errors import DomainError
from .base import AbstractDomain, AbstractVertex, check_norm
from .combinators import FromLMO, from_lmo
from .simplices import onto_capped_simplex


class Chosen(AbstractVertex):
    """`value` where `mask`, 0 elsewhere: one byte per entry."""

    mask: Bool[Array, " n"]
    value: Float[Array, ""]

    def dense(self):
        return jnp.where(self.mask, self.value, 0)


class PartitionMatroid(AbstractDomain):
    r"""$X = \{x \in [0,1]^n : \sum_{i\in G_j} x_i = k_j \text{ for all } j\}$: exactly $k_j$ from every group $G_j$.

    `groups` lists the coordinates of every group, each coordinate in one group; `ranks` are the $k_j$.

    >>> import jax.numpy as jnp
    >>> matroid = PartitionMatroid(groups=[[0, 1], [2, 3, 4]], ranks=[1, 2])
    >>> matroid.lmo(jnp.array([2.0, 3.0, 0.0, -1.0, -2.0])).dense().tolist()
    [1.0, 0.0, 0.0, 1.0, 1.0]
    """

    labels: Int[Array, " n"]  # the group of every coordinate
    sizes: Int[Array, " groups"]
    ranks: Int[Array, " groups"]

    def __init__(self, groups, ranks):
        labels, ranks = as_labels(groups), np.asarray(ranks)
        sizes = np.bincount(labels)
        if ranks.shape != sizes.shape or not np.issubdtype(ranks.dtype, np.integer):
            raise DomainError(f"ranks must be one whole number for each of {len(sizes)} groups, got {ranks.tolist()}")
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

    def vertex(self):
        return self.lmo(jnp.zeros(self.shape))

    def start(self):
        return (self.ranks / self.sizes)[self.labels]

    def diameter(self, ord):
        check_norm(ord)
        return (2.0 * jnp.minimum(self.ranks, self.sizes - self.ranks).sum()) ** (1 / ord)

    def contains(self, x, tol=1e-6):
        sums = jax.ops.segment_sum(x, self.labels, self.ranks.size)
        ranks = self.ranks.astype(x.dtype)
        kept = jnp.all(jnp.abs(sums - ranks) <= tol * jnp.maximum(ranks, 1))
        return kept & jnp.all((x >= -tol) & (x <= 1 + tol))

    def project(self, x):
        """The groups one by one, at the price of a sort of all coordinates for each."""
        members = (self.labels == jnp.arange(self.ranks.size)[:, None]).astype(x.dtype)
        return jax.vmap(onto_capped_simplex, (None, 0, 0))(x, members, self.ranks.astype(x.dtype)).sum(0)


def matroid(n, independent) -> FromLMO:
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

    def greedy(direction):
        chosen = []
        for element in np.argsort(direction, kind="stable").tolist():
            if independent([*chosen, element]):
                chosen.append(element)
        base = np.zeros(n)
        base[chosen] = 1
        return base

    if n < 1:
        raise DomainError(f"a matroid needs at least one element, got n={n}")
    start = greedy(np.zeros(n))
    rank = int(start.sum())
    if rank in (0, n):
        raise DomainError(f"a matroid with one base only is a point, got rank {rank} of n={n}")
    apart = 2 * min(rank, n - rank)
    return from_lmo(greedy, start=start, diameter={1: apart, 2: apart**0.5}, host=True)


def as_labels(groups) -> np.ndarray:
    """The number of the group that every coordinate is in."""
    flat = [int(index) for group in groups for index in group]
    if not flat or any(len(group) == 0 for group in groups) or sorted(flat) != list(range(len(flat))):
        raise DomainError(
            f"groups must be nonempty and hold each of the coordinates 0, 1, ... exactly once, got {groups}"
        )
    labels = np.zeros(len(flat), int)
    for label, group in enumerate(groups):
        labels[list(group)] = label
    return labels
