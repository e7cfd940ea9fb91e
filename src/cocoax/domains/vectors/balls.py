"""Balls of the l1, l2 and linf norms, and boxes."""

import math
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...core import tree
from ...core.facts import DomainFacts, with_facts
from ...errors import DomainError
from ..arguments import as_shape, number, scalar
from ..base import AbstractDomain
from ..vertices import Dense, OneHot, Signs
from .simplices import onto_simplex


class AbstractBall(AbstractDomain):
    """The points, of any shape, whose norm is at most r, for a norm that does not depend on the order of entries."""

    axes = 1
    sizes: tuple[int, ...] = eqx.field(static=True)
    radius: Float[Array, ""]

    def __init__(self, shape, radius):
        self.sizes = as_shape(shape)
        self.radius = scalar(radius, "radius", positive=True)

    @property
    def shape(self):
        return self.sizes

    def start(self):
        return jnp.zeros(self.shape)


class L1Ball(AbstractBall):
    r"""$X = \{x : \sum_i |x_i| \le r\}$, of any shape.

    >>> import jax.numpy as jnp
    >>> ball = L1Ball(3, radius=2.0)
    >>> ball.lmo(jnp.array([1.0, -3.0, 2.0])).dense().tolist()
    [0.0, 2.0, 0.0]
    """

    facts = DomainFacts("a pass over the direction")

    def __init__(self, shape: Any, radius: Any):
        super().__init__(shape, radius)

    def lmo(self, direction, guess=None):
        radius = self.radius.astype(direction.dtype)
        index = jnp.argmax(jnp.abs(direction))
        return OneHot(index, jnp.where(direction.reshape(-1)[index] > 0, -radius, radius), self.shape)

    def diameter(self, ord):
        return 2 * self.radius

    def inradius(self):
        return self.radius / self.dimension**0.5

    def contains(self, x, tol=1e-6):
        return tree.norm(x, 1) <= (1 + tol) * self.radius.astype(x.dtype)

    def project(self, x):
        return onto_l1_ball(x, self.radius.astype(x.dtype))


class L2Ball(AbstractBall):
    r"""$X = \{x : \sum_i x_i^2 \le r^2\}$, of any shape.

    >>> import jax.numpy as jnp
    >>> ball = L2Ball(2, radius=5.0)
    >>> ball.lmo(jnp.array([3.0, -4.0])).dense().round(4).tolist()
    [-3.0, 4.0]
    """

    facts = DomainFacts("a pass over the direction")

    def __init__(self, shape: Any, radius: Any):
        super().__init__(shape, radius)

    def lmo(self, direction, guess=None):
        direction, zero = rescale(direction)
        direction = jnp.where(zero, 1, direction)
        return Dense((-self.radius.astype(direction.dtype) / tree.norm(direction)) * direction)

    def diameter(self, ord):
        return {1: 2 * math.prod(self.shape) ** 0.5, 2: 2.0}[ord] * self.radius

    def inradius(self):
        return self.radius

    def contains(self, x, tol=1e-6):
        return tree.norm(x / self.radius.astype(x.dtype)) <= 1 + tol

    def project(self, x):
        radius = self.radius.astype(x.dtype)
        outside, _ = rescale(x)  # so that squares of large entries do not overflow
        on_sphere = (radius / jnp.maximum(tree.norm(outside), 1)) * outside
        return jnp.where(tree.norm(x / radius) <= 1, x, on_sphere)


class LinfBall(AbstractBall):
    r"""$X = \{x : \max_i |x_i| \le r\}$, of any shape.

    >>> import jax.numpy as jnp
    >>> ball = LinfBall(3, radius=2.0)
    >>> ball.lmo(jnp.array([1.0, -3.0, 2.0])).dense().tolist()
    [-2.0, 2.0, -2.0]
    """

    facts = DomainFacts("a pass over the direction")

    def __init__(self, shape: Any, radius: Any):
        super().__init__(shape, radius)

    def lmo(self, direction, guess=None):
        return Signs(direction <= 0, self.radius.astype(direction.dtype))

    def diameter(self, ord):
        return 2 * math.prod(self.shape) ** (1 / ord) * self.radius

    def inradius(self):
        return self.radius

    def contains(self, x, tol=1e-6):
        return jnp.max(jnp.abs(x)) <= (1 + tol) * self.radius.astype(x.dtype)

    def project(self, x):
        radius = self.radius.astype(x.dtype)
        return jnp.clip(x, -radius, radius)


class Box(AbstractDomain):
    r"""$X = \{x : l_i \le x_i \le u_i\}$, of any shape; a single number bounds every entry.

    >>> import jax.numpy as jnp
    >>> box = Box(0.0, jnp.array([1.0, 2.0, 3.0]))
    >>> box.lmo(jnp.array([1.0, -1.0, -1.0])).dense().tolist()
    [0.0, 2.0, 3.0]
    """

    facts = DomainFacts("a pass over the direction")

    lower: Float[Array, "..."]
    upper: Float[Array, "..."]

    def __init__(self, lower: Any, upper: Any):
        bounds = (number(lower, "lower"), number(upper, "upper"))
        try:
            self.lower, self.upper = jnp.broadcast_arrays(*bounds)
        except ValueError:
            shapes = f"{jnp.shape(lower)} and {jnp.shape(upper)}"
            raise DomainError(
                f"lower and upper must have one shape, or one of them be a number, got {shapes}"
            ) from None
        if self.lower.size == 0:
            raise DomainError(f"a box needs at least one coordinate, got shape {self.lower.shape}")
        if not tree.is_traced(lower, upper):
            low, high = np.broadcast_arrays(np.asarray(lower), np.asarray(upper))
            if np.any(low > high):
                first = tuple(int(i) for i in np.argwhere(low > high)[0])
                raise DomainError(f"lower must not exceed upper, got {low[first]} > {high[first]} at index {first}")

    @property
    def shape(self):
        return self.lower.shape

    def lmo(self, direction, guess=None):
        # dense, because a boolean array with both bounds would be larger
        lower, upper = self._bounds(direction.dtype)
        return Dense(jnp.where(direction > 0, lower, upper))

    def vertex(self):
        return Dense(self.lower)

    def start(self):
        return self.lower + (self.upper - self.lower) / 2

    def diameter(self, ord):
        widths = self.upper - self.lower
        return tree.length(widths) if ord == 2 else tree.norm(widths, ord)

    def inradius(self):
        return jnp.min(self.upper - self.lower) / 2

    def intervals(self):
        return self.upper - self.lower

    def contains(self, x, tol=1e-6):
        lower, upper = self._bounds(x.dtype)
        slack = tol * jnp.max(jnp.maximum(jnp.abs(lower), jnp.abs(upper)))
        return jnp.all((x >= lower - slack) & (x <= upper + slack))

    def project(self, x):
        return jnp.clip(x, *self._bounds(x.dtype))

    def _bounds(self, dtype):
        return self.lower.astype(dtype), self.upper.astype(dtype)


@with_facts(DomainFacts("a pass over the direction"))
def ZeroOneCube(n: int) -> Box:
    r"""$X = [0, 1]^n$, the hull of $\{0, 1\}^n$.

    >>> import jax.numpy as jnp
    >>> ZeroOneCube(3).lmo(jnp.array([1.0, -1.0, -2.0])).dense().tolist()
    [0.0, 1.0, 1.0]
    """
    shape = as_shape(n)
    return Box(jnp.zeros(shape), jnp.ones(shape))


def onto_l1_ball(x, radius):
    """The nearest point of {sum |y| <= radius}: soft thresholding at the level that the simplex finds."""
    magnitudes = onto_simplex(jnp.abs(x).reshape(-1), radius).reshape(x.shape)
    return jnp.where(tree.norm(x, 1) <= radius, x, jnp.sign(x) * magnitudes)


def rescale(direction):
    """(direction over its largest absolute entry, whether it is zero), so that no square overflows."""
    largest = jnp.max(jnp.abs(direction))
    zero = largest <= jnp.finfo(direction.dtype).tiny
    return direction / jnp.where(zero, 1, largest), zero
