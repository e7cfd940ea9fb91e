"""Base classes: a compact convex set with a linear minimisation oracle (LMO), and its vertices."""

import abc
import math
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..core import tree
from ..core.facts import DomainFacts
from ..errors import DomainError
from .checked import WRAPPERS, checked_point, floating, of_points

Point = Any
"""A decision: an array, or a PyTree of arrays."""


class AbstractVertex(eqx.Module):
    r"""An extreme point v, in a form that takes little memory. A subclass gives `dense`; the rest follows.

    >>> import jax.numpy as jnp
    >>> from cocoax.domains import ProbabilitySimplex
    >>> vertex = ProbabilitySimplex(3).lmo(jnp.array([2.0, -1.0, 0.5]))  # an index and a height
    >>> vertex.dense().tolist(), float(vertex.dot(jnp.arange(3.0)))
    ([0.0, 1.0, 0.0], 1.0)
    >>> vertex.mix(jnp.array([1.0, 0.0, 0.0]), 0.25).tolist()  # a Frank-Wolfe step
    [0.75, 0.25, 0.0]
    """

    @abc.abstractmethod
    def dense(self) -> Point:
        """The vertex as a point."""

    def dot(self, x: Point) -> Array:
        """<x, v>."""
        return tree.dot(x, self.dense())

    def mix(self, x: Point, step: Any) -> Point:
        """(1 - step) x + step v: the Frank-Wolfe step."""
        return tree.mix(x, self.dense(), step)

    def combine(self, weights: Any) -> Point:
        """For a batch of vertices: sum_k weights[..., k] v_k."""
        points = jax.vmap(lambda vertex: vertex.dense())(self)
        return tree.combine(weights, points)


class AbstractDomain(eqx.Module):
    """A compact convex set X. `lmo` and `diameter` are all that a projection-free method needs.

    Numbers (radii, bounds) are arrays, so that sets of one shape share one compilation; shapes are static.
    Answers carry the dtype of the direction that was asked. `lmo`, `support`, `contains` and `project` take lists and
    NumPy arrays too, and refuse points of another shape; all but `contains` also refuse what is not finite, where
    that can be seen (not in compiled code).
    """

    axes: ClassVar[int | None] = None
    """How many of the first entries stand for all: symmetries of X carry every other entry to one of them."""

    decomposes: ClassVar[bool] = False
    """Whether its answers need decompositions of matrices."""

    facts: ClassVar[DomainFacts]
    """What the catalogue says of it."""

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        for name, wrap in WRAPPERS.items():
            if name in vars(cls):
                setattr(cls, name, wrap(vars(cls)[name]))

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

    def vertex(self) -> AbstractVertex:
        """Some vertex: the first guess."""
        answer = self.lmo(jax.tree.map(jnp.zeros, self.shape, is_leaf=tree.is_shape))
        if isinstance(answer, jax.Array | np.ndarray):
            needed = "give an AbstractVertex whose dense() is that point, or make the set with domains.from_lmo"
            raise DomainError(f"{type(self).__name__}.lmo must return a vertex, got an array; {needed}")
        return answer

    @abc.abstractmethod
    def diameter(self, ord: Any) -> Array:
        """max |x - y| over X in the l1 (`ord=1`), l2 (`ord=2`) or linf (`ord=inf`) norm.

        A subclass answers for 1 and 2. The linf one is max_i h(e_i) + h(-e_i) with the support h, always exact, at
        the price of two LMO calls for each entry, or for each of the first `axes`.
        """

    def widest(self) -> Array:
        """The diameter in the linf norm."""
        return _widest(self)

    @abc.abstractmethod
    def contains(self, x: Point, tol: float = 1e-6) -> Array:
        """Whether x lies in X, to `tol` relative to the size of X."""

    def start(self) -> Point:
        """A point of X to begin with."""
        return self.vertex().dense()

    def tangent(self, direction: Point) -> Point:
        """The part of a direction that matters: <tangent, x - y> = <direction, x - y> on X, and it is no longer.

        On a simplex, for example, a constant added to all entries changes no decision. By default the direction.
        """
        return direction

    def inradius(self) -> Array | None:
        """The radius of a ball around `start()` that lies in X, within its affine hull; None if none is known."""
        return None

    def intervals(self) -> Point | None:
        """The length of each coordinate's interval where X is a product of intervals; None for all other sets."""
        return None

    def inner(self, point: Point) -> Point:
        """The nearest point of that ball, or of a larger set inside X."""
        dtype = tree.dtype(point)
        centre, radius = tree.astype(self.start(), dtype), self.inradius()
        if radius is None:
            return centre
        away = self.tangent(tree.sub(point, centre))
        length = tree.norm(away)
        return tree.add(centre, tree.scale(jnp.minimum(1, tree.ratio(radius.astype(dtype), length)), away))

    def span(self, points: tuple[Point, Point], vertices: AbstractVertex) -> Any:
        """Arithmetic with two points and stacked vertices, in the fastest form for this set; see `domains.span`."""
        from .span import Entrywise

        return Entrywise(points, vertices)

    @of_points("support")
    def support(self, direction: Point) -> Array:
        """max <direction, v> over X. Its gradient is the vertex that attains it, ties included."""
        return _support(direction, self)

    def lowest(self, direction: Point, guess: Any = None) -> Array:
        """min <direction, x> over X, or a proven lower bound on it, up to rounding: whole proofs rest on it.

        `guess`, a vertex that should be good, can make it faster, never wrong.
        """
        return self.lmo(direction).dot(direction)

    def project(self, x: Point) -> Point:
        """The nearest point of X in the l2 norm, where that is cheap and exact."""
        raise DomainError(
            f"{type(self).__name__} has no cheap exact projection; choose a learner that needs none, such as "
            "learners.Auto()"
        )

    def validate(self, point: Any, what: str, may_be_infinite: bool = True) -> Point:
        """A user's point or direction (`what`) as floating arrays of the domain's shape; else an error."""
        if tree.is_traced(point) and getattr(point, "shape", None) == self.shape and point.dtype == floating(point):
            checked = point  # in compiled code, nearly always
        else:
            checked = checked_point(self, point, what, may_be_infinite)
        if self.decomposes and tree.dtype(checked).itemsize < 4:
            raise DomainError(
                f"a {what} for this {type(self).__name__} must be float32 or float64, got {tree.dtype(checked)}, in "
                "which JAX has no decompositions"
            )
        return checked

    def view(self, x: Point) -> Any:
        """A point as losses and constraints see it."""
        return x

    def truncate(self, x: Point, weight: Any = None) -> Point:
        """A point or direction in the form that is stored between rounds; with a weight w, a point of w X stays one."""
        return x

    def intersect(self, A: Point, b: Any) -> "AbstractDomain":
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
        from .composed.intersection import Intersection

        return Intersection(self, A, b)


def centred(direction):
    """The tangent of a set whose points have one sum."""
    return direction - jnp.mean(direction)


@eqx.filter_custom_jvp
def _support(direction, domain):
    return domain.lmo(tree.scale(-1.0, direction)).dot(direction)


@_support.def_jvp
def _support_jvp(primals, tangents):
    (direction, domain), (moved, domain_moved) = primals, tangents
    vertex = domain.lmo(tree.scale(-1.0, direction))
    tangent = vertex.dot(jax.tree.map(lambda d, t: jnp.zeros_like(d) if t is None else t, direction, moved))
    if jax.tree.leaves(domain_moved):
        fixed = jax.lax.stop_gradient(direction)
        tangent += eqx.filter_jvp(lambda X: X.lmo(tree.scale(-1.0, fixed)).dot(fixed), (domain,), (domain_moved,))[1]
    return vertex.dot(direction), tangent


@eqx.filter_jit  # for its loop, JAX would compile a new program in every call
def _widest(domain):
    shapes, structure = jax.tree.flatten(domain.shape, is_leaf=tree.is_shape)
    splits = np.cumsum([math.prod(shape) for shape in shapes])[:-1]

    def extent(i):
        parts = jnp.split((jnp.arange(domain.dimension) == i).astype(float), splits)
        axis = jax.tree.unflatten(structure, [part.reshape(shape) for part, shape in zip(parts, shapes)])
        return domain.support(axis) + domain.support(tree.scale(-1.0, axis))

    count = min(domain.axes or domain.dimension, domain.dimension)
    return jnp.max(jax.lax.map(extent, jnp.arange(count), batch_size=min(count, 64)))


def undecided(domain):
    return DomainError(f"an LMO alone cannot decide membership in a {type(domain).__name__}")
