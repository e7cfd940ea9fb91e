"""Steps that are shortened where the curvature seen so far says that they would overshoot."""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..core import tree
from ..core.tree import ratio
from ..domains.base import Point


class Curved(NamedTuple):
    """What a round shows of a step eta h, in numbers."""

    square: Float[Array, ""]  # |h|^2
    gain: Float[Array, ""]  # <eta h, h>; where eta is a number, it is not needed
    along: Float[Array, ""]  # curvature along a multiple of the step
    scale: Float[Array, ""]  # which one

    @classmethod
    def of(cls, hessian: Callable[[Point], Point], direction: Point, scale) -> "Curved":
        """Where eta is a number. `scale` makes h short, in place of its length, which takes a pass over memory."""
        square = tree.dot(direction, direction)
        return cls(square, square, _curvature(hessian, tree.scale(scale, direction)), scale)

    @classmethod
    def on_box(cls, hessian: Callable[[Point], Point], direction: Point, eta: Point) -> "Curved":
        """Where eta has an entry for each coordinate."""
        step = jax.tree.map(jnp.multiply, eta, direction)
        gain = tree.dot(step, direction)
        scale = ratio(jnp.ones_like(gain), jnp.sqrt(gain))
        return cls(tree.dot(direction, direction), gain, _curvature(hessian, tree.scale(scale, step)), scale)


class Overshoot(eqx.Module):
    r"""A step $\eta h$ becomes $\eta h(1-e^{-o})/o$, where $o=\eta\kappa$ and $\kappa$ is the curvature along steps.

    $\kappa$ is the largest curvature so far, of which after round n $\frac{2n}{2n+1}$ is kept: what was seen once fades
    like $n^{-1/2}$, as steps do. So a start that is curved a thousand times more than all later decisions does not keep
    steps short for ever. On boxes, where $\eta$ has an entry for each coordinate, $\kappa$ is a mean of which the k-th
    weighs as k, and $\eta$ in o is that of the gain, $\langle\eta h,h\rangle/|h|^2$.
    """

    curvature: Float[Array, ""]

    def observe(self, curved: Curved, keep, rounds) -> "Overshoot":
        along = ratio(curved.along, (curved.scale * jnp.sqrt(curved.square)) ** 2)
        return Overshoot(jnp.maximum(keep * self.curvature * (2 * rounds / (2 * rounds + 1)), along))

    def observe_on_box(self, curved: Curved, rounds) -> tuple[Float[Array, ""], "Overshoot"]:
        """(the rate eta of the whole step, the new state)."""
        rate = ratio(curved.gain, curved.square)
        share = jnp.where(curved.square > 0, 2 / (rounds + 1), 0)
        return rate, Overshoot(self.curvature + share * (ratio(curved.along, rate) - self.curvature))

    def factor(self, rate) -> Float[Array, ""]:
        """By what a step of this rate is multiplied."""
        overshoot = self.curvature * rate
        return jnp.where(overshoot > 0, ratio(-jnp.expm1(-overshoot), overshoot), 1)


def _curvature(hessian, x: Point) -> Float[Array, ""]:
    return jnp.maximum(tree.finite(tree.dot(x, hessian(x))), 0)
