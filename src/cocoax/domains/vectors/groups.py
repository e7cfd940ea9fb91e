"""Balls of norms of groups of coordinates."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ...core import tree
from ...core.facts import DomainFacts
from ..arguments import as_labels, exponent, scalar
from ..base import AbstractDomain
from ..vertices import Dense
from .balls import onto_l1_ball, rescale


class AbstractGroups(AbstractDomain):
    """The vectors for which some norm of the norms of their groups is at most r.

    `groups` lists the coordinates of every group, each coordinate in one group, or gives for every coordinate the
    number of its group; `p`, from 1 to infinity, is the norm of a group.
    """

    labels: Int[Array, " n"]  # the group of every coordinate
    sizes: Int[Array, " groups"]
    radius: Float[Array, ""]
    p: float = eqx.field(static=True)

    def __init__(self, groups, radius, p=2):
        labels = as_labels(groups)
        self.labels, self.sizes = jnp.asarray(labels), jnp.asarray(np.bincount(labels))
        self.radius = scalar(radius, "radius", positive=True)
        self.p = exponent(p)

    @property
    def shape(self):
        return self.labels.shape

    def start(self):
        return jnp.zeros(self.shape)

    def _norms(self, x):
        """|x_G|_p for every group G."""
        shares, largest = self._relative_magnitudes(x)
        inside = jnp.where(largest > 0, 1, 0) if self.p == jnp.inf else self._sums(shares**self.p) ** (1 / self.p)
        return largest * inside

    def _lengths(self, ord):
        """max |x_G|_ord over |x_G|_p <= 1, for every group G."""
        return self.sizes.astype(float) ** max(0.0, 1 / ord - 1 / self.p)

    def _corners(self, direction):
        """In every group, the point with |v|_p = 1 that minimises <direction, v> (Hölder's equality)."""
        shares, largest = self._relative_magnitudes(direction)
        if self.p == 2:
            signed = jnp.where(largest[self.labels] > 0, direction / self._norms(direction)[self.labels], 0)
            return jnp.where(largest[self.labels] > 0, -signed, self.sizes.astype(direction.dtype)[self.labels] ** -0.5)
        if self.p == 1:  # one entry: the first of the largest
            place = jnp.arange(shares.size)
            first = jax.ops.segment_min(jnp.where(shares == 1, place, shares.size), self.labels, self.sizes.size)
            lengths = (first[self.labels] == place).astype(direction.dtype)
        else:
            powers = shares ** (1 / (self.p - 1))
            lengths = powers / self._norms(powers)[self.labels]
        return jnp.where(direction > 0, -lengths, lengths)

    def _relative_magnitudes(self, x):
        """(|x_i| over the largest magnitude in its group, that largest magnitude by group).

        The largest entry of a group becomes exactly 1.
        """
        largest = jax.ops.segment_max(jnp.abs(x), self.labels, self.sizes.size)
        over = largest[self.labels]
        return jnp.where(jnp.abs(x) < over, jnp.minimum(jnp.abs(x) / jnp.where(over > 0, over, 1), 1), 1), largest

    def _sums(self, x):
        """The sum of x over every group."""
        return jax.ops.segment_sum(x, self.labels, self.sizes.size)


class GroupLassoBall(AbstractGroups):
    r"""$X = \{x \in \mathbb{R}^n : \sum_j \|x_{G_j}\|_p \le r\}$; a vertex is nonzero in one group $G_j$ only.

    `groups` lists the coordinates of every group, each coordinate in one group, or gives for every coordinate the
    number of its group. Projections are known for p = 1 and 2.

    >>> import jax.numpy as jnp
    >>> ball = GroupLassoBall([[0, 1], [2]], radius=10.0)
    >>> ball.lmo(jnp.array([3.0, -4.0, 2.0])).dense().round(4).tolist()
    [-6.0, 8.0, 0.0]
    """

    facts = DomainFacts("a pass over the direction")

    def __init__(self, groups: Any, radius: Any, p: Any = 2):
        super().__init__(groups, radius, p)

    def lmo(self, direction, guess=None):
        direction, _ = rescale(direction)
        corners = self._corners(direction)
        best = jnp.argmin(self._sums(direction * corners))
        return Dense(jnp.where(self.labels == best, self.radius.astype(direction.dtype) * corners, 0))

    def diameter(self, ord):
        return 2 * self._lengths(ord).max() * self.radius

    def inradius(self):
        return self.radius / self.sizes.size**0.5 if self.p == 2 else None

    def contains(self, x, tol=1e-6):
        return self._norms(x).sum() <= (1 + tol) * self.radius.astype(x.dtype)

    def project(self, x):
        radius = self.radius.astype(x.dtype)
        if self.p == 1:
            return onto_l1_ball(x, radius)
        if self.p != 2:
            return super().project(x)
        norms = self._norms(x)
        return x * (onto_l1_ball(norms, radius) / jnp.where(norms > 0, norms, 1))[self.labels]


class GroupMaxBall(AbstractGroups):
    r"""$X = \{x \in \mathbb{R}^n : \max_j \|x_{G_j}\|_p \le r\}$: a ball for every group, in one vector.

    `groups` are as for `GroupLassoBall`, whose norm is dual to this one. Projections are known for p = 2 and infinity.

    >>> import jax.numpy as jnp
    >>> ball = GroupMaxBall([[0, 1], [2]], radius=10.0)
    >>> ball.lmo(jnp.array([3.0, -4.0, 2.0])).dense().round(4).tolist()
    [-6.0, 8.0, -10.0]
    """

    facts = DomainFacts("a pass over the direction")

    def __init__(self, groups: Any, radius: Any, p: Any = 2):
        super().__init__(groups, radius, p)

    def lmo(self, direction, guess=None):
        direction, _ = rescale(direction)
        return Dense(self.radius.astype(direction.dtype) * self._corners(direction))

    def diameter(self, ord):
        return 2 * tree.norm(self._lengths(ord), ord) * self.radius

    def inradius(self):
        return self.radius if self.p == 2 else None

    def contains(self, x, tol=1e-6):
        return self._norms(x).max() <= (1 + tol) * self.radius.astype(x.dtype)

    def project(self, x):
        radius = self.radius.astype(x.dtype)
        if self.p == jnp.inf:
            return jnp.clip(x, -radius, radius)
        if self.p != 2:
            return super().project(x)
        norms = self._norms(x)
        return jnp.where((norms > radius)[self.labels], x * (radius / jnp.where(norms > 0, norms, 1))[self.labels], x)
