"""Products of domains."""

import functools
import operator
from typing import Any

import jax
import jax.numpy as jnp

from ...core import check
from ...core.facts import DomainFacts
from ...errors import DomainError
from ..base import AbstractDomain
from ..vertices import ProductVertex


class Product(AbstractDomain):
    r"""$X = X_1 \times \dots \times X_k$, a PyTree of domains; decisions are PyTrees of the same structure.

    >>> import jax.numpy as jnp
    >>> from cocoax.domains import L1Ball, ProbabilitySimplex
    >>> domain = Product({"mix": ProbabilitySimplex(2), "shift": L1Ball(2, radius=3.0)})
    >>> vertex = domain.lmo({"mix": jnp.array([1.0, 0.0]), "shift": jnp.array([0.0, -2.0])})
    >>> {name: block.tolist() for name, block in vertex.dense().items()}
    {'mix': [0.0, 1.0], 'shift': [0.0, 3.0]}
    """

    facts = DomainFacts("its parts'")

    blocks: Any

    def __init__(self, blocks: Any):
        self.blocks = blocks
        if not self._leaves():
            raise DomainError("a product needs at least one domain, got none")
        for block in self._leaves():
            check.instance(block, AbstractDomain, DomainError, "every leaf of a product must be a domain")

    @property
    def shape(self):
        return self._map(lambda block: block.shape)

    def lmo(self, direction, guess: Any = None):
        if guess is None:
            return ProductVertex(self._map(lambda block, part: block.lmo(part), direction))
        return ProductVertex(self._map(lambda block, *parts: block.lmo(*parts), direction, guess.blocks))

    def lowest(self, direction, guess: Any = None):
        """The sum of the blocks' lowest values."""
        if guess is None:
            lowest = self._map(lambda block, part: block.lowest(part), direction)
        else:
            lowest = self._map(lambda block, *parts: block.lowest(*parts), direction, guess.blocks)
        return functools.reduce(operator.add, jax.tree.leaves(lowest))

    def vertex(self):
        return ProductVertex(self._map(lambda block: block.vertex()))

    def tangent(self, direction):
        return self._map(lambda block, part: block.tangent(part), direction)

    def start(self):
        return self._map(lambda block: block.start())

    def inradius(self):
        radii = [radius for radius in (block.inradius() for block in self._leaves()) if radius is not None]
        return functools.reduce(jnp.minimum, radii) if len(radii) == len(self._leaves()) else None

    def inner(self, point):
        return self._map(lambda block, part: block.inner(part), point)

    def intervals(self):
        widths = self._map(lambda block: block.intervals())
        return None if any(block.intervals() is None for block in self._leaves()) else widths

    def diameter(self, ord):
        widths = [block.diameter(ord) ** ord for block in self._leaves()]
        return functools.reduce(operator.add, widths) ** (1 / ord)

    def contains(self, x, tol=1e-6):
        inside = self._map(lambda block, part: block.contains(part, tol), x)
        return functools.reduce(operator.and_, jax.tree.leaves(inside))

    def project(self, x):
        return self._map(lambda block, part: block.project(part), x)

    def validate(self, point, what, may_be_infinite=True):
        """The user's point, validated block by block if a block has points of its own form, such as a factored ball."""
        if not self._has_views():
            return super().validate(point, what, may_be_infinite)
        needed = jax.tree.structure(self.blocks, is_leaf=_is_domain)
        try:
            parts = needed.flatten_up_to(point)
        except ValueError:
            found = check.described(point)
            raise DomainError(f"a {what} for this product must have the structure {needed}, got {found}") from None
        return needed.unflatten(
            block.validate(part, what, may_be_infinite) for block, part in zip(self._leaves(), parts)
        )

    def view(self, x):
        return self._map(lambda block, part: block.view(part), x) if self._has_views() else x

    def truncate(self, x, weight=None):
        return self._map(lambda block, part: block.truncate(part, weight), x) if self._has_views() else x

    def _has_views(self) -> bool:
        return any(type(block).view is not AbstractDomain.view for block in self._leaves())

    def _map(self, function, *trees):
        return jax.tree.map(function, self.blocks, *trees, is_leaf=_is_domain)

    def _leaves(self) -> list[AbstractDomain]:
        return jax.tree.leaves(self.blocks, is_leaf=_is_domain)


def _is_domain(node):
    return isinstance(node, AbstractDomain)
