"""Steps that are shortened where the curvature seen so far says that they would overshoot."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..core import tree
from ..core.tree import ratio
from ..domains.base import AbstractDomain, Point
from ..primal.slow_start import scaled


class Overshoot(eqx.Module):
    r"""A step $\eta h$ becomes $\eta h(1-e^{-o})/o$, where $o=\eta\kappa$ and $\kappa$ is the curvature along steps.

    $\kappa$ is the largest curvature so far; on boxes, where $\eta$ has an entry for each coordinate, a mean of which
    the k-th weighs as k, and $\eta$ in o is that of the gain, $\langle\eta h,h\rangle/|h|^2$.
    """

    curvature: Float[Array, ""]

    def observe(
        self, domain: AbstractDomain, hessian: Callable[[Point], Point], direction: Point, eta: Any, usual, keep, rounds
    ) -> tuple[Any, "Overshoot"]:
        """(the rate eta of the whole step, the new state). `usual` is a length that the direction seldom exceeds."""
        square = tree.dot(direction, direction)
        if domain.intervals() is None:
            scale = ratio(jnp.ones_like(usual), usual)  # in place of the length, for which a pass over memory is needed
            along = ratio(_curvature(hessian, tree.scale(scale, direction)), (scale * jnp.sqrt(square)) ** 2)
            return eta, Overshoot(jnp.maximum(keep * self.curvature, along))
        step = scaled(domain, eta, direction)
        gain = tree.dot(step, direction)
        rate = ratio(gain, square)
        along = ratio(_curvature(hessian, tree.scale(ratio(jnp.ones_like(gain), jnp.sqrt(gain)), step)), rate)
        share = jnp.where(square > 0, 2 / (rounds + 1), 0)
        return rate, Overshoot(self.curvature + share * (along - self.curvature))

    def factor(self, rate) -> Float[Array, ""]:
        """By what a step of this rate is multiplied."""
        overshoot = self.curvature * rate
        return jnp.where(overshoot > 0, ratio(-jnp.expm1(-overshoot), overshoot), 1)


def _curvature(hessian, x: Point) -> Float[Array, ""]:
    return jnp.maximum(tree.finite(tree.dot(x, hessian(x))), 0)
