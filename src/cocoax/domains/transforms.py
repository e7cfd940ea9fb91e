"""Images of a domain under simple maps: each LMO is one line of algebra on the inner one."""

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .. import _tree as tree
from ..errors import DomainError
from .base import AbstractDomain, AbstractVertex, Point, check_norm, number
from .combinators import as_tree


class Scaled(AbstractVertex):
    """factor * v."""

    inner: AbstractVertex
    factor: Float[Array, ""]

    def dense(self):
        return tree.scale(self.factor, self.inner.dense())

    def dot(self, x):
        return self.factor * self.inner.dot(x)

    def mix(self, x, step):
        return plus(tree.scale(1 - step, x), step * self.factor, self.inner)

    def combine(self, weights):
        return self.inner.combine(weights * self.factor)


class Scale(AbstractDomain):
    r"""$\{a x : x \in X\}$; a negative factor also reflects X in the origin.

    >>> import jax.numpy as jnp
    >>> from cocoax.domains import ProbabilitySimplex
    >>> flipped = Scale(ProbabilitySimplex(3), -2.0)
    >>> flipped.lmo(jnp.array([1.0, 3.0, 2.0])).dense().tolist()
    [0.0, -2.0, 0.0]
    """

    domain: AbstractDomain
    factor: Float[Array, ""]

    def __init__(self, domain, factor):
        self.domain = as_domain(domain)
        self.factor = number(factor, "factor")
        if self.factor.ndim:
            raise DomainError(f"factor must be one number, got shape {self.factor.shape}")
        if not tree.is_traced(self.factor) and self.factor == 0:
            raise DomainError("factor must not be 0, which would leave a single point")

    @property
    def shape(self):
        return self.domain.shape

    def lmo(self, direction, guess: Any = None):
        inner = ask(self.domain, tree.scale(jnp.sign(self.factor), direction), guess)
        return Scaled(inner, self.factor.astype(tree.dtype(direction)))

    def vertex(self):
        return Scaled(self.domain.vertex(), self.factor)

    def start(self):
        return tree.scale(self.factor, self.domain.start())

    def diameter(self, ord):
        return jnp.abs(self.factor) * self.domain.diameter(ord)

    def contains(self, x, tol=1e-6):
        return self.domain.contains(self._back(x), tol)

    def project(self, x):
        return tree.scale(self.factor, self.domain.project(self._back(x)))

    def _back(self, x):
        return jax.tree.map(lambda leaf: leaf / self.factor.astype(leaf.dtype), x)


class Translated(AbstractVertex):
    """v + shift."""

    inner: AbstractVertex
    shift: Point

    def dense(self):
        return tree.add(self.inner.dense(), self.shift)

    def dot(self, x):
        return self.inner.dot(x) + tree.dot(x, self.shift)

    def mix(self, x, step):
        return tree.add(self.inner.mix(x, step), tree.scale(step, self.shift))

    def combine(self, weights):
        moved = jax.tree.map(lambda leaf: jnp.tensordot(weights, leaf, axes=1), self.shift)
        return tree.add(self.inner.combine(weights), moved)


class Translate(AbstractDomain):
    r"""$\{x + s : x \in X\}$; a single number shifts every entry of an array.

    >>> import jax.numpy as jnp
    >>> from cocoax.domains import L1Ball
    >>> moved = Translate(L1Ball(3, radius=1.0), jnp.array([5.0, 0.0, 0.0]))
    >>> moved.lmo(jnp.array([1.0, 3.0, 2.0])).dense().tolist()
    [5.0, -1.0, 0.0]
    """

    domain: AbstractDomain
    shift: Point

    def __init__(self, domain, shift):
        self.domain = as_domain(domain)
        shapes, structure = jax.tree.flatten(domain.shape, is_leaf=tree.is_shape)
        try:
            pairs = zip(structure.flatten_up_to(shift), shapes)
            leaves = [jnp.broadcast_to(number(leaf, "shift"), shape) for leaf, shape in pairs]
        except (ValueError, TypeError) as error:
            if isinstance(error, DomainError):
                raise
            raise DomainError(
                f"shift must have the domain's shape {domain.shape}, got {jax.tree.map(jnp.shape, shift)}"
            ) from None
        self.shift = jax.tree.unflatten(structure, leaves)

    @property
    def shape(self):
        return self.domain.shape

    def lmo(self, direction, guess: Any = None):
        return Translated(ask(self.domain, direction, guess), self._shift(direction))

    def vertex(self):
        return Translated(self.domain.vertex(), self.shift)

    def start(self):
        return tree.add(self.domain.start(), self.shift)

    def diameter(self, ord):
        return self.domain.diameter(ord)

    def contains(self, x, tol=1e-6):
        size = reach(self.domain)
        tol = tol * (1 + tree.norm(self.shift) / jnp.where(size > 0, size, jnp.inf))  # of X + s, not of X
        return self.domain.contains(tree.sub(x, self._shift(x)), tol)

    def project(self, x):
        return tree.add(self.domain.project(tree.sub(x, self._shift(x))), self._shift(x))

    def _shift(self, like):
        return tree.astype(self.shift, tree.dtype(like))


class Image(AbstractVertex):
    """A v, computed once; v is kept as the next guess."""

    inner: AbstractVertex
    point: Point

    def dense(self):
        return self.point


class LinearImage(AbstractDomain):
    r"""$\{A x : x \in X\}$, with the LMO $A\,\mathrm{lmo}_X(A^\top c)$.

    **Arguments:**

    - `domain`: X.
    - `linear`: A as an array, whose last axes are those of x and whose first axes are those of a new decision; or
      a linear JAX function, which JAX transposes; or two functions `(apply, transpose)`.
    - `norm`: for functions, the operator norm $\|A\|_{2\to2}$, or `{1: ..., 2: ...}` with what is known of
      $\|A\|_{1\to1}$ and $\|A\|_{2\to2}$; the diameters need it. An array's are computed.

    An LMO cannot tell whether a point lies in the image, so `contains` is refused.

    >>> import jax.numpy as jnp
    >>> from cocoax.domains import L2Ball
    >>> ellipse = LinearImage(L2Ball(2, radius=1.0), jnp.array([[3.0, 0.0], [0.0, 1.0]]))
    >>> ellipse.lmo(jnp.array([1.0, 0.0])).dense().tolist()
    [-3.0, 0.0]
    """

    domain: AbstractDomain
    linear: "_Matrix | _Functions"
    norms: dict[int, Float[Array, ""]]

    def __init__(self, domain, linear, *, norm=None):
        self.domain = as_domain(domain)
        is_function = callable(linear) or isinstance(linear, tuple)
        self.linear = _Functions.build(domain, linear) if is_function else _Matrix.build(domain, linear)
        given = {} if norm is None else norm if isinstance(norm, dict) else {2: norm}
        for ord in given:
            check_norm(ord)
        self.norms = self.linear.norms() | {
            ord: number(value, "norm", positive=True) for ord, value in given.items()
        }

    @property
    def shape(self):
        return jax.tree.map(lambda leaf: leaf.shape, jax.eval_shape(self.start))

    def lmo(self, direction, guess: Any = None):
        like = tree.astype(self.domain.start(), tree.dtype(direction))
        inner = ask(self.domain, self.linear.transpose(direction, like), guess)
        return Image(inner, self.linear.image(inner, like))

    def vertex(self):
        inner = self.domain.vertex()
        return Image(inner, self.linear.image(inner, self.domain.start()))

    def start(self):
        return self.linear.apply(self.domain.start())

    def diameter(self, ord):
        r"""An upper bound: $|A(x-y)|_p \le \|A\|_{p\to p}\,|x-y|_p$."""
        check_norm(ord)
        if ord not in self.norms:
            raise DomainError(
                f"the l{ord} diameter of this image is not known; give LinearImage(norm={{{ord}: ...}})"
            )
        return self.norms[ord] * self.domain.diameter(ord)

    def contains(self, x, tol=1e-6):
        raise undecided(self)


class _Matrix(eqx.Module):
    """A as an array of shape (*new, *old)."""

    entries: Float[Array, "..."]
    axes: int = eqx.field(static=True)  # how many of them are those of x

    @classmethod
    def build(cls, domain, entries):
        entries = number(entries, "linear")
        if not tree.is_shape(domain.shape):
            raise DomainError("an array maps arrays; to map a PyTree of decisions give linear as a function")
        axes = len(domain.shape)
        if entries.ndim <= axes or entries.shape[entries.ndim - axes :] != domain.shape:
            raise DomainError(
                f"the last axes of linear must be those of the domain, {domain.shape}, got shape {entries.shape}"
            )
        return cls(entries, axes)

    def apply(self, x):
        return jnp.tensordot(self.entries.astype(x.dtype), x, axes=self.axes, precision="highest")

    def transpose(self, direction, like):
        entries = self.entries.astype(direction.dtype)
        return jnp.tensordot(direction, entries, axes=direction.ndim, precision="highest")

    def image(self, vertex, like):
        """By one product with each row of A, so that v is never dense."""
        new = self.entries.shape[: self.entries.ndim - self.axes]
        rows = self.entries.astype(like.dtype).reshape(-1, *like.shape)
        with jax.default_matmul_precision("highest"):
            return jax.vmap(vertex.dot)(rows).reshape(new)

    def norms(self):
        old = self.entries.shape[self.entries.ndim - self.axes :]
        matrix = self.entries.reshape(-1, math.prod(old))
        return {1: jnp.max(jnp.sum(jnp.abs(matrix), axis=0)), 2: jnp.linalg.norm(matrix, 2)}


class _Functions(eqx.Module):
    """A as a linear function, with its transpose where JAX shall not find it."""

    forward: Callable
    backward: Callable | None

    @classmethod
    def build(cls, domain, functions):
        forward, backward = functions if isinstance(functions, tuple) else (functions, None)
        image = jax.eval_shape(forward, domain.start())
        if backward is not None:
            back = jax.tree.map(jnp.shape, jax.eval_shape(backward, image))
            if back != domain.shape:
                raise DomainError(f"transpose must return the domain's shape {domain.shape}, got {back}")
        return cls(as_tree(forward), None if backward is None else as_tree(backward))

    def apply(self, x):
        return self.forward(x)

    def transpose(self, direction, like):
        if self.backward is not None:
            return self.backward(direction)
        return jax.linear_transpose(self.forward, like)(direction)[0]

    def image(self, vertex, like):
        return self.forward(vertex.dense())

    def norms(self):
        return {}


def as_domain(domain) -> AbstractDomain:
    if not isinstance(domain, AbstractDomain):
        raise DomainError(f"a set is made from a domain, got {type(domain).__name__}")
    return domain


def ask(domain, direction, guess: Any):
    """The inner LMO; an earlier answer that wraps one of its own is a guess."""
    return domain.lmo(direction, None if guess is None else guess.inner)


def plus(x, weight, vertex):
    """x + weight v."""
    return tree.add(x, vertex.mix(tree.zeros_like(x), weight))


def width(domain):
    """No two points of X are farther apart in the l2 norm: its diameter or, where that is not known, the l1 one."""
    try:
        return domain.diameter(2)
    except DomainError:
        return domain.diameter(1)


def reach(domain):
    """No point of X is longer in the l2 norm."""
    return tree.norm(domain.start()) + width(domain)


def undecided(domain):
    return DomainError(f"an LMO alone cannot decide membership in a {type(domain).__name__}")
