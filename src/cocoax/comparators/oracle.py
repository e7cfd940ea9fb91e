"""A domain's oracles on flat float64 vectors, and what can be seen of its shape."""

import functools

import equinox as eqx
import jax
import numpy as np
from jax.flatten_util import ravel_pytree

from ..domains.base import AbstractDomain
from ..domains.composed.product import Product
from ..errors import DomainError


class Oracle:
    """Linear minimisation, and projection and membership where the domain has them."""

    def __init__(self, domain, like):
        self.domain, self.like = domain, like
        self.centre = np.asarray(ravel_pytree(like)[0], np.float64)
        self.diameter = float(_diameter(domain))
        self.calls = 0  # of the LMO

    def lmo(self, direction):
        self.calls += 1
        return np.asarray(_lmo(self.domain, direction, self.like), np.float64)

    def width(self, direction) -> float:
        """By how much <direction, x> changes over X."""
        return float(direction @ (self.lmo(-direction) - self.lmo(direction)))

    def inside(self, point, tol=0.0):
        try:
            return bool(_contains(self.domain, point, tol, self.like))
        except DomainError:  # an LMO alone cannot tell
            return False

    def nearest(self, point):
        return np.asarray(_project(self.domain, point, self.like), np.float64)

    @functools.cached_property
    def projects(self) -> bool:
        try:
            return bool(np.isfinite(self.nearest(self.centre)).all())
        except DomainError:
            return False

    @functools.cached_property
    def is_polytope(self) -> bool:
        """Whether X seems to be one: directions that are almost the same have the same answer."""
        directions, noise = np.random.default_rng(0).standard_normal((2, 3, len(self.centre)))
        vertices, nudged = ([self.lmo(one) for one in many] for many in (directions, directions + 1e-6 * noise))
        return bool(np.abs(np.subtract(vertices, nudged)).max() <= 1e-12 * self.diameter)

    @functools.cached_property
    def has_interior(self) -> bool:
        """Whether X seems to have one: a little noise does not lead out of it, as far as `contains` can tell."""
        directions = np.random.default_rng(0).standard_normal((21, len(self.centre)))
        middle = 0.5 * (np.mean([self.lmo(direction) for direction in directions[1:]], axis=0) + self.centre)
        return self.inside(middle + 1e-4 * self.diameter * directions[0] / np.linalg.norm(directions[0]))


def blocks(domain) -> list[AbstractDomain]:
    """The factors of a product, in the order of flat decisions."""
    if not isinstance(domain, Product):
        return [domain]
    leaves = jax.tree.leaves(domain.blocks, is_leaf=lambda node: isinstance(node, AbstractDomain))
    return [block for leaf in leaves for block in blocks(leaf)]


@eqx.filter_jit
def _lmo(domain, direction, like):
    return ravel_pytree(domain.lmo(ravel_pytree(like)[1](direction)).dense())[0]


@eqx.filter_jit
def _project(domain, point, like):
    return ravel_pytree(domain.project(ravel_pytree(like)[1](point)))[0]


@eqx.filter_jit
def _contains(domain, point, tol, like):
    return domain.contains(ravel_pytree(like)[1](point), tol)


@eqx.filter_jit
def _diameter(domain):
    try:
        return domain.diameter(2)
    except DomainError:
        return domain.diameter(1)  # an upper bound
