"""Points beside their mean: where rounds are noise around something fixed, the mean is better."""

import equinox as eqx
import jax.numpy as jnp

from ..core import tree
from ..domains.base import AbstractDomain, Point
from ..primal.hedge import Pair
from ..primal.tracking import in_hull


class Averaged(eqx.Module):
    """The mean of the points so far, of which the k-th weighs as k; AdaHedge weighs a point against it."""

    mean: Point
    both: Pair

    @classmethod
    def begin(cls, start: Point) -> "Averaged":
        return cls(start, Pair.begin(tree.dtype(start)))

    def mixed_with(self, point: Point) -> Point:
        """What to play, where the latest point is `point`."""
        return tree.mix(self.mean, point, self.both.share)

    def forget_costs(self, when) -> "Averaged":
        return Averaged(self.mean, self.both.forget_costs(when))

    def observe(self, point: Point, gradient: Point, keep) -> "Averaged":
        """After a round with this gradient, in which `point` was mixed."""
        excess = tree.dot(gradient, tree.sub(point, self.mean))
        return Averaged(self.mean, self.both.observe(excess, jnp.abs(excess), keep))

    def moved(self, domain: AbstractDomain, point: Point, rounds) -> "Averaged":
        """With one more point, after so many rounds, over which rounding does not add up."""
        return Averaged(in_hull(domain, tree.mix(self.mean, point, 2 / (rounds + 2)), point), self.both)
