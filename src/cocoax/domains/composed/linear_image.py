"""The image of a domain under a linear map."""

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...core import tree
from ...core.facts import DomainFacts
from ...errors import DomainError
from ..arguments import by_norm, number
from ..base import AbstractDomain, AbstractVertex, Point, undecided
from .transforms import as_domain, ask, lowest


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

    facts = DomainFacts("its parts'")

    domain: AbstractDomain
    linear: "_Matrix | _Functions"
    norms: dict[int, Float[Array, ""]]

    def __init__(self, domain: Any, linear: Any, *, norm: Any = None):
        self.domain = as_domain(domain)
        is_function = callable(linear) or (isinstance(linear, tuple) and any(callable(part) for part in linear))
        self.linear = (_Functions if is_function else _Matrix).build(self.domain, linear)
        self.norms = self.linear.norms() | ({} if norm is None else by_norm(norm, "norm"))

    @property
    def shape(self):
        return jax.tree.map(lambda leaf: leaf.shape, jax.eval_shape(self.start))

    def lmo(self, direction, guess: Any = None):
        like = tree.astype(self.domain.start(), tree.dtype(direction))
        inner = ask(self.domain, self.linear.transpose(direction, like), guess)
        return Image(inner, self.linear.image(inner, like))

    def lowest(self, direction, guess: Any = None):
        like = tree.astype(self.domain.start(), tree.dtype(direction))
        return lowest(self.domain, self.linear.transpose(direction, like), guess)

    def vertex(self):
        inner = self.domain.vertex()
        return Image(inner, self.linear.image(inner, self.domain.start()))

    def start(self):
        return self.linear.apply(self.domain.start())

    def diameter(self, ord):
        r"""An upper bound: $|A(x-y)|_p \le \|A\|_{p\to p}\,|x-y|_p$."""
        if ord not in self.norms:
            raise DomainError(f"the l{ord} diameter of this image is not known; give LinearImage(norm={{{ord}: ...}})")
        return self.norms[ord] * self.domain.diameter(ord)

    def contains(self, x, tol=1e-6):
        raise undecided(self)


class _Matrix(eqx.Module):
    """A as an array of shape (*new, *old)."""

    entries: Float[Array, "..."]
    axes: int = eqx.field(static=True)  # how many of them are those of x

    @classmethod
    def build(cls, domain, entries):
        """The map of this array, checked to fit the domain."""
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
        """A v, by one product with each row of A, so that v is never dense."""
        new = self.entries.shape[: self.entries.ndim - self.axes]
        rows = self.entries.astype(like.dtype).reshape(-1, *like.shape)
        with jax.default_matmul_precision("highest"):
            return jax.vmap(vertex.dot)(rows).reshape(new)

    def norms(self):
        old = self.entries.shape[self.entries.ndim - self.axes :]
        matrix = self.entries.reshape(-1, math.prod(old))
        return {1: jnp.max(jnp.sum(jnp.abs(matrix), axis=0)), 2: jnp.linalg.norm(matrix, 2)}


class _Functions(eqx.Module):
    """A as a linear function, with the user's transpose; without that, JAX transposes."""

    forward: Callable
    backward: Callable | None

    @classmethod
    def build(cls, domain, functions):
        """The map of the user's function, or of functions (apply, transpose), tried out on the domain."""
        forward, backward = functions if isinstance(functions, tuple) and len(functions) == 2 else (functions, None)
        for function in (forward, backward):
            if not (callable(function) or function is None):
                raise DomainError(f"linear must be an array, or made of functions, got {type(function).__name__}")
        made = cls(tree.as_pytree(forward), None if backward is None else tree.as_pytree(backward))
        made._try_out(domain)
        return made

    def _try_out(self, domain):
        """Raise `DomainError` unless the function is linear and its transpose right, on one random pair."""
        rng = np.random.default_rng(0)

        def drawn(like):
            return jax.tree.map(lambda leaf: jnp.asarray(rng.standard_normal(leaf.shape), leaf.dtype), like)

        x = drawn(domain.start())
        try:
            y = drawn(jax.eval_shape(self.forward, x))
            back = self.transpose(y, x)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            raise DomainError(
                f"linear must be a linear JAX function, or two functions (apply, transpose), but JAX says {reason}"
            ) from error
        if (shape := jax.tree.map(jnp.shape, back)) != domain.shape:
            raise DomainError(f"transpose must return the domain's shape {domain.shape}, got {shape}")
        image, origin, opposite = (self.forward(tree.scale(factor, x)) for factor in (1, 0, -2))
        if tree.is_traced(image, back):
            return
        rounding = jnp.finfo(tree.dtype(x)).eps ** 0.5
        size = tree.norm(image) * tree.norm(y) + tree.norm(x) * tree.norm(back)
        if tree.norm(origin) > rounding * tree.norm(image):
            raise DomainError("linear must map 0 to 0; Translate the image to move it")
        if not tree.norm(tree.add(opposite, tree.scale(2, image))) <= rounding * tree.norm(image):
            raise DomainError("linear must be linear, but A(-2 x) is not -2 A(x)")
        if not abs(tree.dot(image, y) - tree.dot(x, back)) <= rounding * size:
            raise DomainError("linear must be linear and transpose its transpose, but <A x, y> is not <x, A' y>")

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
