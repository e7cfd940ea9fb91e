"""What a domain is: a compact convex set that answers linear minimisation, and its vertices."""

import abc
import functools
import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from .. import _check as check
from .. import _tree as tree
from ..errors import DomainError

Point = Any
"""A decision: an array, or a PyTree of arrays."""


def number(value, name, *, positive=False):
    """A parameter of a set as an array, checked where its value can be seen."""
    if not tree.is_traced(value):
        seen = check.real(value, name, DomainError)
        if not np.all(np.isfinite(seen)):
            raise DomainError(f"{name} must be finite, got {value}")
        if positive and seen.ndim > 0:
            raise DomainError(f"{name} must be one number, got shape {seen.shape}")
        if positive and not seen > 0:
            raise DomainError(f"{name} must be positive, got {value}")
    return jnp.asarray(value, dtype=float)


class AbstractVertex(eqx.Module):
    """An extreme point, kept in the form that makes it small."""

    @abc.abstractmethod
    def dense(self) -> Point:
        """The vertex as a point."""

    def dot(self, x: Point):
        """<x, v>."""
        return tree.dot(x, self.dense())

    def mix(self, x: Point, step) -> Point:
        """(1 - step) x + step v: the Frank-Wolfe step."""
        return tree.mix(x, self.dense(), step)

    def combine(self, weights) -> Point:
        """For a batch of vertices: sum_k weights[..., k] v_k."""
        points = jax.vmap(lambda vertex: vertex.dense())(self)
        return jax.tree.map(lambda leaf: jnp.tensordot(weights, leaf, axes=1), points)


class AbstractDomain(eqx.Module):
    """A compact convex set X. `lmo` and `diameter` are all that a projection-free method needs.

    Numbers (radii, bounds) are arrays, so that sets of one shape share one compilation; shapes are static.
    Answers carry the dtype of the direction that was asked. `lmo`, `contains` and `project` refuse points of another
    shape; the first and the last also refuse what is not finite, where that can be seen (not in compiled code).
    """

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        for name in {"lmo", "contains", "project"} & vars(cls).keys():
            setattr(cls, name, _of_points(vars(cls)[name], name))

    @property
    @abc.abstractmethod
    def shape(self) -> Any:
        """The shape of a decision, or a PyTree of shapes."""

    @property
    def dimension(self) -> int:
        """d, the number of entries of a decision."""
        return sum(math.prod(shape) for shape in jax.tree.leaves(self.shape, is_leaf=tree.is_shape))

    @abc.abstractmethod
    def lmo(self, direction: Point, guess: AbstractVertex | None = None) -> AbstractVertex:
        """A vertex that minimises <direction, v> over X. `guess` is an earlier answer to start from."""

    @abc.abstractmethod
    def vertex(self) -> AbstractVertex:
        """Some vertex: the first guess."""

    @abc.abstractmethod
    def diameter(self, ord: int) -> Array:
        """max |x - y| over X in the l1 (`ord=1`) or l2 (`ord=2`) norm."""

    @abc.abstractmethod
    def contains(self, x: Point, tol: float = 1e-6) -> Array:
        """Whether x lies in X, to `tol` relative to the size of X."""

    def start(self) -> Point:
        """A point of X to begin with."""
        return self.vertex().dense()

    def support(self, direction: Point):
        """max <direction, v> over X."""
        return self.lmo(tree.scale(-1.0, direction)).dot(direction)

    def project(self, x: Point) -> Point:
        """The nearest point of X in the l2 norm, where that is cheap and exact."""
        raise DomainError(f"{type(self).__name__} has no cheap exact projection; choose a projection-free primal")

    def intersect(self, A: Point, b) -> "AbstractDomain":
        r"""$X \cap \{x : \langle A_i, x\rangle \le b_i\}$, where a few known hard constraints belong to the set.

        **Arguments:**

        - `A`: an array like a decision, or several with a leading axis; for a PyTree of decisions a PyTree of these.
        - `b`: one number, or one for each row.

        An answer of its LMO carries its proof, `gap` and `multiplier`. Raises `InfeasibleError`, with the proof, if
        the set is empty.

        >>> import jax.numpy as jnp
        >>> from cocoax.domains import ProbabilitySimplex
        >>> domain = ProbabilitySimplex(3).intersect(jnp.array([1.0, 0.0, 0.0]), 0.25)
        >>> vertex = domain.lmo(jnp.array([1.0, 2.0, 4.0]))
        >>> vertex.dense().round(6).tolist(), vertex.multiplier.round(6).tolist()
        ([0.25, 0.75, 0.0], [1.0])
        """
        from .intersection import Intersection

        return Intersection(self, A, b)


def _of_points(method, name):
    """The method, given its point as arrays that have the domain's shape."""
    what, may_be_infinite = "direction" if name == "lmo" else "point", name == "contains"

    @functools.wraps(method)
    def checked(self, point, *args, **options):
        return method(self, _as_point(self, point, what, may_be_infinite), *args, **options)

    return checked


def _as_point(domain, given, what, may_be_infinite):
    kind, shapes = type(domain).__name__, domain.shape
    given = check.listed(given) if tree.is_shape(shapes) else given
    leaves, structure = jax.tree.flatten(given)
    expected, needed = jax.tree.flatten(shapes, is_leaf=tree.is_shape)
    if structure != needed:
        raise DomainError(f"a {what} for this {kind} must have the structure {needed}, got {structure}")
    for leaf, shape in zip(leaves, expected):
        if not isinstance(leaf, jax.Array):
            check.real(leaf, f"a {what}", DomainError)
        if jnp.shape(leaf) != shape:
            raise DomainError(f"a {what} for this {kind} must have shape {shape}, got {jnp.shape(leaf)}")
        if not (may_be_infinite or tree.is_traced(leaf) or np.isfinite(np.asarray(leaf)).all()):
            raise DomainError(f"a {what} must be finite, got NaN or infinity")
    dtypes = [jnp.result_type(leaf) for leaf in leaves]
    kinds = [dtype if jnp.issubdtype(dtype, jnp.floating) else float for dtype in dtypes]
    return jax.tree.unflatten(structure, [jnp.asarray(leaf, kind) for leaf, kind in zip(leaves, kinds)])


def check_norm(ord):
    if ord not in (1, 2):
        raise DomainError(f"diameter is known in the l1 and l2 norms, ord must be 1 or 2, got {ord}")
