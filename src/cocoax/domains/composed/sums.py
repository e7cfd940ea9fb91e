"""Several domains of one shape, added or joined."""

import functools
import itertools
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from ...core import check, tree
from ...core.facts import DomainFacts
from ...errors import DomainError
from ..base import AbstractDomain, AbstractVertex, undecided
from .transforms import as_domain, normalise, plus


class Sum(AbstractVertex):
    """v_1 + ... + v_k."""

    terms: tuple[AbstractVertex, ...]

    def dense(self):
        return _total(term.dense() for term in self.terms)

    def dot(self, x):
        return _total(term.dot(x) for term in self.terms)

    def mix(self, x, step):
        first, *others = self.terms
        return functools.reduce(lambda mixed, term: plus(mixed, step, term), others, first.mix(x, step))

    def combine(self, weights):
        return _total(term.combine(weights) for term in self.terms)


class AbstractSeveral(AbstractDomain):
    """A set that consists of several domains of one shape. An LMO cannot tell whether a point lies in it."""

    domains: tuple[AbstractDomain, ...]

    def __init__(self, domains):
        if not isinstance(domains, list | tuple):
            kind = type(self).__name__
            raise DomainError(f"{kind} needs a list of domains, {kind}([X, Y]), got {check.described(domains)}")
        self.domains = tuple(as_domain(domain) for domain in domains)
        if not domains:
            raise DomainError("a sum or a hull needs at least one domain, got none")
        for other in self.domains[1:]:
            if other.shape != self.shape:
                raise DomainError(f"all domains must have one shape, got {self.shape} and {other.shape}")

    @property
    def shape(self):
        return self.domains[0].shape

    def contains(self, x, tol=1e-6):
        raise undecided(self)


class MinkowskiSum(AbstractSeveral):
    r"""$X_1 + \dots + X_k = \{x_1 + \dots + x_k : x_i \in X_i\}$; its vertices are sums of vertices.

    An LMO cannot tell whether a point lies in the sum, so `contains` is refused.

    >>> import jax.numpy as jnp
    >>> from cocoax.domains import L1Ball, LinfBall
    >>> domain = MinkowskiSum([LinfBall(3, radius=1.0), L1Ball(3, radius=5.0)])  # an octahedron, a cube thicker
    >>> domain.lmo(jnp.array([1.0, 3.0, -2.0])).dense().tolist()
    [-1.0, -6.0, 1.0]
    """

    facts = DomainFacts("its parts'")

    def __init__(self, domains: Any):
        super().__init__(domains)

    def lmo(self, direction, guess: Any = None):
        guesses = [None] * len(self.domains) if guess is None else guess.terms
        return Sum(tuple(domain.lmo(direction, known) for domain, known in zip(self.domains, guesses)))

    def lowest(self, direction, guess: Any = None):
        guesses = [None] * len(self.domains) if guess is None else guess.terms
        return _total(domain.lowest(direction, known) for domain, known in zip(self.domains, guesses))

    def vertex(self):
        return Sum(tuple(domain.vertex() for domain in self.domains))

    def start(self):
        return _total(domain.start() for domain in self.domains)

    def diameter(self, ord):
        r"""An upper bound, by the triangle inequality: the sum of the diameters. Exact if they have one direction."""
        return _total(domain.diameter(ord) for domain in self.domains)


class Choice(AbstractVertex):
    """v_i, for the index i of the best; the others are kept as guesses."""

    options: tuple[AbstractVertex, ...]
    index: Int[Array, ""]

    def dense(self):
        return self._switch(lambda option: option.dense())

    def dot(self, x):
        return jnp.stack([option.dot(x) for option in self.options])[self.index]

    def mix(self, x, step):
        return self._switch(lambda option: option.mix(x, step))

    def combine(self, weights):
        index = tree.with_leading_axes(self.index, weights.ndim - 1)
        parts = (weights * (index == i).astype(weights.dtype) for i in range(len(self.options)))
        return _total(option.combine(part) for option, part in zip(self.options, parts))

    def _switch(self, function):
        return jax.lax.switch(self.index, [lambda option=option: function(option) for option in self.options])


class UnionHull(AbstractSeveral):
    r"""$\mathrm{conv}(X_1 \cup \dots \cup X_k)$; its LMO is the best of theirs.

    An LMO cannot tell whether a point lies in the hull, so `contains` is refused.

    >>> import jax.numpy as jnp
    >>> from cocoax.domains import L1Ball, LinfBall
    >>> domain = UnionHull([LinfBall(3, radius=1.0), L1Ball(3, radius=2.0)])
    >>> domain.lmo(jnp.array([1.0, 9.0, -2.0])).dense().tolist()
    [0.0, -2.0, 0.0]
    >>> domain.lmo(jnp.array([1.0, 2.0, -2.0])).dense().tolist()
    [-1.0, -1.0, 1.0]
    """

    facts = DomainFacts("its parts'")

    def __init__(self, domains: Any):
        super().__init__(domains)

    def lmo(self, direction, guess: Any = None):
        guesses = [None] * len(self.domains) if guess is None else guess.options
        options = tuple(domain.lmo(direction, known) for domain, known in zip(self.domains, guesses))
        unit, _ = normalise(direction)  # so that no value overflows
        return Choice(options, jnp.argmin(jnp.stack([option.dot(unit) for option in options])))

    def lowest(self, direction, guess: Any = None):
        guesses = [None] * len(self.domains) if guess is None else guess.options
        values = [domain.lowest(direction, known) for domain, known in zip(self.domains, guesses)]
        return jnp.stack(values).min()

    def vertex(self):
        return Choice(tuple(domain.vertex() for domain in self.domains), jnp.argmin(jnp.zeros(len(self.domains))))

    def start(self):
        return tree.scale(1 / len(self.domains), _total(domain.start() for domain in self.domains))

    def diameter(self, ord):
        r"""An upper bound: the largest of $\mathrm{diam}\,X_i$ and of
        $\mathrm{diam}\,X_i + |s_i - s_j| + \mathrm{diam}\,X_j$, with $s_i$ the start of $X_i$.

        The farthest points of a hull of a union lie in the union, and there the triangle inequality holds.
        """
        widths = [domain.diameter(ord) for domain in self.domains]
        starts = [domain.start() for domain in self.domains]
        pairs = itertools.combinations(range(len(widths)), 2)
        between = [widths[i] + tree.norm(tree.sub(starts[i], starts[j]), ord) + widths[j] for i, j in pairs]
        return jnp.max(jnp.stack(widths + between))


def _total(parts):
    return functools.reduce(tree.add, parts)
